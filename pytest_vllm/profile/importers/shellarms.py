"""The arms of a branch, and what the state is behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.marks import unmarked
from pytest_vllm.profile.importers.shellvalue import Remark, Value, joined

if TYPE_CHECKING:
    from tree_sitter import Node

    from pytest_vllm.profile.importers.shellstate import State
    from pytest_vllm.profile.importers.shelltest import Outcome


#: Characters beyond which two values are said by what differs.
_LONG = 160
_Known = Value | tuple[Value, ...] | None


@dataclass(frozen=True)
class Arm:
    """One way through a branch.

    Args:
        found: what its condition comes to.
        shown: the condition as it is written.
        line: where.
        body: what is run.
    """

    found: Outcome
    shown: str
    line: int
    body: list[Node]


def taken_of(ways: list[tuple[Arm, State]]) -> tuple[Arm, State]:
    """The arm that is taken: the first that holds, of those that do not end the script."""
    alive = [way for way in ways if not way[1].ended] or ways
    open_ = next((way for way in alive if way[0].found.truth is None), alive[-1])
    last = open_ if ways[-1][1].ended else alive[-1]  # one of the others is taken where the rest ends
    return next((way for way in alive if way[0].found.truth), last)


def merged(ways: list[tuple[Arm, State]]) -> State:
    """The state behind a branch: that of the arm that is taken, with what the others would have made of it.

    An arm that ends the script is not taken: whoever imports the script means a server that starts.
    """
    arm, state = taken_of(ways)
    ends = _ends(ways)
    for other, there in ways:
        if there is state or (there.ended and not state.ended):
            continue
        deciding = other if other.body else arm
        state.asides += [one for one in there.asides if one not in state.asides]
        state.said |= there.said
        for name in sorted({*state.values, *there.values}):
            one, two = state.values.get(name), there.values.get(name)
            if _text(one) != _text(two):
                remark = _given(name, ends, deciding) if ends else _remark(name, one, two, deciding)
                if (one == () and two) or name in there.exported - state.exported:
                    state.asides.append(remark)
                    state.said |= {use for value in _values(two) for use in value.uses}
                known = _with(one, two, remark, state.outer.get(name, ""))
                state.values[name] = known if known is not None else Value()
            elif name in there.exported - state.exported and one is not None:
                text = f"{name} is exported only where `{deciding.shown}` holds: it is not here"
                state.asides.append(Remark(deciding.line, text))
                state.said |= {use for value in _values(one) for use in value.uses}
    return state


def _ends(ways: list[tuple[Arm, State]]) -> Arm | None:
    """The arm that holds and ends the script, where others are left to choose from; None otherwise."""
    holds = next((way for way in ways if way[0].found.truth), None)
    alive = [way for way in ways if not way[1].ended]
    if holds is None or not holds[1].ended or len(alive) < 2:
        return None
    return holds[0] if all(one.found.truth is False for one, _ in alive) else None


def _given(name: str, ends: Arm, arm: Arm) -> Remark:
    why = f"the script ends as it is called here (`{ends.shown}`, line {ends.line})"
    text = (
        f"{name} hangs on what the script is given (`{arm.shown}`), and {why}; write its value in its place"
    )
    return Remark(arm.line, text, fatal=True)


def _remark(name: str, one: _Known, two: _Known, arm: Arm) -> Remark:
    decided = (
        "is not decided here" if arm.found.truth is None else "is decided by what lies outside of the script"
    )
    here, else_ = _apart(_shown(one), _shown(two))
    return Remark(arm.line, f"{name} is {here}, or {else_}: `{arm.shown}` {decided}; {here} is taken")


def _apart(one: str, two: str) -> tuple[str, str]:
    """Two long lists of words by the words that differ, and those beside them."""
    if len(one) + len(two) < _LONG:
        return one, two
    quoted = one[:1] == two[:1] == "'"
    words = (
        [one.strip("'").split(" "), two.strip("'").split(" ")] if quoted else [one.split(" "), two.split(" ")]
    )
    least = min(map(len, words))
    first = next((at for at in range(least) if words[0][at] != words[1][at]), least)
    last = next((at for at in range(least - first) if words[0][-1 - at] != words[1][-1 - at]), least - first)
    before, behind = "… " * (first > 1), " …" * (last > 1)
    cut = [" ".join(part[max(first - 1, 0) : len(part) - last + (last > 0)]) for part in words]
    sign = "'" if quoted else ""
    return f"{sign}{before}{cut[0]}{behind}{sign}", f"{sign}{before}{cut[1]}{behind}{sign}"


def _with(one: _Known, two: _Known, remark: Remark, otherwise: str) -> _Known:
    """The value that is taken, with what has to be said of it; it stems from both arms."""
    if isinstance(one, tuple) and not one:
        return one
    first = one[0] if isinstance(one, tuple) else one if one is not None else Value(otherwise)
    uses = first.uses | {use for other in _values(two) for use in other.uses}
    found = replace(first, remarks=(*first.remarks, remark), uses=uses, outside=True)
    return (found, *one[1:]) if isinstance(one, tuple) else found


def _values(value: _Known) -> tuple[Value, ...]:
    return value if isinstance(value, tuple) else (value,) if value is not None else ()


def _text(value: _Known) -> object:
    if isinstance(value, tuple):
        return tuple(one.text for one in value)
    return (value.text, value.unknown) if value is not None else None


def _shown(value: _Known) -> str:
    if value == ():
        return "empty"
    found = joined(value) if isinstance(value, tuple) else value
    if not isinstance(found, Value):
        return "not set"
    if found.unknown:
        return "not known"
    return repr(unmarked(found.text))
