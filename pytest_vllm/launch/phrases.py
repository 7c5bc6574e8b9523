"""Causes by an error's own words, also where no line begins with them, and by its kind."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.launch.kinds import kinds, of_kind
from pytest_vllm.launch.tracebacks import Raised, within
from pytest_vllm.launch.words import Found, cause_in, only_warns, telling

if TYPE_CHECKING:
    from collections.abc import Sequence

_BROKEN = 4
_MENTION = re.compile(
    r"(?:^|[\s\]|>:(])(?P<error>(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)): (?P<said>\S.*)"
)


def by_quotation(errors: Sequence[Raised]) -> Found | None:
    """A cause whose words only a wrapper quotes: its line begins with the wrapper's own."""
    said = (cause_in(one.number, f"{one.error}: {one.text.partition(chr(10))[0]}") for one in errors)
    return next((found for found in said if found), None)


def by_joined(lines: Sequence[str], errors: Sequence[Raised], kind: Found | None) -> Found | None:
    """A cause whose words stand in the first sentence of an error that was broken into two lines."""
    for one in errors:
        said = one.text.partition("\n")[0]
        asked = not one.wrapper and (kind is None or one.number == kind.number)
        if not asked or f": {said}" in lines[one.number - 1]:
            continue
        shapes = (f"Error: {said}", f"{one.error}: {said}")
        if found := next((found for shape in shapes if (found := cause_in(one.number, shape))), None):
            return found
    return None


def by_broken(errors: Sequence[Raised]) -> Found | None:
    """A cause whose words a terminal, or a page, broke into several lines."""
    for one in errors:
        if not one.wrapper and "\n" in one.text:
            whole = f"{one.error}: {' '.join(one.text.splitlines()[:_BROKEN])}"
            if found := cause_in(one.number, whole):
                return found
    return None


def by_mention(lines: Sequence[str]) -> Found | None:
    """A cause by an error that stands within a line, of a log that shows none where Python writes it."""
    for number, line in telling(lines):
        if (named := _MENTION.search(line)) is None or only_warns(line):
            continue
        one = Raised(number, "", named["error"], named["said"], ())
        found = cause_in(number, f"{one.error}: {one.text}") or kind_of(one, "")
        if found is not None:
            return replace(found, line=line, mentioned=True)
    return None


def kind_of(one: Raised, phase: str) -> Found | None:
    told = within(one)
    kind = next((kind for kind in kinds() if told and kind.sure and kind.fits(told, phase)), None)
    kind = kind or next((kind for kind in kinds() if kind.fits(one, phase)), None)
    if kind is None:
        return None
    said = one.text.partition("\n")[0]
    return of_kind(kind, one.number, f"{one.error}: {said}" if said else one.error)
