"""What a log says of a start: a cause and how sure it is, no fault, or unknown with telling lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pytest_vllm.launch.asked import without_answers
from pytest_vllm.launch.diagnose import by_status, cause_of, phase_of
from pytest_vllm.launch.frontend import is_front_end_calm
from pytest_vllm.launch.hangs import WAITS
from pytest_vllm.launch.knownfaults import known_in
from pytest_vllm.launch.logtext import spread, unprefixed
from pytest_vllm.launch.notable import StartupWarning, startup_warnings
from pytest_vllm.launch.phases import STARTED, step_of
from pytest_vllm.launch.places import Place, fitting, place_of
from pytest_vllm.launch.remembered import forget
from pytest_vllm.launch.standing import is_hearsay
from pytest_vllm.launch.tracebacks import WRAPPER, is_frame, raised
from pytest_vllm.launch.words import only_warns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.facts.faults import Fault
    from pytest_vllm.launch.protocol import Exit
    from pytest_vllm.launch.words import Found

_TELLING = 3
_WIDEST = 400
#: So many answers after an error of the engine: it lives.
_SURVIVED = 5
_SOURCES = 2
_STALLED = 3
_ANSWERED = re.compile(r'"POST /\S+ HTTP/[\d.]+" (?:200|4\d\d)\b')
_ENGINE = re.compile(
    r"^\((?:Engine|Worker|Vllm|Ray)|\[?(?:core\w*|engine|client|multiproc\w*|async_llm\w*)\.py:\d"
)
_LOAD = re.compile(r"Running: (\d+) reqs")
_WHOLE = (
    "get the whole log (docker logs without --tail, kubectl logs --previous): the reason stands before",
    "where nothing stands before, a process was killed or native code crashed: dmesg shows which",
)
_BEGINS = re.compile(r"vLLM API server version|[█▄▀]\s+version \d")
_FAILED = re.compile(r"^(?:\([^)]*\)\s*)*(?:ERROR|CRITICAL)\b")


class Sure(StrEnum):
    """How sure a diagnosis is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    UNKNOWN = "unknown"
    NO_FAULT = "no fault found"


@dataclass(frozen=True)
class Diagnosis:
    """What a log says.

    Args:
        sure: how sure it is.
        cause: id of the cause or kind, "" when none is named.
        means: what it means, one sentence.
        tries: the next steps.
        quoted: (line number from 1, line) that show it; for `unknown` the most telling ones.
        phase: how far the start came.
        warnings: what the log says besides that matters (slow kernels, a small cache).
        known: faults of this version that lines of the log show.
    """

    sure: Sure
    cause: str
    means: str
    tries: tuple[str, ...]
    quoted: tuple[tuple[int, str], ...]
    phase: str
    warnings: tuple[StartupWarning, ...]
    known: tuple[Fault, ...] = ()

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "sure": str(self.sure),
            "cause": self.cause,
            "means": self.means,
            "try": list(self.tries),
            "lines": [{"number": number, "text": text} for number, text in self.quoted],
            "phase": self.phase,
            "warnings": [
                {
                    "id": one.id,
                    "number": one.number,
                    "text": one.line,
                    "means": one.means,
                    "try": [*one.tries],
                }
                for one in self.warnings
            ],
            "known": [
                {
                    "id": one.id,
                    "means": f"{one.title}: {one.effect}",
                    "thread": one.thread,
                    "try": [one.way_round],
                }
                for one in self.known
            ],
        }


def diagnose(
    lines: Sequence[str],
    ended: Exit | None = None,
    *,
    hung: bool | None = None,
    place: Place = Place.UNKNOWN,
) -> Diagnosis:
    """Why a server died or hangs, read from its log.

    Args:
        lines: the log as it was kept, whatever carried it.
        ended: how the server ended, None when that is not known.
        hung: whether it runs and its start does not go on; None when that is not known.
        place: where it runs; the next steps are those of that place. Unknown: what the log shows.
    """
    try:
        found, place = _read(lines, ended, hung=hung), place or place_of(lines)
    finally:
        forget()
    warnings = tuple(replace(one, tries=fitting(one.tries, place)) for one in found.warnings)
    return replace(found, tries=fitting(found.tries, place), warnings=warnings)


