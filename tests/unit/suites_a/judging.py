"""Calls checks of the bundled suites on recordings, without a plugin, a profile or a server."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.checks import MARK, CheckSpec
from pytest_vllm.exchanges import CASE_SETS, Case, all_cases, by_fixture_name, key_of
from pytest_vllm.locate import data_dir
from pytest_vllm.target import Server
from pytest_vllm.wire.recording import NotRun, Recording, Undecided, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

AREAS = ("models", "tokenize", "chat", "completions", "logprobs", "usage")
HERE = Path(__file__).parent


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
        return [self._recordings[key] for key in sorted(self._recordings) if key.startswith(prefix)]


def real() -> dict[str, Recording]:
    """What a real vLLM 0.32.0 answered, SmolLM2-135M on a CPU."""
    parts = (HERE / "vllm-0.32.0.jsonl").read_text("utf-8").split("\n\n")
    recordings = [load(part) for part in parts]
    return {one.key: one for one in recordings}


def checks() -> list[Check]:
    """Every check of these suites, once for each choice of its cases."""
    for area in AREAS:
        import_module(f"suites.{area}.exchanges")
    return [check for area in AREAS for check in _of_area(area)]


def judge(check: Check, recordings: Mapping[str, Recording], version: str = "0.32.0") -> Judgement:
    """Call a check the way pytest would."""
    try:
        check.function(**_arguments(check, Played(recordings), version))
    except AssertionError as error:
        return Judgement("fail", str(error))
    except Undecided as error:
        return Judgement("undecided", str(error))
    except NotRun as error:
        return Judgement("not-run", str(error))
    except Exception as error:  # noqa: BLE001 - a check that crashes is undecided
        return Judgement("undecided", f"crashed: {type(error).__name__}: {error}")
    return Judgement("pass")


def _of_area(area: str) -> Iterator[Check]:
    for path in sorted((data_dir("suites") / area).glob("test_*.py")):
        for function in vars(import_module(f"suites.{area}.{path.stem}")).values():
            marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == MARK]
            for mark in marks:
                for chosen in _choices(_case_sets(function)):
                    yield Check(mark.args[0], function, chosen)


def _case_sets(function: Callable[..., None]) -> list[str]:
    known = by_fixture_name()
    names: dict[str, None] = {}
    for name in inspect.signature(function).parameters:
        if name in CASE_SETS:
            names[name] = None
        elif name in known:
            names.update(dict.fromkeys(all_cases(known[name])))
    return sorted(names)


def _choices(names: list[str]) -> Iterator[dict[str, Case]]:
    for chosen in itertools.product(*(CASE_SETS[name] for name in names)):
        yield dict(zip(names, chosen, strict=True))


def _arguments(check: Check, played: Played, version: str) -> dict[str, Any]:
    known = by_fixture_name()
    given: dict[str, Any] = {}
    for name in inspect.signature(check.function).parameters:
        if name == "vllm_recordings":
            given[name] = played
        elif name == "vllm_server":
            given[name] = Server("http://127.0.0.1:8000", "smollm2-135m", version=version)
        elif name in CASE_SETS:
            given[name] = check.chosen[name]
        else:
            cases = [check.chosen[case_set].id for case_set in all_cases(known[name])]
            given[name] = played.get(key_of(known[name].id, cases))
    return given
