"""Arithmetic of a shell over whole numbers, worked out without running anything."""

from __future__ import annotations

import ast
import math
import operator
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SUMS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1),
    ast.Mod: lambda left, right: int(math.fmod(left, right)),
}


def whole_sum(text: str) -> int | None:
    """The value of whole numbers added, subtracted, multiplied, divided; None for what is more than that."""
    more = r"//|\*\*|\b0\d"  # whole division and powers of Python's own, and octal numbers
    if len(text) > 200 or not re.fullmatch(r"[-+*/%()\d\s]+", text) or re.search(more, text):
        return None
    try:
        return _worked_out(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError):
        return None


def _worked_out(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _worked_out(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in _SUMS:
        return _SUMS[type(node.op)](_worked_out(node.left), _worked_out(node.right))
    raise ValueError(ast.dump(node))
