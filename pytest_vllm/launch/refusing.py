"""The words of a sentence that refuses something."""

from __future__ import annotations

import re

#: A sentence that refuses something: who raised it is not at fault, and says why itself.
REFUSES = re.compile(
    r"\A[^\n]*\b(?:only (?:supports?|supported|works?|accepts?|available|allowed|possible)"
    r"|only [^\n.]{1,80} (?:is|are) (?:supported|allowed|accepted|possible|valid)"
    r"|(?:not|un)(?: yet| currently)? ?supported|(?:does|do|did) not (?:yet |currently )?support|not allowed"
    r"|(?:is|are) required|requires? |(?:is|are) not (?:available|enabled|installed)"
    r"|(?:is|are) (?:not |in)compatible with|cannot be (?:used|combined|enabled|set)"
    r"|must (?:not )?be (?:set|enabled))"
)
