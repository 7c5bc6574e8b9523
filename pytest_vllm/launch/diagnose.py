"""Why a start failed, read from the server's log: the first cause, not the last line of the last traceback.

The causes are data, `causes.toml`. Of all lines that match one, the earliest counts; a *symptom*, which many
causes share, counts only where no cause is found. Without any match the first exception of the log is shown.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.launch.areas import fault_in, is_refusal
from pytest_vllm.launch.carriers import speaks
from pytest_vllm.launch.causes import causes
from pytest_vllm.launch.frontend import without_requests
from pytest_vllm.launch.handed import by_device
from pytest_vllm.launch.hangs import waited_before, where_it_hangs
from pytest_vllm.launch.kinds import kinds, line_kinds, of_kind
from pytest_vllm.launch.logtext import owner, plain, spread, unprefixed
from pytest_vllm.launch.phases import STARTED, PhaseReader, step_of
from pytest_vllm.launch.phrases import by_broken, by_joined, by_mention, by_quotation, kind_of
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.launch.standing import OVER, without_bystanders
from pytest_vllm.launch.stray import got_over, is_remark, stands_alone
from pytest_vllm.launch.survived import without_survived
from pytest_vllm.launch.tracebacks import Raised, quoted, raised, root
from pytest_vllm.launch.words import Found, cause_in, matches, only_warns, telling

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from pytest_vllm.launch.protocol import Exit

LAST_LINES = 20
_AROUND = 2
_WIDEST, _ALIKE = 400, 60


def root_cause(lines: Sequence[str], *, hung: bool = False, phase: str = "") -> Found | None:
    """The first known cause in a log, or the kind of its root exception.

    A symptom, or a warning, counts only when there is nothing better.

    Args:
        lines: the log, with whatever prefixes it was carried.
        hung: the server runs, but its start does not go on.
        phase: how far the start came; "" when these lines alone say so.
    """
    records = spread(lines)
    texts = [text for _, text in records]
    found = cause_of(texts, phase or phase_of(texts), hung=hung)
    return replace(found, number=records[found.number - 1][0]) if found and found.number else found


def cause_of(texts: Sequence[str], phase: str, *, hung: bool = False) -> Found | None:
    """As `root_cause`, of lines as `logtext.spread` gives them."""
    texts = without_requests(texts) if phase == STARTED else texts
    texts = _without_strays(texts)
    texts = without_bystanders(texts, without_survived(raised(texts), texts)[0], phase)
    every, survived = without_survived(raised(texts), texts)
    errors = quoted(every)
    hollow = {one.number for one in errors if one.hollow} | survived
    found, firm = _by_words(texts, hollow)
    if found is not None and found.cause.follows and _unknown_before(found, errors):
        found = None
    if found is not None and firm:
        other = by_device(texts, found) if found.cause.follows else None
        other = other or (_of_another(texts, errors, phase, found) if found.cause.follows else None)
        other = other or (_died_before(texts, found) if found.cause.follows else None)
        return other or _by_traceback(found, texts, errors, phase) or found
    if words := by_quotation([one for one, whole in zip(errors, every, strict=True) if one is not whole]):
        return words
    kind = _explained(texts, errors, _by_kind(texts, errors, phase, hung=hung))
    if kind is not None and found is not None and _told_before(found, kind):
        kind = None
    if kind is None and found is not None and only_warns(found.line):
        unknown = any(not one.wrapper and kind_of(one, "") is None for one in errors)
        found = None if unknown or _went_on(texts, found.number) else found
    if kind is None and found is None and phase != STARTED and not any(not one.aside for one in errors):
        found = by_mention(texts)
    told = kind or found or by_broken(errors) or _by_area(texts, errors, phase) or _refused(errors, phase)
    return told or (waited_before(texts) if errors and all(one.wrapper for one in errors) else None)


def _without_strays(texts: Sequence[str]) -> Sequence[str]:
    """The lines, without those that name a cause, belong to no error, and were got over."""
    errors = raised(texts)
    until = got_over(errors, texts)
    if not until:
        return texts
    ran = any(speaks(line) for line in texts)
    said = (n for n, line in telling(texts[: until - 1]) if _names(n, line, ran=ran))
    strays = {n for n in said if stands_alone(n, errors, texts)}
    return ["" if n in strays else text for n, text in enumerate(texts, 1)] if strays else texts


def _names(number: int, line: str, *, ran: bool) -> bool:
    """Whether a line has the words of a cause, and does not only warn."""
    return not only_warns(line) and any(not found.cause.symptom for found in matches(number, line, ran=ran))


def _explained(texts: Sequence[str], errors: Sequence[Raised], kind: Found | None) -> Found | None:
    """The kind, or what another line says of why it came to that."""
    if kind is not None and kind.cause.id == _UNBUILT:
        kind = _why_not_loaded(texts) or kind
    if kind is not None and kind.cause.id in _ABSENT:
        kind = _not_reached(texts[: kind.number]) or kind
    if kind is not None and kind.cause.id.startswith(_NARROW[1]) and _ASKS in kind.line:
        kind = _swallowed(texts[: kind.number]) or kind
    if kind is None or kind.cause.symptom:
        kind = by_joined(texts, errors, kind) or kind
    return kind


def _swallowed(lines: Sequence[str]) -> Found | None:
    """Why a GPU is taken for an older one: what it is could not be read, which a line before says."""
    for number, line in enumerate(lines, 1):
        if failed := _NOT_READ.search(line):
            found = kind_of(Raised(number, "", "RuntimeError", failed["why"], ()), "")
            return found and replace(found, line=line)
    return None


def _by_traceback(found: Found, texts: Sequence[str], errors: Sequence[Raised], phase: str) -> Found | None:
    """What a traceback says for sure, where a line that belongs to none says something else."""
    if not stands_alone(found.number, errors, texts):
        return None
    one = next((one for one in errors if not one.wrapper and one.frames), None)
    if one is None:
        return None
    words = cause_in(one.number, texts[one.number - 1])
    said = _narrowed(texts, words) if words else kind_of(one, phase)
    if said is None or said.cause.symptom or said.cause.follows or said.cause.id == found.cause.id:
        return None
    return said


def _of_another(texts: Sequence[str], errors: Sequence[Raised], phase: str, follower: Found) -> Found | None:
    """What another process raised and is known as a cause: what only follows may be logged before it."""
    own = owner(texts[follower.number - 1])
    for one in errors:
        if one.wrapper or one.process in {"", own}:
            continue
        said = cause_in(one.number, texts[one.number - 1])
        kind = _narrowed(texts, said) if said else kind_of(one, phase)
        if kind is not None and not kind.cause.follows:
            return kind
    return None


def _died_before(texts: Sequence[str], follower: Found) -> Found | None:
    """A process that died, as a line says, before the others complained that they do not reach it."""
    found = _by_line(texts[: follower.number - 1]) if follower.number else None
    return found if found is not None and found.cause.id == _DIED else None


def _went_on(texts: Sequence[str], number: int) -> bool:
    """Whether the start went on behind a line: what it warns of did not stop it."""
    return any(step_of(text) for text in texts[number:])


def _told_before(found: Found, kind: Found) -> bool:
    """Whether a symptom says more than a kind that only follows from it: it crashed, then it was missed."""
    return (
        kind.cause.follows
        and not found.cause.follows
        and found.number < kind.number
        and not only_warns(found.line)
    )


def _unknown_before(found: Found, errors: Sequence[Raised]) -> bool:
    """Whether something was raised before that nobody knows: what follows may follow from it."""
    before = (one for one in errors if one.number < found.number and not one.wrapper)
    return any(kind_of(one, "") is None and one.text not in found.line for one in before)


def _by_words(lines: Sequence[str], aside: Container[int]) -> tuple[Found | None, bool]:
    """The first cause whose words a log holds; and whether more than a symptom, or a warning, says so."""
    symptom = None
    ran = any(speaks(line) for line in lines)
    for number, line in telling(lines):
        if number in aside:
            continue
        for found in matches(number, line, ran=ran):
            if not found.cause.symptom and not only_warns(line):
                # the warning that told the same cause before names it best
                same = symptom is not None and symptom.cause == found.cause
                return (symptom if same else _narrowed(lines, found)), True
            symptom = symptom or found
    return symptom, False


_SENTENCE = (
    "a part of vLLM refuses what it is asked for, with this model or on this machine: its sentence says what"
)
_DIED = "worker-killed"
_UNBUILT, _REFUSED_SETTINGS = "build-incomplete", "settings-refused"
_NOT_LOADED = re.compile(
    r"Failed to import (?:from )?vllm\.\w+\W+(?:with )?(?P<error>\w+Error)\([\"'](?P<why>.*)[\"'],?\)"
)

#: FlashInfer goes on without what it could not read of the GPU, and refuses it later.
_ASKS = "FlashInfer requires GPUs"
_NOT_READ = re.compile(r"Failed to get device capability: (?P<why>.+)")

#: What the hub would have brought, had it been reached; an answer such as 404 or 429 is none of this.
_ABSENT = frozenset({"model-files-missing", "model-missing"})
_UNREACHED = re.compile(
    r"(?:Errno -?\d+|NewConnectionError|ConnectTimeout|ConnectError|ProxyError|Max retries|timed out).*thrown"
    r" while requesting (?:HEAD|GET) "
)
#: Causes that say less than the frames do.
_WIDE = frozenset({"cuda-out-of-memory", "no-kernel-image", "attention-backend-unfit"})

#: A sentence further on that says what the memory was for.
_LATER = {"cuda-out-of-memory": "sampler-memory"}
_NARROW = ("memory-at-", "kernel-missing-")


def _narrowed(lines: Sequence[str], found: Found) -> Found:
    """Memory that ran out, or a kernel that is missing, with where it happened when the frames say so."""
    if found.cause.id not in _WIDE:
        return found
    later = (said for n, line in telling(lines) if n > found.number and (said := cause_in(n, line)))
    if said := next((said for said in later if said.cause.id == _LATER.get(found.cause.id)), None):
        return said
    after = (one for one in raised(lines) if one.number >= found.number)
    one = next((one for one in after if one.number == found.number or _same(one, found)), None)
    kind = kind_of(one, "") if one else None
    return kind if kind is not None and kind.cause.id.startswith(_NARROW) else found


def _same(one: Raised, found: Found) -> bool:
    """Whether an error was logged before its traceback, in its own words."""
    said = one.text.partition("\n")[0][:_ALIKE]
    return bool(said) and said in found.line


def _by_kind(lines: Sequence[str], errors: Sequence[Raised], phase: str, *, hung: bool) -> Found | None:
    unknown, found = False, None
    whole = any(one.frames and not one.wrapper for one in errors)
    for one in errors:
        bare = whole and not one.process and is_remark(one, lines)
        kind = None if one.wrapper or bare else kind_of(one, phase)
        if kind is not None and not (unknown and kind.cause.follows):
            other = _of_another(lines, errors, phase, kind) if kind.cause.follows else None
            found = other or kind
            break
        unknown = unknown or not (one.wrapper or kind or OVER.search(one.error))
    said = None if found and not found.cause.symptom else _by_line(lines)
    if said is not None and said.cause.follows and (unknown or found):
        said = None
    if said is not None and found is not None and only_warns(said.line):
        said = None
    if found is None or (said is not None and (said.number < found.number or found.cause.follows)):
        found = said or found
    return found or (where_it_hangs(lines) if hung else None)


def _why_not_loaded(lines: Sequence[str]) -> Found | None:
    """Why a compiled part of vLLM is missing: a warning of its start says what could not be loaded."""
    for number, line in enumerate(lines, 1):
        if (failed := _NOT_LOADED.search(line)) is None:
            continue
        one = Raised(number, "", failed["error"], failed["why"], ())
        found = cause_in(number, f"{one.error}: {one.text}") or kind_of(one, "")
        if found is not None and found.cause.id != _UNBUILT:
            return replace(found, line=line)
    return None


def _not_reached(lines: Sequence[str]) -> Found | None:
    """Why a file of the model is missing: a warning before says that the hub could not be asked for it."""
    number = next((n for n, line in enumerate(lines, 1) if _UNREACHED.search(line)), 0)
    return replace(by_id("hub-offline"), number=number, line=lines[number - 1]) if number else None


def _by_area(lines: Sequence[str], errors: Sequence[Raised], phase: str) -> Found | None:
    """Which part of vLLM broke, where nothing says why."""
    fault = fault_in(errors, phase)
    if fault is None:
        return None
    one, cause = fault
    return Found(cause, one.number, lines[one.number - 1], cause.means, cause.tries)


def _refused(errors: Sequence[Raised], phase: str) -> Found | None:
    """A sentence of vLLM's own that says what it does not do: that is the reason, whatever it is about."""
    one = next((one for one in errors if not one.wrapper), None)
    if one is None or phase == STARTED or not is_refusal(one):
        return None
    said = one.text.partition("\n")[0]
    return replace(by_id(_REFUSED_SETTINGS), number=one.number, line=f"{one.error}: {said}", means=_SENTENCE)


