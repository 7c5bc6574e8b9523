"""How pytest collects where a server, a listing or bundled suites are asked for; plugin.py registers it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.face import collection, selection
from pytest_vllm.face.items import spec_of
from pytest_vllm.face.options import OPTIONS, PROFILE_PARAM, SESSION
from pytest_vllm.face.scope import narrowed_by, scope_of

if TYPE_CHECKING:
    from pathlib import Path


class CollectionPlugin:
    """The hooks of collection."""

    def __init__(self, config: pytest.Config) -> None:
        """Name the bundled suites when nothing was named, and let their exchanges be known."""
        self.config = config
        options = config.stash[OPTIONS]
        self.scope = scope_of(config, options)
        if options.wants_server or options.list or self.scope.named:
            config.args = self.scope.args(config)
        for module in collection.exchange_modules():
            config.pluginmanager.register(module, f"vllm-exchanges:{module.__name__}")

    @cached_property
    def _passed_by(self) -> frozenset[Path]:
        """Files of the suites without a check that was asked for; none where an id names no check there."""
        asked = self.config.stash[OPTIONS].checks
        files = collection.declared() if asked else {}
        named = [
            {path for path, ids in files.items() if any(selection.may_ask_for(one, id_) for id_ in ids)}
            or {path for path in files if collection.is_of(path.parent, one)}
            for one in asked
        ]
        return frozenset(files).difference(*named) if all(named) else frozenset()

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Only files with checks that somebody wants are read: of the suites, those that were asked for."""
        if collection_path in self._passed_by:
            return True
        session = self.config.stash.get(SESSION, None)
        named = self.config.args_source is pytest.Config.ArgsSource.ARGS or self.config.stash[OPTIONS].checks
        if session is None or named:
            return None
        profiles = session.profiles.values()
        if collection.is_of(collection_path, "scripted"):
            return None if any(one.server.scripted for one in profiles) else True
        if collection.is_of(collection_path, "clients"):
            return None if any(one.expect.clients for one in profiles) else True
        return None

    def pytest_report_header(self) -> list[str]:
        """Say what is collected and what is not."""
        quiet = SESSION not in self.config.stash or hasattr(self.config, "workerinput")
        return [] if quiet else [f"vllm: {self.scope.words}"]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Folders of the bundled suites are collected our way."""
        return collection.suite_directory(parent, path) if collection.in_suites(path) else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makemodule(
        self, module_path: Path, parent: pytest.Collector
    ) -> pytest.Module | None:
        """Files of the bundled suites are collected our way, also when named one by one."""
        return collection.suite_module(parent, module_path) if collection.in_suites(module_path) else None

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Several profiles parametrise everything that touches a server."""
        session = self.config.stash.get(SESSION, None)
        if session and len(session.profiles) > 1 and PROFILE_PARAM in metafunc.fixturenames:
            metafunc.parametrize(PROFILE_PARAM, list(session.profiles), scope="session")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the checks that were asked for."""
        options = self.config.stash[OPTIONS]
        session = self.config.stash.get(SESSION, None)
        if session is None and not options.list:
            return
        kept, dropped, missed = selection.select(
            items, options, session.profile if session else None, narrowed=narrowed_by(self.config)
        )
        if session is not None:
            order = list(session.profiles)
            kept.sort(key=lambda item: order.index(selection.profile_of(item, session.default_profile)))
            if missed and kept and not session.worker:  # a gate without what was asked for may not say GO
                raise pytest.UsageError("\n".join(missed))
            session.missed, session.partial = missed, bool(dropped or options.checks)
        items[:] = kept
        if dropped:
            self.config.hook.pytest_deselected(items=dropped)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> object:
        """`--vllm-list` and `--vllm-plan` print what would be done instead of doing it."""
        options = self.config.stash[OPTIONS]
        ours = self.config.stash.get(SESSION, None)
        if options.plan and ours is not None:
            from pytest_vllm.face.ahead import plan_lines  # noqa: PLC0415 - needs what only a run needs

            for line in plan_lines(ours, session.items):
                print(line)
            return True
        if not options.list:
            return None
        for line in selection.listing([item for item in session.items if spec_of(item)]):
            print(line)
        return True
