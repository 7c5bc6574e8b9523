"""A traceback as Python writes it, whatever printed it: Rich, IPython, pytest and loguru write their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_PATH = r"(?:~|/|[A-Za-z]:[/\\]|<)?[^\s:\"'()\[\]│]*\.pyx?"
_FUNCTION = r"(?P<function>[\w.<>]+)"
#: loguru marks the frame that caught it.
_CAUGHT = re.compile(r"^> (?=File \"[^\"]+\", line \d+, in )")
#: `File ~/x.py:12, in Engine.step(self)`; older ones `/x.py in step(self)`, on a page with a link.
_IPYTHON = re.compile(rf"^File (?P<path>{_PATH}):(?P<line>\d+), in {_FUNCTION}(?=\(|$)")
_NOTEBOOK = re.compile(rf"^\[?(?P<path>{_PATH})\]?(?:\([^)\s]*\))? in {_FUNCTION}\(.*\)$")
#: `x.py:12: in step`, of pytest; `x.py:12 in step` in Rich's box.
_PYTEST = re.compile(rf"^(?P<path>{_PATH}):(?P<line>\d+): in {_FUNCTION}$")
_RICH = re.compile(rf"^(?:│ )?(?P<path>{_PATH}):(?P<line>\d+) in {_FUNCTION}\s*│?$")
#: `x.py:12, step -> inner` and `x.py:12 step`, as a person writes them down.
_WRITTEN = re.compile(rf"^(?P<path>{_PATH})(?::(?P<line>\d+)(?:, | +)|, | {{2,}})(?:[\w.]+ -> )*{_FUNCTION}$")
_FRAMES = (_IPYTHON, _NOTEBOOK, _PYTEST, _RICH, _WRITTEN)
#: The sources that are shown below such a frame, and the values beside them.
_SHOWN = re.compile(r"^(?:-+> ?|\s*❱\s*|│?\s*)?\d+(?:\s|│|$)|^\s*[│╭╰├└]|^>\s{2,}|^\s*\(\.\.\.\)$|^-+>\s")
_SAID = re.compile(r"^E {2,}(?=(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit)\b)")
_BOXED = re.compile(r"^╭─+ Traceback \(most recent call last\) ─+╮?$")


def framed(texts: Sequence[str]) -> list[str]:
    """The lines with frames as Python writes them, without what is shown beside them; others stay.

    Args:
        texts: a log's lines, each without its prefix.
    """
    found: list[str] = []
    below = False
    for text in texts:
        line = _CAUGHT.sub("  ", text.lstrip() if text.lstrip().startswith("> File") else text)
        frame = next((hit for shape in _FRAMES if (hit := shape.match(text.strip()))), None)
        if frame is not None:
            function = frame["function"].rpartition(".")[2] or frame["function"]
            number = frame.groupdict().get("line") or "0"
            line = f'  File "{frame["path"]}", line {number}, in {function}'
        elif _BOXED.match(text.strip()):
            line = "Traceback (most recent call last):"
        elif below and _SHOWN.match(text):
            line = ""
        below = frame is not None or line.startswith('  File "') or (below and (not line or line[:1] == " "))
        found.append(_SAID.sub("", line))
    return found