def _by_line(lines: Sequence[str]) -> Found | None:
    """A kind that single lines tell, what a program says that raises nothing."""
    found = {
        id(kind): (kind, number)
        for number, line in reversed(list(enumerate(lines, 1)))
        for kind in line_kinds(unprefixed(line))
    }
    first = next((found[id(kind)] for kind in kinds() if id(kind) in found), None)
    return of_kind(*first, lines[first[1] - 1]) if first else None


_SERVES = re.compile(r'\S+:\d+ - "(?:GET|POST) /\S* HTTP/[\d.]+" \d{3}|Avg generation throughput: [\d.]+')


def phase_of(lines: Iterable[str]) -> str:
    """The furthest phase of the start that a log shows; who answers requests has started."""
    reader = PhaseReader()
    for line in lines:
        reader.read(line, 0.0)
        if _SERVES.search(line):
            return STARTED
    return reader.phase


def first_exception(lines: Sequence[str]) -> int | None:
    """Index of the line that names the first exception, wrappers left out; None when there is none."""
    found = root([plain(line) for line in lines])
    return None if found is None else found.number - 1


def boot_error(
    what: str,
    lines: Sequence[str],
    ended: Exit | None,
    *,
    means: str = "",
    try_: tuple[str, ...] = (),
) -> BootError:
    """The block for a start that failed. A known cause is put before what is given as meaning."""
    found = root_cause(lines, hung=ended is None)
    if ended is not None and ended.oom:
        found = by_id("killed-for-memory")
    elif found is None or found.cause.symptom:
        found = by_status(ended) or found
    if found is None:
        return BootError(what, evidence=_excerpt(lines), means=means, try_=(*try_, *_LOOK))
    first = found.number - 1
    evidence = tuple(lines[-LAST_LINES:])
    if found.number:
        evidence = (_shown(lines, first), *lines[first + 1 : first + found.cause.lines])
    tries = (*found.tries, *try_)
    return BootError(what, evidence=evidence, means=found.means, try_=tries, cause=found.cause.id)


