"""Counts the checks of a run, and runs checks that must fail through the hooks that every check goes through.

Under xdist workers do both, and the controlling process reads what they found.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.face import selection
from pytest_vllm.face.collection import SuiteModule
from pytest_vllm.face.items import spec_of
from pytest_vllm.face.own import is_bundled

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pytest_vllm.face.account import Account
    from pytest_vllm.face.session import GateSession

CONTROLS = Path(__file__).with_name("controls.py")
#: The key under which a worker gives its account to the controlling process.
ACCOUNT = "vllm_account"


class Auditor:
    """The hooks of the account."""

    def __init__(self, config: pytest.Config, session: GateSession) -> None:
        """Nothing is counted before the collection."""
        self.config, self.session = config, session

    @property
    def _account(self) -> Account:
        return self.session.account

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, object, object]:
        """Count what the options ask for, and what `-k`, `-m` and plugins leave of it."""
        kept, _, _ = selection.select(items, self.session.options, self.session.profile)
        account, asked = self._account, self.session.options
        account.meant = sum(1 for item in kept if spec_of(item))
        account.own_meant = sum(map(_is_own, kept))
        result = yield
        account.selected = sum(1 for item in items if spec_of(item))
        account.own_selected = sum(map(_is_own, items))
        account.bundled = sum(map(is_bundled, items))
        account.alone = not account.bundled and not asked.checks
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """After the checks, in the process that ran them, the controls."""
        result = yield
        if not (self.config.option.collectonly or self.session.options.only_looks):
            self._account.controls += map(_verdict, self._controls(session))
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """A worker hands over its account."""
        if self.session.worker:
            account = self._account
            self.config.workeroutput[ACCOUNT] = [account.numbers(), account.controls]  # type: ignore[attr-defined]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Read a worker's account."""
        account = self._account
        given = getattr(node, "workeroutput", {}).get(ACCOUNT)  # none of a worker that crashed
        if given is not None:
            account.add(*given)
        account.alone = not account.bundled and not self.session.options.checks

    def _controls(self, session: pytest.Session) -> Iterator[pytest.Item]:
        """A control for every folder with checks: the hooks of a conftest.py hold in its folder alone.

        And with own tests, where passing ones are a GO.
        """
        default = self.session.default_profile
        about: str | None = None
        folders = {
            item.path.parent: item
            for item in session.items
            if spec_of(item) or (self.session.counting and _is_own(item))
        }
        for beside in folders.values():
            about = about or selection.profile_of(beside, default)
            for control in _collected(session):
                if selection.profile_of(control, default) == about:
                    control.path = beside.path
                    yield control


def _is_own(item: pytest.Item) -> bool:
    """Whether this is a test of the person's own that uses a server, and no check."""
    return spec_of(item) is None and selection.needs_server(item)


def _collected(session: pytest.Session) -> list[pytest.Item]:
    module: SuiteModule = SuiteModule.from_parent(
        session, path=CONTROLS, name=CONTROLS.name, nodeid=f"vllm/{CONTROLS.name}"
    )
    return [item for item in module.collect() if isinstance(item, pytest.Item)]


def _verdict(item: pytest.Item) -> str:
    """The verdict on a control, by the hooks that judge every check; it is shown nowhere, nor debugged."""
    hook = item.ihook
    steps = {
        "setup": lambda: hook.pytest_runtest_setup(item=item),
        "call": lambda: hook.pytest_runtest_call(item=item),
        "teardown": lambda: hook.pytest_runtest_teardown(item=item, nextitem=None),
    }
    said = ""
    for when, step in steps.items():
        call = pytest.CallInfo.from_call(step, when=when)  # type: ignore[arg-type]
        report = hook.pytest_runtest_makereport(item=item, call=call)
        said = getattr(report, "vllm_result", {}).get("verdict", said)
    return said
