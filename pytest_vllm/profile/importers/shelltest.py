"""Conditions of a shell: true, false, or not decided here; and whether that hangs on what lies outside."""

from __future__ import annotations

import fnmatch
import glob
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_vllm.profile.importers.shellvalue import Value, joined

if TYPE_CHECKING:
    from tree_sitter import Node

    from pytest_vllm.profile.importers.shellexpand import Expander

_NUMBERS = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_FILES = {"-f": Path.is_file, "-d": Path.is_dir, "-e": Path.exists, "-s": Path.is_file, "-r": Path.exists}


class Outcome(NamedTuple):
    """What a condition comes to.

    Args:
        truth: None where it cannot be decided here.
        outside: whether it hangs on the environment, on arguments or on files.
    """

    truth: bool | None
    outside: bool

    def inverse(self) -> Outcome:
        """The other way round."""
        return Outcome(None if self.truth is None else not self.truth, self.outside)


UNDECIDED = Outcome(None, outside=True)


def outcome(node: Node, expander: Expander) -> Outcome:
    """What a condition comes to."""
    inner = [
        child
        for child in node.children
        if child.type not in ("[", "]", "[[", "]]", "((", "))", "(", ")", ";")
    ]
    kind = node.type
    if kind in ("test_command", "parenthesized_expression", "compound_statement") and len(inner) == 1:
        return outcome(inner[0], expander)
    if kind == "redirected_statement":
        return outcome(inner[0], expander)
    if kind == "negated_command" and len(inner) == 2:
        return outcome(inner[1], expander).inverse()
    return _of_kind(kind, inner, node, expander)


def _of_kind(kind: str, inner: list[Node], node: Node, expander: Expander) -> Outcome:
    if kind == "command":
        return _command([one for one in inner if one.is_named], expander)
    if kind == "binary_expression" and len(inner) > 3:
        return _matching(inner, expander)
    if kind in ("binary_expression", "list") and len(inner) == 3:
        return _both((inner[0], inner[1], inner[2]), expander)
    if kind == "unary_expression" and len(inner) == 2:
        return _one((inner[0], inner[1]), expander)
    if kind in ("word", "string", "simple_expansion", "expansion", "concatenation", "raw_string", "number"):
        return _filled(_text(node, expander))
    return UNDECIDED


def _command(inner: list[Node], expander: Expander) -> Outcome:
    """`test …`, `true`, `false`; whether any other command succeeds is not known."""
    name = expander.script.text(inner[0]) if inner else ""
    if name in ("true", ":", "false"):
        return Outcome(name != "false", outside=False)
    if name != "test":
        return UNDECIDED
    values = [joined(expander.fields(one)) for one in inner[1:]]
    texts = [one.text for one in values]
    outside = any(one.outside for one in values)
    if len(values) == 2:
        return _unary(texts[0], values[1], expander)
    if len(values) == 3:
        return _compared(texts[1], values[0], values[2], exact=True)
    return Outcome(bool(texts and texts[0]), outside) if len(values) == 1 else UNDECIDED


def _both(sides: tuple[Node, Node, Node], expander: Expander) -> Outcome:
    left, operator, right = sides
    sign = expander.script.text(operator)
    if sign in ("&&", "||", "-a", "-o"):
        one, two = outcome(left, expander), outcome(right, expander)
        decisive = sign in ("||", "-o")
        for each in (one, two):
            if each.truth is decisive and not each.outside:
                return each
        truths = (one.truth, two.truth)
        found = decisive if decisive in truths else None if None in truths else not decisive
        return Outcome(found, one.outside or two.outside)
    if sign == "-eq" or sign in _NUMBERS:
        values = [_number(one, expander) for one in (left, right)]
        return _compared(sign, *values, exact=True)
    if left.type in ("unary_expression", "binary_expression") or right.type == "binary_expression":
        return UNDECIDED
    return _compared(
        sign, _text(left, expander), _text(right, expander), exact=right.type in ("string", "raw_string")
    )


