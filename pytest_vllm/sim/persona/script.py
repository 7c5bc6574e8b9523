"""What a request scripts: with a logits processor for it loaded, the model says that text and nothing else.

The field and its forms are those of the real engine's processor: `vllm_xargs` with `script`, a text or a list
of texts that are tokenised one by one, or with `forbidden`, which asks for those that a grammar forbade.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.errors import ApiError

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server

Body = dict[str, Any]
PROCESSOR = ":ScriptedProcessor"
_END = "</think>"


def script_of(server: Server, body: Body) -> list[str] | None:
    """The texts of a request's script, None without one. Raises ApiError for what is none."""
    loaded = server.settings.args.get("logits_processors") or ()
    if not any(str(one).endswith(PROCESSOR) for one in loaded):
        return None
    given = body.get("vllm_xargs") or {}
    if given.get("forbidden"):
        return [" ".join(f"{one}:{at}" for one, at in server.forbidden.items()) or "none"]
    script = given.get("script")
    if script is None:
        return None
    if isinstance(script, str):
        return [script]
    if isinstance(script, list) and all(isinstance(piece, str) for piece in script):
        return script
    raise ApiError(f"vllm_xargs.script is {script!r:.80}: a text or a list of texts")


def allow(server: Server, script: list[str], body: Body, constraint: Body | None) -> None:
    """Refuse a script that the request's grammar forbids, as far as that asks for JSON. Raises ApiError.

    That it was forbidden is kept, as of its first token: the simulator does not look for the place.
    """
    choice = body.get("tool_choice")
    forced = choice == "required" or isinstance(choice, dict)
    if not forced and not (constraint and constraint.keys() & {"json", "json_object"}):
        return
    _, _, answer = "".join(script).rpartition(_END)
    try:
        json.loads(answer)
    except ValueError:
        server.forbidden[hashlib.sha256("\0".join(script).encode()).hexdigest()[:12]] = 0
        raise ApiError("Internal server error", 500, "InternalServerError") from None
