"""Signs that a text was written by a broken engine, not by a weak model."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby

#: The commonest short words of the languages in which models like to answer.
_COMMON = (
    "a an and are as at be but by for from had has have he her his i in is it its my not of on or our she so "
    "that the their there they this to was we were which will with you your "
    "der die das und ist ein eine mit zu auf le la les et est un une de des en el los que y il di e che o do "
    "da os um uma het een van"
)
COMMON = frozenset(_COMMON.split())
RUN, SHARE, REPEATED, FEW = 24, 0.5, 12, 12


def run_fault(text: str) -> str:
    """One character, or one word, over and over; empty when the text has no such run."""
    visible = "".join(text.split())
    longest = max(((len(list(group)), char) for char, group in groupby(visible)), default=(0, ""))
    if longest[0] >= RUN:
        return f"{longest[1]!r} {longest[0]} times in a row"
    most = Counter(visible).most_common(1)
    if len(visible) >= RUN and most and most[0][1] > SHARE * len(visible):
        return f"{most[0][0]!r} is {most[0][1]} of {len(visible)} characters"
    words = max(((len(list(group)), word) for word, group in groupby(text.split())), default=(0, ""))
    return f"{words[1]!r} {words[0]} times in a row" if words[0] >= REPEATED else ""


def salad_fault(text: str) -> str:
    """Why a text is not language: hardly one of its words is a common one; empty when it may be language."""
    words = re.findall(r"[^\W_]+(?:['\u2019][^\W_]+)?", text)
    plain = [word for word in words if word.isascii()]
    if len(plain) < FEW:
        return ""
    common = sum(word.lower() in COMMON for word in plain)
    return f"{common} of {len(plain)} words are common ones" if common < 0.06 * len(plain) else ""
