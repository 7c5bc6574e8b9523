"""Adapters: loaded and unloaded while the server runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.check.body import bad_request, read_json
from pytest_vllm.sim.errors import ApiError

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.http.server import Call

TEXT = ("content-type", "text/plain; charset=utf-8")


async def load(server: Server, call: Call) -> Reply:
    """Load an adapter from a path."""
    body = _fields(read_json(call.request), ("lora_name", "lora_path"))
    name, path = body["lora_name"], body["lora_path"]
    if not name or not path:
        raise ApiError("Both 'lora_name' and 'lora_path' must be provided.", 400, "InvalidUserInput")
    if name in server.settings.names:
        raise ApiError(
            f"The lora adapter '{name}' conflicts with a served base model.", 400, "InvalidUserInput"
        )
    if name in server.loras and not body.get("load_inplace"):
        text = (
            f"The lora adapter '{name}' has already been loaded. If you want to load the adapter in place, "
            "set "
        )
        raise ApiError(text + "'load_inplace' to True.", 400, "InvalidUserInput")
    if not server.settings.lora:
        raise ApiError("Call to add_lora method failed: LoRA is not enabled.", 500, "InternalServerError")
    if not _found(path):
        raise ApiError(f"Loading lora {name} failed: No adapter found for {path}", 404, "NotFoundError")
    server.loras[name] = path
    return Reply(200, f"Success: LoRA adapter '{name}' added successfully.".encode(), [TEXT])


async def unload(server: Server, call: Call) -> Reply:
    """Forget an adapter."""
    body = _fields(read_json(call.request), ("lora_name",))
    name = body["lora_name"]
    if not name:
        raise ApiError("'lora_name' needs to be provided to unload a LoRA adapter.", 400, "InvalidUserInput")
    if name not in server.loras:
        raise ApiError(f"The lora adapter '{name}' cannot be found.", 404, "NotFoundError")
    del server.loras[name]
    return Reply(200, f"Success: LoRA adapter '{name}' removed successfully.".encode(), [TEXT])


def _found(path: str) -> bool:
    return not path.startswith(("/", ".")) or Path(path).exists()


def _fields(body: Any, names: tuple[str, ...]) -> dict[str, Any]:
    given = body if isinstance(body, dict) else {}
    missing = [
        {"type": "missing", "loc": f"body.{name}", "msg": "Field required", "input": body}
        for name in names
        if not isinstance(given.get(name), str)
    ]
    if missing:
        raise bad_request(missing)
    return given


def static_adapters(modules: Any) -> dict[str, str]:
    """Adapters named by `--lora-modules NAME=PATH …` or as JSON."""
    found: dict[str, str] = {}
    for module in modules if isinstance(modules, list) else [modules] if modules else []:
        if module.lstrip().startswith("{"):
            entry = json.loads(module)
            found[entry["name"]] = entry["path"]
        else:
            name, _, path = module.partition("=")
            found[name] = path
    return found
