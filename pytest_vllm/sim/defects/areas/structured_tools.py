"""Defects of the grammar behind calls that must come."""

from __future__ import annotations

from pytest_vllm.sim.defects.choose import failure, refused
from pytest_vllm.sim.defects.scope import CHAT

HERE = (CHAT,)

refused(
    "tools.required-refused",
    "A call that is required is refused by the server's own reading of the thoughts.",
    HERE,
    400,
    failure("1 validation error for list[function-wrap]: Invalid JSON", 400),
    lambda asked: asked.get("tool_choice") == "required",
    faults=["STRUCT-009"],
    catches=["tools.forced.answered"],
)
refused(
    "tools.forced-key-error",
    "A call that is required or named is a server error: the back end lacks structural tags.",
    HERE,
    500,
    failure("'triggers'"),
    lambda asked: asked.get("tool_choice") == "required" or isinstance(asked.get("tool_choice"), dict),
    faults=["STRUCT-027"],
    catches=["tools.forced.answered"],
)