def daemon_error(what: str, words: str, *, means: str = "", try_: tuple[str, ...] = ()) -> BootError:
    """The block for something that a container daemon refused, with its own words."""
    found = root_cause(words.splitlines())
    if found is not None:
        means, try_ = found.means, (*found.tries, *try_)
    return BootError(what, evidence=tuple(words.splitlines()), means=means, try_=try_)


def by_id(name: str) -> Found:
    """A cause that no line shows, such as one that the exit status tells."""
    known = (*causes(), *(kind.cause for kind in kinds()))
    cause = next(cause for cause in known if cause.id == name)
    return Found(cause, 0, "", cause.means, cause.tries)


_LOOK = ("read the whole log; its first error is usually the cause",)
_STATUS = {132: "illegal-instruction", 137: "killed", 139: "crashed"}
_SIGNALS = {"SIGILL": 132, "SIGKILL": 137, "SIGSEGV": 139}


def by_status(ended: Exit | None) -> Found | None:
    """What an exit status tells of a server that had no last words; None when it tells nothing."""
    if ended is None:
        return None
    if ended.oom:
        return by_id("killed-for-memory")
    status = _SIGNALS.get(ended.signal) or ended.status
    return by_id(_STATUS[status]) if status in _STATUS else None


def _shown(lines: Sequence[str], index: int) -> str:
    text = unprefixed(plain(lines[index])).strip()
    if len(text) > _WIDEST:
        text = text[: _WIDEST - 1] + "…"
    return f"{text}   (server.log:{index + 1})"


def _excerpt(lines: Sequence[str]) -> tuple[str, ...]:
    """The first exception with what stands right before it, then the last lines."""
    first = first_exception(lines)
    last = max(0, len(lines) - LAST_LINES)
    if first is None or first >= last:
        return tuple(lines[last:])
    return (*lines[max(0, first - _AROUND) : first], _shown(lines, first), "…", *lines[last:])
