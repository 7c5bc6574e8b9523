"""Calls checks of the bundled suites on recordings, without a plugin, a profile file or a server."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_vllm.declare.exchanges import CASE_SETS, Case, all_cases, by_fixture_name, key_of
from pytest_vllm.face.options import MARK
from pytest_vllm.facts.capabilities import CAPABILITIES
from pytest_vllm.locate import data_dir
from pytest_vllm.profile.model import Profile
from pytest_vllm.wire.recording import NotRun, Undecided
from pytest_vllm.wire.server import Capability, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_vllm.declare.checks import CheckSpec
    from pytest_vllm.wire.recording import Recording

#: What a server that starts well writes.
LOG = ((0.0, "INFO:     Application startup complete."),)

#: Within the id of a check that holds every answer of a run to what its area is about.
EVERY = ".every."


@dataclass(frozen=True)
class Check:
    """A check with one choice of its cases.

    Args:
        spec: what the check declares.
        function: the check itself.
        chosen: case set name -> case.
    """

    spec: CheckSpec
    function: Callable[..., None]
    chosen: Mapping[str, Case]

    @property
    def key(self) -> str:
        """The check's id, with its cases in brackets."""
        return key_of(self.spec.id, [case.id for _, case in sorted(self.chosen.items())])


@dataclass(frozen=True)
class Judgement:
    """What a check said: pass, fail, undecided or not-run, and why."""

    verdict: str
    why: str = ""


class Played:
    """Recordings by key, with the face of the plugin's own."""

    def __init__(self, recordings: Mapping[str, Recording]) -> None:
        self._recordings = recordings

    def get(self, key: str) -> Recording:
        if key not in self._recordings:
            raise Undecided(f"{key} was not recorded")
        return self._recordings[key]

    def of(self, prefix: str) -> list[Recording]:
        found = [self._recordings[key] for key in sorted(self._recordings) if key.startswith(prefix)]
        if not found:
            raise Undecided(f"no exchange of {prefix} was recorded")
        return found


def server(version: str = "0.32.0", **args: Any) -> Server:
    """The server that was recorded."""
    can = {name: Capability(name, present=name != "reasoning", how="recorded") for name in CAPABILITIES}
    return Server(
        "http://127.0.0.1:8000",
        "smollm2-135m",
        version,
        4096,
        8,
        args={name.replace("_", "-"): value for name, value in args.items()},
        capabilities=can,
        models=("smollm2-135m",),
    )


@cache
def checks(area: str) -> tuple[Check, ...]:
    """Every check of a suite, once for each choice of its cases.

    Those that look at the answers of a whole run are left out: recordings of one area are no run, and
    `suites_oracle/test_every.py` and defects of the matrix break them.
    """
    import_module(f"suites.{area}.exchanges")
    return tuple(check for check in _of_area(area) if EVERY not in check.spec.id)


def judge(
    check: Check,
    recordings: Mapping[str, Recording],
    on: Server | None = None,
    log: tuple[tuple[float, str], ...] = LOG,
) -> Judgement:
    """Call a check the way pytest would; one that crashes is undecided."""
    try:
        check.function(**_arguments(check, Played(recordings), on or server(), log))
    except AssertionError as error:
        return Judgement("fail", str(error))
    except Undecided as error:
        return Judgement("undecided", str(error))
    except NotRun as error:
        return Judgement("not-run", str(error))
    except Exception as error:  # noqa: BLE001 - what a check raises besides is a crash
        return Judgement("crash", f"{type(error).__name__}: {error}")
    return Judgement("pass")


def _of_area(area: str) -> Iterator[Check]:
    for path in sorted((data_dir("suites") / area).glob("test_*.py")):
        module = import_module(f"suites.{area}.{path.stem}")
        for function in vars(module).values():
            if getattr(function, "__module__", "") != module.__name__:
                continue
            for mark in getattr(function, "pytestmark", []):
                if mark.name == MARK:
                    yield from (Check(mark.args[0], function, chosen) for chosen in _choices(function))


def _choices(function: Callable[..., None]) -> Iterator[dict[str, Case]]:
    known = by_fixture_name()
    names: set[str] = set()
    for name in inspect.signature(function).parameters:
        names.update([name] if name in CASE_SETS else all_cases(known[name]) if name in known else [])
    ordered = sorted(names)
    for chosen in itertools.product(*(CASE_SETS[name] for name in ordered)):
        yield dict(zip(ordered, chosen, strict=True))


def _arguments(
    check: Check, played: Played, on: Server, log: tuple[tuple[float, str], ...]
) -> dict[str, Any]:
    known = by_fixture_name()
    fixed = {"vllm_recordings": played, "vllm_server": on, "vllm_profile": Profile(), "vllm_log": log}
    given: dict[str, Any] = {}
    for name in inspect.signature(check.function).parameters:
        if name in fixed:
            given[name] = fixed[name]
        elif name in CASE_SETS:
            given[name] = check.chosen[name]
        else:
            cases = [check.chosen[case_set].id for case_set in all_cases(known[name])]
            given[name] = played.get(key_of(known[name].id, cases))
    return given
