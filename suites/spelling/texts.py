"""Texts that a constraint leaves as the only ones: what a decoder of tokens gets wrong at some boundary."""

from __future__ import annotations

from typing import Any

#: What blanks can be: an indentation by blanks and tabs, several in a row, at the end of a line and of the
#: text, before a mark, empty lines; marks that are written with backslashes or quoted.
CODE = (
    "def fly(bird):\n"
    '    if bird == "heron":\n'
    "        return [1, 22,  333]\n"
    "\n"
    "\n"
    "\tname = 'it''s'  # a  b   c \n"
    "    path = \"C:\\new\\t\" + '\\\\' + `x` ;\n"
    " <b>1 < 2 & 3 > 2</b> {{x}} $y %z ~ ^ | @ . , !\n"
    "- end - \n"
)
#: Scripts side by side, with blanks, line breaks and marks between them; letters of several code points.
SCRIPTS = (
    "Zürich — “naïve” œuvre, 10 €\n"
    "Привет, мир! שָׁלוֹם عالم\n"
    "日本語 と 한국어 和 中文。\n"
    "สวัสดี नमस्ते 👩‍👩‍👧 👍🏽 🇫🇷 e\u0301 ∑x²≠½"
)
#: More tokens than the answers of other suites have, no two lines alike.
LINES = 40
LONG = "".join(f"{at:02}. heron {at * 37 % 97} flies, {at * 53 % 89} swim;\n" for at in range(LINES))
#: Tokens of such a line at most.
EACH = 24
#: The tag ends the thinking of servers that constrain after it.
ASKED = "Write:"
PROMPT = f"<think>\n</think>\n{ASKED}"
#: A stop string that no text holds, and that begins as lines do: what may become one is held back.
ABSENT = "\n    quagga"
#: Two that the code holds, over several tokens, early and late: they begin and end within one.
WITHIN, LATE = 'ron":\n        retu', "!\n- en"
MEANT = set("\\.^$*+?()[]{}|")
ESCAPED = {"\n": "\\n", "\t": "\\t"}


def only(text: str) -> dict[str, Any]:
    """The constraint that leaves this text alone: an expression, in which line breaks can be written."""
    spelt = "".join(ESCAPED.get(char) or (f"\\{char}" if char in MEANT else char) for char in text)
    return {"structured_outputs": {"regex": spelt}}
