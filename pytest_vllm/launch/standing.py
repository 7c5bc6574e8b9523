"""How much a line counts that names a cause, by who says it: an error that was raised, vLLM, others."""

from __future__ import annotations

import bisect
import re
from enum import IntEnum
from typing import TYPE_CHECKING

from pytest_vllm.launch.areas import is_request
from pytest_vllm.launch.kinds import line_kind
from pytest_vllm.launch.logtext import unprefixed
from pytest_vllm.launch.phases import STARTED
from pytest_vllm.launch.phrases import kind_of
from pytest_vllm.launch.stray import covers, is_remark
from pytest_vllm.launch.words import matches, only_warns, telling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.launch.tracebacks import Raised

#: What explains an error that was raised, although it stands beside it: drivers, the kernel's own log, native
#: parts of the engine, compilers, and the hub's client.
_EXPLAINS = re.compile(
    r"NVRM: |\bXid\b|[Mm]emory access fault by GPU|HSA_STATUS_|\bHW Exception\b|amdgpu|UR_RESULT_|\[METAL\]"
    r"|rocBLAS error|[Aa]ssertion [`'].*failed|\.cuh?\b|\.py\"?:\d+:\d+\)?: error|^LLVM ERROR|[NRH]?CCL_ERROR"
    r"|RESOURCE_EXHAUSTED|TT_(?:THROW|FATAL)|thrown while requesting|NEURON_CC_WRAPPER|oom-killer|OOMKilled"
    r"|^(?:nvcc|ptxas|cicc|ninja|gcc|g\+\+|cc1plus|clang\S*|hipcc|ld|collect2|cmake|make)\b|\bfatal error: "
    r"|^Abort was called|NIXL_ERR_|\bEL\d{4}\b|\bacl\w+ failed|Failed to get device capability"
    r"|thread: \[\d+,\d+,\d+\]"
)
#: How vLLM's own programs, container engines and kubelets begin the line that says why nothing starts.
_REFUSES = re.compile(
    r"^(?:vllm|\S+\.py|\S+/vllm)(?: [\w-]+)*: error: |^(?:docker: )?Error(?: response from daemon)?: "
    r"|^error: (?:unexpected|unrecognized) |^nvidia-container-cli: |^\S*/?vllm: "
)
_EVENT = re.compile(r"\bkubelet\b")
#: What a kernel, a shell or the C library says of a process that ended.
_ENDED = re.compile(
    r"^(?:Killed|Aborted|Bus error|Segmentation fault|Illegal instruction)\b|: line \d+: +\d+ \w+"
    r"|core dumped|^terminate called|^Fatal Python error|^libc\+\+abi: |[Ss]egfault|Caught signal"
    r"|^(?:double free|realloc\(\)|free\(\)|malloc\(\)|munmap_chunk\(\)|corrupted )"
)
#: A line that begins with another program's name, a heading, a comment, or with who says it.
_ELSE = re.compile(
    r"^[a-z/][\w.+/-]*(?:\[\d+\])?: (?!error: )|^#|^[A-Z][^:\]]* (?:says?|said|asks?|asked|wrote): "
)
#: What a person, or Python, ends a program with.
_OVER = re.compile(r"Interrupt|Exit|CancelledError")
#: Of the errors before a line, so many may have it in their words.
_NEAR = 14
_FAILED = re.compile(r"(?:\([^)]*\)\s*)*(?:(?:ERROR|CRITICAL)\b|(?:.{,60}\] ?)?Traceback \(most recent)")


class Standing(IntEnum):
    """Who says a line, the weightier the greater."""

    ELSE = 0
    SOMEBODY = 1
    ENDED = 2
    BARE = 3
    FIRM = 4


def without_bystanders(texts: Sequence[str], errors: Sequence[Raised], phase: str) -> Sequence[str]:
    """The lines, without those that name a cause and count for less than what else the log shows.

    Args:
        texts: the log, as `logtext.spread` gives it.
        errors: what it raises, in its order; those that it survived are set aside.
        phase: how far the start came. Who has started is not ended by what somebody else says.
    """
    said = {n: _standing(n, line, errors, texts) for n, line in telling(texts) if _names(n, line)}
    own = [one for one in errors if not (one.wrapper or is_request(one, phase))]
    said |= {one.number: _firmness(one, texts) for one in own}
    failed = errors or any(_FAILED.match(text) for text in texts)
    least = Standing.ENDED if phase == STARTED else Standing.SOMEBODY if failed else Standing.ELSE
    if any(_REFUSES.match(text) for text in texts):
        least = Standing.FIRM
    most = max([least, *(standing for standing, _ in said.values())])
    less = {number for number, (standing, stays) in said.items() if standing < most and not stays}
    return ["" if number in less else text for number, text in enumerate(texts, 1)] if less else texts


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
    apart = not _EXPLAINS.search(line) and any(one.match(line) for one in (_ELSE, _ENDED, _REFUSES))
    if one is not None and not (one.number < number and apart):
        tells = kind is not None and not kind.cause.follows
        quoted = (Standing.FIRM if tells else Standing.SOMEBODY), True
        return quoted if one.wrapper else _firmness(one, texts)
    if _EXPLAINS.search(line):
        return Standing.FIRM, True
    if kind is not None and kind.cause.follows:
        return Standing.ENDED, True
    if _REFUSES.match(line) or _EVENT.search(line) or unprefixed(line) != line:
        return Standing.FIRM, False
    if _ENDED.search(line):
        return Standing.ENDED, False
    return (Standing.ELSE if _ELSE.match(line) else Standing.SOMEBODY), False


def _firmness(one: Raised, texts: Sequence[str]) -> tuple[Standing, bool]:
    """An error by how it is written; what only follows from another, or ends a program, outweighs little."""
    kind, line = kind_of(one, ""), texts[one.number - 1]
    if _OVER.search(one.error) or (kind is not None and kind.cause.follows):
        return Standing.ENDED, True
    bare = is_remark(one, texts) and unprefixed(line) == line
    return (Standing.BARE if bare else Standing.FIRM), False
