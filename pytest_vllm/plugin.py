"""The entry point: options, and a guard. A run that asks for nothing of ours pays for nothing of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.face import misspelt
from pytest_vllm.face.collection import names_suites
from pytest_vllm.face.options import (
    MARK,
    OPTION,
    OPTIONS,
    SESSION,
    add_options,
    read_options,
)

if TYPE_CHECKING:
    from collections.abc import Generator

NEEDS_SERVER = (
    "these checks need a server: pass --vllm-profile=NAME (try --vllm-profile=sim) or --vllm-url=URL"
)
#: Why an xdist worker has run nothing, in words.
REFUSED: pytest.StashKey[str] = pytest.StashKey()

pytest.register_assert_rewrite("suites", "pytest_vllm.suites", "pytest_vllm.face.controls")

# ruff: noqa: PLC0415 - what is imported below is for runs that ask for it


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register options and ini keys."""
    add_options(parser)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, object, object]:
    """Name the option or key that a misspelt one is near to, once conftest files have added theirs."""
    result = yield
    if any(word.startswith(OPTION) for word in args):
        misspelt.refuse_options(parser, args)
    misspelt.refuse_keys(early_config, parser)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """`--vllm-preflight` checks the profiles by static rules, and nothing else."""
    options = read_options(config)
    if not options.preflight:
        return None
    from pytest_vllm.face.preflight import preflight

    return preflight(config, options)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register what the run asks for: collection of suites, fixtures, a server."""
    config.addinivalue_line("markers", f"{MARK}(spec): a check of a vLLM server; made by @check")
    options = config.stash[OPTIONS] = read_options(config)
    here = config.invocation_params.dir
    if options.wants_server or options.list or any(names_suites(arg, here) for arg in config.args):
        from pytest_vllm.face.collecting import CollectionPlugin

        config.pluginmanager.register(CollectionPlugin(config), "vllm-collection")
    if not options.wants_server:
        from pytest_vllm.face import unasked

        config.pluginmanager.register(unasked, "vllm-fixtures")
        return
    from pytest_vllm.face import fixtures
    from pytest_vllm.face.auditor import Auditor
    from pytest_vllm.face.ending import EvidencePlugin
    from pytest_vllm.face.hooks import GatePlugin
    from pytest_vllm.face.session import open_session

    config.pluginmanager.register(fixtures, "vllm-fixtures")
    session = config.stash[SESSION] = open_session(config, options)
    config.pluginmanager.register(GatePlugin(config, session), "vllm-gate")
    config.pluginmanager.register(EvidencePlugin(config, session), "vllm-evidence")
    config.pluginmanager.register(Auditor(config, session), "vllm-auditor")


@pytest.hookimpl(trylast=True)  # `-m` and `-k` have left out what they leave out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse checks without a server, unless they are only looked at."""
    if config.stash[OPTIONS].list or config.option.collectonly:
        return
    if SESSION in config.stash:
        from pytest_vllm.face.refusal import refuse, twins, unknown_fixtures

        if words := unknown_fixtures(items) or twins(items):
            refuse(config, items, words)
    elif any(item.get_closest_marker(MARK) for item in items):
        from pytest_vllm.face.refusal import refuse

        refuse(config, items, NEEDS_SERVER)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear from an xdist worker why it has run nothing."""
    words = getattr(node, "workeroutput", {}).get("vllm_refused")
    if words:
        node.config.stash[REFUSED] = words


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Refuse the run where a worker did."""
    result = yield
    if words := session.config.stash.get(REFUSED, ""):
        raise pytest.UsageError(words)
    return result
