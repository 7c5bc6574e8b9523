"""The pytest face: options, and how the bundled suites are collected.

Hooks only. What happens once a server is asked for lies in gateplugin.py, registered here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.face import collection as collect
from pytest_vllm.face import selection
from pytest_vllm.face.items import spec_of
from pytest_vllm.face.options import MARK, OPTIONS, PROFILE_PARAM, SESSION, add_options, read_options

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ("pytest_vllm.face.fixtures",)
pytest.register_assert_rewrite("suites", "pytest_vllm.suites")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register options and ini keys."""
    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Load the profiles, name the bundled suites when nothing was named."""
    config.addinivalue_line("markers", f"{MARK}(spec): a check of a vLLM server; made by @check")
    options = config.stash[OPTIONS] = read_options(config)
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    if options.wants_server or options.list or named:
        config.args = collect.bundled_args(config.args, named=named, base=config.invocation_params.dir)
    if options.wants_server or options.list or any(collect.names_suites(arg) for arg in config.args):
        for module in collect.exchange_modules():
            config.pluginmanager.register(module, f"vllm-exchanges:{module.__name__}")
    if options.wants_server:
        # Imported here: a pytest run that asks for no server shall not pay for clients and launchers.
        from pytest_vllm.face.hooks import GatePlugin  # noqa: PLC0415
        from pytest_vllm.face.session import open_session  # noqa: PLC0415

        session = config.stash[SESSION] = open_session(config, options)
        config.pluginmanager.register(GatePlugin(config, session), "vllm-gate")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """`--vllm-preflight` checks the profiles by static rules, and nothing else."""
    options = read_options(config)
    if not options.preflight:
        return None
    from pytest_vllm.face.preflight import preflight  # noqa: PLC0415 - only such a run pays for the rules

    return preflight(config, options)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Checks that only a scripted server can run are not even read, unless something is asked for by name."""
    session = config.stash.get(SESSION, None)
    named = config.args_source is pytest.Config.ArgsSource.ARGS or config.stash[OPTIONS].checks
    if session is None or named or any(one.server.scripted for one in session.profiles.values()):
        return None
    return collect.is_scripted(collection_path) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Folders of the bundled suites are collected our way."""
    return collect.suite_directory(parent, path) if collect.in_suites(path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Files of the bundled suites are collected our way, also when named one by one."""
    return collect.suite_module(parent, module_path) if collect.in_suites(module_path) else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Several profiles parametrise everything that touches a server."""
    session = metafunc.config.stash.get(SESSION, None)
    if session and len(session.profiles) > 1 and PROFILE_PARAM in metafunc.fixturenames:
        metafunc.parametrize(PROFILE_PARAM, list(session.profiles), scope="session")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the checks that were asked for; refuse checks without a server, unless they are only listed."""
    options = config.stash[OPTIONS]
    session = config.stash.get(SESSION, None)
    if session is None and not options.list:
        if any(spec_of(item) for item in items) and not config.option.collectonly:
            raise pytest.UsageError(
                "these checks need a server: "
                "pass --vllm-profile=NAME (try --vllm-profile=sim) or --vllm-url=URL"
            )
        return
    kept, dropped, missed = selection.select(items, options, session.profile if session else None)
    if session is not None:
        order = list(session.profiles)
        kept.sort(key=lambda item: order.index(selection.profile_of(item, session.default_profile)))
        if missed and kept and not session.worker:  # a gate that leaves out what was asked for may not say GO
            raise pytest.UsageError("\n".join(missed))
        session.missed, session.partial = missed, bool(dropped)
    items[:] = kept
    if dropped:
        config.hook.pytest_deselected(items=dropped)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> object:
    """`--vllm-list` prints the checks instead of running them."""
    if not session.config.stash[OPTIONS].list:
        return None
    for line in selection.listing(session.items):
        print(line)
    return True
