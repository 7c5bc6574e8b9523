"""How much a line counts that names a cause, by who says it: an error that was raised, vLLM, others."""

from __future__ import annotations

import bisect
import re
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING

from pytest_vllm.launch.areas import is_request
from pytest_vllm.launch.carriers import speaks
from pytest_vllm.launch.kinds import line_kind
from pytest_vllm.launch.logtext import unprefixed
from pytest_vllm.launch.phases import STARTED
from pytest_vllm.launch.phrases import kind_of
from pytest_vllm.launch.stray import covers, is_remark
from pytest_vllm.launch.tracebacks import raised
from pytest_vllm.launch.words import cause_in, matches, only_warns, telling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.launch.tracebacks import Raised

#: What drivers, the kernel and native runtimes say of a device: it explains an error beside it.
_DRIVER = re.compile(
    r"NVRM: |\bXid\b|[Mm]emory access fault by GPU|HSA_STATUS_|\bHW Exception\b|amdgpu\b|\[METAL\]"
    r"|TT_(?:THROW|FATAL)|oom-killer|OOMKilled|^Abort was called"
)
#: What explains an error beside it, or in its words: compilers, what ranks talk through, the hub's client.
_EXPLAINS = re.compile(
    r"rocBLAS error|[Aa]ssertion [`'].*failed|\.cuh?\b|\.py\"?:\d+:\d+\)?: error|^LLVM ERROR|[NRH]?CCL_ERROR"
    r"|RESOURCE_EXHAUSTED|thrown while requesting|NEURON_CC_WRAPPER|\bfatal error: |thread: \[\d+,\d+,\d+\]"
    r"|^(?:nvcc|ptxas|cicc|ninja|gcc|g\+\+|cc1plus|clang\S*|hipcc|ld|collect2|cmake|make)\b|UR_RESULT_"
    r"|(?:[Cc]uda|CUDA|HIP) failure:? (?:\d+ )?'"
    r"|: (?:\S*/)?(?:nvcc|ptxas|ninja|gcc|g\+\+|cc|c\+\+|hipcc|clang\S*|ld): (?:command )?not found"
    r"|NCCL WARN|NIXL_ERR_|\bEL\d{4}\b|\bacl\w+ failed|Failed to get device capability"
)
#: How vLLM's own programs, and container engines, begin the line that says why nothing starts.
_PARSER = re.compile(
    r"^(?:vllm|\S+\.py|\S+/vllm)(?: [\w.-]+)*: error: |^error: (?:unexpected|unrecognized) |^\S*/?vllm: "
)
_ENGINE = re.compile(r"^(?:docker: )?Error(?: response from daemon)?: |^nvidia-container-cli: ")
_EVENT = re.compile(r"\bkubelet\b")
#: What a kernel, a shell or the C library says of a process that ended.
_ENDED = re.compile(
    r"^(?:Killed|Aborted|Bus error|Segmentation fault|Illegal instruction)\b|: line \d+: +\d+ \w+"
    r"|core dumped|^terminate called|^Fatal Python error|^libc\+\+abi: |[Ss]egfault|Caught signal"
    r"|^(?:double free|realloc\(\)|free\(\)|malloc\(\)|munmap_chunk\(\)|corrupted )"
)
#: A line that begins with another program's name, or with who says it; and a heading, or a comment.
_ELSE = re.compile(
    r"^[a-z/][\w.+/-]*(?:\[\d+\])?: (?!error: )|^[A-Z][^:\]]* (?:says?|said|asks?|asked|wrote): "
)
_NOTED = re.compile(r"^#")
#: What a person, or Python, ends a program with.
OVER = re.compile(r"Interrupt|Exit|CancelledError")
#: Of the errors before a line, so many may have it in their words.
_NEAR = 14
_FAILED = re.compile(r"(?:\([^)]*\)\s*)*(?:(?:ERROR|CRITICAL)\b|(?:.{,60}\] ?)?Traceback \(most recent)")


#: Words before those of a cause, in a sentence that somebody writes; none where the line is an error's.
_A_WORD, _SENTENCE = re.compile(r"(?<!\S)[A-Za-z']{2,}(?=[\s,;])"), 3
_CLASS = re.compile(r"\(?(?:\w+\.)*\w*Error: ?$")
_AN_ERROR = re.compile(r"(?i)\b\w*(?:error|exception|fatal|fail)")


class Standing(IntEnum):
    """Who says a line, the weightier the greater."""

    ELSE = 0
    NOTED = 1
    SOMEBODY = 2
    ENDED = 3
    BARE = 4
    FIRM = 5


