"""What a scripted model says to each client, turn by turn, and the same in the markup of its parsers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm import Call, Script, Writer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm import Server

Turns = list[dict[str, Any]]

#: What a step needs whose call is forced.
FORCED = "forced call whose text is known here"
THOUGHT = "Let me look."
#: The file that agents are asked to write, and what is to stand in it.
FILE, WRITTEN = "answer.txt", "forty-two"
#: Mark of a prompt -> turns of the model: text, or calls.
SAYS: dict[str, Turns] = {
    "chat": [
        {"content": "The rain in Spain stays mainly in the plain \u2013 naïve, isn\u2019t it? \U0001f327"}
    ],
    "json": [{"content": json.dumps({"answer": "yes", "sure": True})}],
    "call": [
        {"content": "", "calls": [{"name": "weather", "arguments": {"city": "Tromsø"}}]},
        {"content": "It is sunny in Tromsø."},
    ],
    "form": [
        {
            "content": json.dumps({"answer": "yes", "sure": True}),
            "calls": [{"name": "Verdict", "arguments": {"answer": "yes", "sure": True}}],
            "forced": True,
        }
    ],
    "codex": [
        {
            "content": "I write the file.",
            "calls": [
                {"name": "exec_command", "arguments": {"cmd": f"printf {WRITTEN} > {FILE}"}},
            ],
        },
        {"content": "The file is written."},
    ],
    "qwen-code": [
        {
            "content": "",
            "calls": [
                {
                    "name": "run_shell_command",
                    "arguments": {
                        "command": f"printf {WRITTEN} > {FILE}",
                        "description": "Write the file",
                        "is_background": False,
                    },
                },
            ],
        },
        {"content": "The file is written."},
    ],
}


def texts(server: Server) -> dict[str, list[str]]:
    """Every turn as a model of the server's parsers writes it."""
    return {mark: [written(server, turn) for turn in turns] for mark, turns in SAYS.items()}


def written(server: Server, turn: Mapping[str, Any]) -> str:
    """One turn in the parsers' markup; a call that is forced is its arguments alone."""
    said = [] if turn.get("forced") else turn.get("calls", ())
    calls = tuple(Call(one["name"], one["arguments"]) for one in said)
    thinking = THOUGHT if server.args.get("reasoning-parser") else None
    return Writer.of(server.args).write(Script(thinking, turn["content"], calls))


def wishes(
    server: Server, steps: Mapping[str, Sequence[str]], context: int
) -> tuple[list[str], dict[str, str]]:
    """The steps that this server can be asked for, and why the others cannot: step -> what it lacks.

    Args:
        server: what it can do.
        steps: the capabilities that each needs.
        context: tokens that the client's own instructions and tools need; 0: next to none.
    """
    if context and server.max_model_len and server.max_model_len < context:
        why = f"it needs a context of {context} tokens, and the server's is {server.max_model_len}"
        return [], dict.fromkeys(steps, why)
    lacks = {step: [one for one in needs if not _can(server, one)] for step, needs in steps.items()}
    left = {step: f"the server has no {', '.join(names)}" for step, names in lacks.items() if names}
    return [step for step in steps if step not in left], left


def _can(server: Server, name: str) -> bool:
    """Where nothing says which call a model makes, it has to be made to call.

    How a call has to be written that one named tool is forced to is known of one parser here.
    """
    if name == FORCED:
        known = server.args.get("tool-call-parser") == "hermes"
        return known if server.can("scripted") else server.can("tools.required")
    if name == "tools" and not server.can("scripted"):
        return server.can("tools") and server.can("tools.required")
    return server.can(name)