def _matching(inner: list[Node], expander: Expander) -> Outcome:
    """`[[ $A == *"x"* ]]`: a pattern in pieces, of which those in quotes are but text."""
    left, operator, *pieces = inner
    sign = expander.script.text(operator)
    joins = all(one.end_byte == two.start_byte for one, two in itertools.pairwise(pieces))
    if sign not in ("=", "==", "!=") or not joins:
        return UNDECIDED
    return _compared(sign, _text(left, expander), _pattern(pieces, expander), exact=False)


def _pattern(pieces: list[Node], expander: Expander) -> Value:
    """A pattern of `[[` or `case`: what is quoted in it is but text."""
    found = Value()
    for one in pieces:
        if one.type == "concatenation":
            found += _pattern(one.children, expander)
            continue
        value = _text(one, expander)
        if one.type in ("string", "raw_string", "ansi_c_string"):
            value = value if value.literal else value.cut(glob.escape(value.text))
        found += value
    return found


def in_case(value: Value, patterns: list[Node], expander: Expander) -> Outcome:
    """Whether a value fits one of the patterns of an arm of `case`, with the bars between them."""
    groups: list[list[Node]] = [[]]
    for one in patterns:
        if one.type == "|":
            groups.append([])
        elif one.type not in ("(", "comment"):
            groups[-1].append(one)
    found = [_compared("==", value, _pattern(group, expander), exact=False) for group in groups if group]
    truths = [one.truth for one in found]
    truth = True if True in truths else None if None in truths else False
    return Outcome(truth, value.outside or any(one.outside for one in found))


def _compared(sign: str, left: Value, right: Value, *, exact: bool) -> Outcome:
    outside = left.outside or right.outside
    if left.literal or right.literal:
        return UNDECIDED
    if sign in ("=", "==", "!="):
        same = left.text == right.text if exact else fnmatch.fnmatchcase(left.text, right.text)
        return Outcome(same is (sign != "!="), outside)
    if sign == "=~":
        try:
            return Outcome(re.search(right.text, left.text) is not None, outside)
        except re.error:
            return UNDECIDED
    numbers = [int(one.text) if re.fullmatch(r"-?\d{1,15}", one.text) else None for one in (left, right)]
    if sign in _NUMBERS and None not in numbers:
        return Outcome(bool(_NUMBERS[sign](*numbers)), outside)
    return UNDECIDED


def _one(sides: tuple[Node, Node], expander: Expander) -> Outcome:
    operator, operand = sides
    sign = expander.script.text(operator)
    if sign == "!":
        return outcome(operand, expander).inverse()
    if operand.type == "binary_expression":
        return UNDECIDED
    return _unary(sign, _text(operand, expander), expander)


def _unary(sign: str, value: Value, expander: Expander) -> Outcome:
    if sign in ("-n", "-z"):
        filled = _filled(value)
        return filled if sign == "-n" else filled.inverse()
    if sign == "-v":
        known = value.text in expander.state.values
        return Outcome(known or value.text in expander.state.outer, outside=not known)
    if sign in _FILES and not expander.state.contained and not value.unknown:
        return Outcome(_FILES[sign](expander.state.folder / value.text), outside=True)
    return UNDECIDED


def _filled(value: Value) -> Outcome:
    return UNDECIDED if value.literal else Outcome(value.text != "", value.outside)


def _text(node: Node, expander: Expander) -> Value:
    if node.type in ("extglob_pattern", "regex"):
        return Value(expander.script.text(node).strip("\"'"))
    return expander.text(node)


def _number(node: Node, expander: Expander) -> Value:
    """A side of a comparison of numbers; inside of `(( ))` a bare name is a variable."""
    if node.type in ("variable_name", "word") and not expander.script.text(node).isdigit():
        name = expander.script.text(node)
        return expander.state.lookup(name, "", expander.script.line(node), f"${name}")
    return _text(node, expander)
