"""Scripts that were never said, because the server's own grammar forbids them: no reader is to blame.

Some parsers hold the calls of their models to a grammar. The scripted engine forces every token all the same,
the server then ends that request with an error, and what forbade which token is known to the processor alone:
it is asked once, after everything else.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pytest_vllm import only_if, short

from .answers import said

if TYPE_CHECKING:
    from pytest_vllm import Case, Recording

#: Shapes of reasoning that a grammar of calls has no place for.
ODD_SHAPES = ("twice", "call-inside", "call-unclosed")


def odd(case: Case) -> bool:
    """Whether a grammar may forbid a case: marks of the markup within an argument, and text after calls."""
    return bool(case.get("marker") or (case.get("after") and case.get("calls")))


def sayable(one: Recording, told: Recording, *, may_be: object = True) -> None:
    """Go on only if the script was said. Raises NotRun where the server's grammar forbade an odd one.

    Args:
        one: the answer to a script.
        told: the scripts that a grammar forbade, as the processor saw it.
        may_be: whether a grammar may forbid it: what every model of a parser writes must be allowed.

    Raises AssertionError where that is forbidden too.
    """
    at = forbidden_at(one, told)
    place = f"the server's grammar forbids its token {at}: {script_of(one)}"
    only_if(at is None or not may_be, f"this script was never said, {place}")

    assert at is None, f"every model of this parser writes so, and {place}"


def forbidden_at(one: Recording, told: Recording) -> int | None:
    """The token, from 0 on, at which a grammar ended an answer. None where it was not seen to do so."""
    if told.status != 200 or not broke_off(one):
        return None
    text = str((told.ok.get("choices") or [{}])[0].get("text") or "")
    places = dict(pair.split(":", 1) for pair in text.split() if ":" in pair)
    at = places.get(_digest(one), "")
    return int(at) if at.isdigit() else None


def broke_off(one: Recording) -> bool:
    """Whether the server ended the answer with an error of its own."""
    return one.status == 500 or (one.status == 200 and one.request.streams and bool(said(one).errors))


def script_of(one: Recording) -> str:
    """The script of a request, to quote."""
    return short("".join(_pieces(one)), 120)


def _pieces(one: Recording) -> list[str]:
    script = one.request.json["vllm_xargs"]["script"]
    return [script] if isinstance(script, str) else script


def _digest(one: Recording) -> str:
    """As the processor names a script."""
    pieces = _pieces(one)
    return hashlib.sha256("\0".join(pieces).encode()).hexdigest()[:12]