def _read(lines: Sequence[str], ended: Exit | None, *, hung: bool | None) -> Diagnosis:
    records = spread(lines)
    texts = [text for _, text in records]
    warnings = tuple(replace(one, number=records[one.number - 1][0]) for one in startup_warnings(texts))
    started, tried = _after_start(texts), _last_try(texts, hung=hung)
    begin, known = max(started, tried), known_in(texts)
    phase = phase_of(texts[tried:] if tried >= started else texts)
    begin = _served_on(texts, begin) if phase == STARTED else begin
    late: Sequence[str] = ["" if number < begin else text for number, text in enumerate(texts)]
    late = without_answers(late, texts) if phase == STARTED else late
    ends = next((text for text in reversed(late) if text and not is_front_end_calm(text)), "")
    stalled = _stalled(late, serving=phase == STARTED) or (phase != STARTED and WAITS not in ends)
    stands = hung or (hung is None and stalled and not _troubled(late))
    found = cause_of(late, phase, hung=stands)
    failed = hung or (ended is not None and (ended.status not in {0, None} or ended.oom or ended.signal))
    if ended is not None and (found is None or found.cause.symptom or ended.oom):
        found = by_status(ended) or found
    broken = _troubled(late) or (found is not None and not _only_warns(texts, found))
    if phase == STARTED and not failed and not broken:
        words = "the server started, and its log names no fault"
        return Diagnosis(Sure.NO_FAULT, "", words, (), (), phase, warnings, known)
    if found is None:
        means, tries = _unnamed(late, phase)
        telling = tuple((records[number - 1][0], text) for number, text in _most_telling(late))
        return Diagnosis(Sure.UNKNOWN, "", means, tries, telling, phase, warnings, known)
    quoted = ((records[found.number - 1][0], _short(texts[found.number - 1])),) if found.number else ()
    weak = found.cause.symptom or found.mentioned or _only_warns(texts, found)
    weak = weak or (bool(found.number) and is_hearsay(found.number, texts))
    sure = Sure.LIKELY if weak else Sure.CERTAIN
    return Diagnosis(sure, found.cause.id, found.means, found.tries, quoted, phase, warnings, known)


def _unnamed(texts: Sequence[str], phase: str) -> tuple[str, tuple[str, ...]]:
    """What an unknown cause means, and what to do: a log that was cut is worth asking for whole."""
    errors = [one for one in raised(texts) if not one.aside]
    if errors and all(one.wrapper for one in errors):
        means = f"the log says only that another process failed, and not why; it ends while {phase}"
        return means, _WHOLE
    means = f"the log names no cause that is known; it ends while {phase}"
    return means, ("read the log from its first error on; the lines here are the most telling",)


def _after_start(texts: Sequence[str]) -> int:
    """Index behind the last start that succeeded: what stands before did not stop it."""
    starts = [
        number for number, text in enumerate(texts, 1) if (one := step_of(text)) and one.phase == STARTED
    ]
    return max(starts, default=0)


def _stalled(texts: Sequence[str], *, serving: bool) -> bool:
    """Whether a log ends with an engine that waits for its workers, minute after minute.

    An idle server says the same: only one that has requests to work on is stalled.
    """
    last = [text for text in texts if text and not is_front_end_calm(text)][-_STALLED:]
    loads = [int(found[1]) for text in texts if (found := _LOAD.search(text))]
    waits = len(last) == _STALLED and all(WAITS in text for text in last)
    return waits and (not serving or bool(loads and loads[-1]))


def _served_on(texts: Sequence[str], begin: int) -> int:
    """Index behind what only single requests suffered from: the server answered others after it.

    An engine that failed and went on answering survived it; what ended it later says so by itself.
    """
    answered = [n for n, text in enumerate(texts[begin:], begin) if _ANSWERED.search(text)]
    served = answered[-1] if answered else 0
    failed = [n for n in range(begin, served) if _FAILED.match(texts[n]) or WRAPPER.search(texts[n])]
    survived = answered[-_SURVIVED] if len(answered) >= _SURVIVED else 0
    others = any(WRAPPER.search(texts[n]) or (_ENGINE.search(texts[n]) and n >= survived) for n in failed)
    later = texts[served:]
    explained = not _troubled(later) or any(not one.wrapper for one in raised(later))
    return served if served and not others and explained else begin


def _last_try(texts: Sequence[str], *, hung: bool | None) -> int:
    """Index of the last of several starts that failed: a container that is started again keeps its log."""
    tries = [number for number, text in enumerate(texts) if _BEGINS.search(text)]
    if tries[1:] and hung:
        return tries[-1]
    return next((n for n in reversed(tries[1:]) if _failed(texts[n:], hung=hung is None)), 0)


def _failed(texts: Sequence[str], *, hung: bool) -> bool:
    return _troubled(texts) or cause_of(texts, phase_of(texts), hung=hung) is not None


def _troubled(texts: Sequence[str]) -> bool:
    """Whether anything but warnings says that something failed."""
    said = any(_FAILED.match(text) for text in texts)
    return said or any(not one.aside for one in raised(texts)) or _ends_raising(texts)


def _ends_raising(texts: Sequence[str]) -> bool:
    """Whether a log breaks off in a traceback, before it comes to the error."""
    last = [text for text in texts if text.strip()][-_SOURCES:]
    return any(is_frame(text) for text in last)


def _only_warns(texts: Sequence[str], found: Found) -> bool:
    return bool(found.number) and only_warns(texts[found.number - 1])


def _most_telling(texts: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """Exceptions first, those that speak of others last; then errors; then how the log ends."""
    errors = sorted(raised(texts), key=lambda one: (one.wrapper, one.number))
    numbers = [one.number for one in errors]
    numbers += [n for n, text in enumerate(texts, 1) if "ERROR" in text[:60] and not WRAPPER.search(text)]
    numbers += [n for n in range(len(texts), 0, -1) if texts[n - 1]]
    chosen: dict[str, int] = {}
    for number in numbers:
        chosen.setdefault(unprefixed(texts[number - 1]).strip(), number)
        if len(chosen) == _TELLING:
            break
    return tuple((number, _short(texts[number - 1])) for number in sorted(chosen.values()))


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
