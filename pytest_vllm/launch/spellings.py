"""A log's lines as vLLM spells them: what a page, a vendor or `grep -n` made of them is undone."""

from __future__ import annotations

import html
import itertools
import re
from typing import TYPE_CHECKING

from pytest_vllm.launch.carriers import begins

if TYPE_CHECKING:
    from collections.abc import Sequence

_ENTITY = re.compile(r"&(?:quot|lt|gt|amp|apos|#\d{2,4}|#x[0-9a-fA-F]{2,4});")
#: NIM's stamps have the year, and no bracket before the file.
_YEAR = re.compile(
    r"\b(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) \d{4}-(?P<stamp>\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,]\d+)?"
)
#: A logger of one's own may write a process in square brackets.
_SQUARE = re.compile(
    r"\[(?P<process>(?:APIServer|EngineCore|VllmWorker|RayWorker|Worker)\w*(?: [\w=-]+)*[ _]pid=\d+)\](?= |$)"
)
_NUMBER = re.compile(r"\s*(?:[Ll]ine )?(?P<number>\d{1,7})[:\-\t]")
_SEPARATOR = "--"


def spelt(line: str) -> str:
    """The line with vLLM's own stamps, brackets and quotes."""
    if "&" in line and _ENTITY.search(line):
        line = html.unescape(line)
    if " pid=" in line and "[" in line:
        line = _SQUARE.sub(r"(\g<process>)", line)
    return _YEAR.sub(r"\g<level> \g<stamp>", line, count=1)


def unnumbered(lines: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines without numbers that stand before all of them, and rise: `grep -n`, `cat -n`, an editor's."""
    said = [text for _, text in lines if text.strip() and text != _SEPARATOR]
    found = [_NUMBER.match(text) for text in said]
    numbers = [int(one["number"]) for one in found if one]
    rises = all(one < other for one, other in itertools.pairwise(numbers))
    if not said or len(numbers) < len(said) or not rises:
        return list(lines)
    if not any(begins(text[one.end() :]) for text, one in zip(said, found, strict=True) if one):
        return list(lines)
    return [(number, text[one.end() :] if (one := _NUMBER.match(text)) else "") for number, text in lines]