def without_bystanders(texts: Sequence[str], errors: Sequence[Raised], phase: str) -> Sequence[str]:
    """The lines, without those that name a cause and count for less than what else the log shows.

    Args:
        texts: the log, as `logtext.spread` gives it.
        errors: what it raises, in its order; those that it survived are set aside.
        phase: how far the start came. Who has started is not ended by what somebody else says.
    """
    firm = {one.number: _firmness(one, texts) for one in errors if not one.wrapper}
    lines = ((n, line) for n, line in telling(texts) if _names(n, line))
    said = {n: firm.get(n) or _standing(n, line, errors, texts) for n, line in lines}
    said |= {one.number: firm[one.number] for one in errors if _counts(one, phase)}
    failed = errors or any(_FAILED.match(text) for text in texts)
    ran = Standing.NOTED if any(speaks(text) for text in texts) else Standing.ELSE
    least = Standing.ENDED if phase == STARTED else Standing.SOMEBODY if failed else ran
    refused = [Standing.FIRM for text in texts if _PARSER.match(text)]
    refused += [Standing.BARE for text in texts if _ENGINE.match(text)]
    least = max([least, *refused])
    most = max([least, *(standing for standing, _ in said.values())])
    less = {number for number, (standing, stays) in said.items() if standing < most and not stays}
    return ["" if number in less else text for number, text in enumerate(texts, 1)] if less else texts


def _counts(one: Raised, phase: str) -> bool:
    return not (one.wrapper or is_request(one, phase))


def _number(one: Raised) -> int:
    return one.number


def _names(number: int, line: str) -> bool:
    return not only_warns(line) and (any(matches(number, line, ran=True)) or line_kind(line) is not None)


def _standing(
    number: int, line: str, errors: Sequence[Raised], texts: Sequence[str]
) -> tuple[Standing, bool]:
    """Who says a line that names a cause; and whether it stays whatever else the log shows."""
    near = errors[: bisect.bisect_right(errors, number, key=_number)][-_NEAR:]
    kind, one = line_kind(line), next((one for one in near if covers(one, number, texts)), None)
    if one is not None and one.number < number and _is_apart(line, one):
        one = None
    if one is not None and one.wrapper:
        tells = kind is not None and not kind.cause.follows
        return (Standing.FIRM if tells else Standing.SOMEBODY), True
    if one is not None:
        return _firmness(one, texts)
    return _unraised(line, follows=kind is not None and kind.cause.follows)


def _unraised(line: str, *, follows: bool) -> tuple[Standing, bool]:
    """The same of a line that belongs to no error."""
    if _DRIVER.search(line) or _EXPLAINS.search(line):
        return Standing.FIRM, True
    if follows:
        return Standing.ENDED, True
    signed = _PARSER.match(line) or _EVENT.search(line) or unprefixed(line) != line
    shapes = (
        (Standing.BARE, _ENGINE.match),
        (Standing.ENDED, _ENDED.search),
        (Standing.ELSE, _ELSE.match),
        (Standing.NOTED, _NOTED.match),
    )
    said = next((standing for standing, fits in shapes if fits(line)), Standing.SOMEBODY)
    return (Standing.FIRM if signed else said), False


def is_hearsay(number: int, texts: Sequence[str]) -> bool:
    """Whether a line that names a cause is nobody's error, and no other line says the same: one witness.

    Args:
        number: the line, counted from 1.
        texts: the log, as `logtext.spread` gives it.
    """
    line = texts[number - 1]
    own = cause_in(number, line)
    match = own.cause.pattern.search(line) if own else None
    if own is None or match is None or unprefixed(line) != line:
        return False
    before = _CLASS.sub("", line[: match.start()])
    if _AN_ERROR.search(before) or len(_A_WORD.findall(before)) < _SENTENCE:
        return False
    standing, stays = _standing(number, line, raised(texts), texts)
    if stays or standing > Standing.SOMEBODY:
        return False
    others = (cause_in(n, text) for n, text in telling(texts) if text != line)
    return not any(one is not None and one.cause == own.cause for one in others)


def _is_apart(line: str, one: Raised) -> bool:
    """Whether a line behind an error is not of its message, although nothing else stands between them."""
    if _DRIVER.search(line):
        return True
    if _EXPLAINS.search(line) or line.startswith(" "):
        return False
    first = one.text.partition("\n")[0]
    told = replace(one, text=first)
    known = not first.endswith((":", ",")) and (cause_in(0, f"{one.error}: {first}") or kind_of(told, ""))
    return bool(known) or any(shape.match(line) for shape in (_ELSE, _NOTED, _ENDED, _PARSER, _ENGINE))


def _firmness(one: Raised, texts: Sequence[str]) -> tuple[Standing, bool]:
    """An error by how it is written; what only follows from another, or ends a program, outweighs little."""
    kind, line = kind_of(one, ""), texts[one.number - 1]
    if OVER.search(one.error) or (kind is not None and kind.cause.follows):
        return Standing.ENDED, True
    bare = is_remark(one, texts) and unprefixed(line) == line
    return (Standing.BARE if bare else Standing.FIRM), False
