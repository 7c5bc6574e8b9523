"""What carried a log and is not known by name: the prefix before vLLM's own lines, learned from the log."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from pytest_vllm.launch.remembered import remembered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: How a line begins that Python or vLLM wrote.
_PROCESS = r"\((?:APIServer|EngineCore|Engine|Worker|VllmWorker|RayWorker)\w*(?:[ )]|\()"
_BEGIN = (
    rf"(?:Traceback \(most recent call last\):|{_PROCESS}|  File \"[^\"]+\", line \d+, in "
    r"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d[ .]|(?:INFO|WARNING|ERROR): {4,}\S)"
)
_ERROR = r"(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?:: |$)"
_OWN = re.compile(rf"\s*(?:{_BEGIN}|{_ERROR})")
_STARTS = re.compile(rf"{_BEGIN}|{_ERROR}|\([A-Za-z][\w:.-]*[ (][^()]*pid=\d+[^()]*\)")
_CARRIED = re.compile(rf"([^\"'`]{{1,160}}?)(?={_BEGIN})|([^\"'`\d]*\d[^\"'`]*?[\s|>])(?={_ERROR})")
_SPEAKS = re.compile(
    rf"{_PROCESS}|\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d[ .]"
    r"|[/\\]vllm[/\\]\w+"
)
_SOURCE = re.compile(r"([A-Za-z][\w.-]*)\s+\| |\[pod/([^\]]+)\] ?")
_ENDS = re.compile(r"[\s|:\]>]$")
_VARIES = re.compile(r"[\w.:+,/-]*\d[\w.:+,/-]*")
_SPACES, _END = re.compile(r"(?:\\ )+(?=.*\S)"), re.compile(r"(?:\\ |\s)+$")
_LEAST, _MOST, _FEW = 2, 4, 20


def carriers(lines: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern of what stands before each line; None when nothing does.

    A prefix counts when at least two lines have it that begin as vLLM's or Python's do behind it. Its words
    that hold figures (stamps, pods, pids) may differ from line to line.
    """
    seen: Counter[str] = Counter()
    for line in lines:
        if _OWN.match(line):
            continue
        found = _CARRIED.match(line)
        before = (found[1] or found[2]) if found else ""
        if found is None or not _ENDS.search(before):
            continue
        if "pid=" in before and not re.match(_PROCESS, line[found.end() :]):
            continue  # a process of vLLM's, as it writes some of them
        seen[_shape(before)] += 1
    shapes = [shape for shape, times in seen.most_common(_MOST) if times >= _LEAST]
    return re.compile("|".join(f"^{shape}" for shape in shapes)) if shapes else None


def begins(line: str) -> bool:
    """Whether a line begins as vLLM, or Python's report of an error, begins one."""
    return bool(_STARTS.match(line))


@remembered
def speaks(line: str) -> bool:
    """Whether a line is of vLLM's, wherever it begins: its process, its level and stamp, its code."""
    return bool(_SPEAKS.search(line))


def foreign(lines: Sequence[str]) -> frozenset[int]:
    """Indices of lines that another container wrote, of a log of several (compose, `kubectl --prefix`).

    Those of a container that says nothing as vLLM does, beside one that does.
    """
    whose = [found[1] or found[2] if (found := _SOURCE.match(line)) else "" for line in lines]
    vllm = {who for who, line in zip(whose, lines, strict=True) if who and speaks(line)}
    few = len(set(whose)) <= _FEW
    return frozenset(n for n, who in enumerate(whose) if few and vllm and who and who not in vllm)


def _shape(prefix: str) -> str:
    """The prefix as a pattern."""
    parts: list[str] = []
    at = 0
    for found in _VARIES.finditer(prefix):
        parts += [_fixed(prefix[at : found.start()]), r"(?=[\w.:+,/-]*\d)[\w.:+,/-]+"]
        at = found.end()
    return "".join([*parts, _fixed(prefix[at:])])


def _fixed(text: str) -> str:
    return _END.sub(r"\\s?", _SPACES.sub(" +", re.escape(text)))
