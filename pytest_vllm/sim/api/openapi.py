"""The OpenAPI document: the paths that are served, with the request schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.rest import scale_out
from pytest_vllm.sim.versions import facts

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server

HIDDEN = ("/docs", "/redoc", "/openapi.json", "/docs/oauth2-redirect")
#: From this version on routes that are off are not in it.
METRICS, HIDES_FROM = "/metrics", "0.32.0"
BODIES = {
    "/v1/chat/completions": "ChatCompletionRequest",
    "/v1/chat/completions/batch": "BatchChatCompletionRequest",
    "/v1/completions": "CompletionRequest",
    "/v1/responses": "ResponsesRequest",
    "/v1/messages": "AnthropicMessagesRequest",
    "/v1/messages/count_tokens": "AnthropicCountTokensRequest",
    "/detokenize": "DetokenizeRequest",
    "/tokenize": "TokenizeCompletionRequest",
}


def openapi(server: Server) -> dict[str, Any]:
    """The document of the routes that this server has."""
    paths: dict[str, Any] = {}
    for path, methods in server.routes.items():
        if path in HIDDEN:
            continue
        if scale_out in methods.values() and server.settings.version >= HIDES_FROM:
            continue  # off unless asked for
        shown = [method for method in methods if method not in ("*", "HEAD", "OPTIONS")]
        shown = ["GET"] if path == METRICS else shown
        paths[path] = {method.lower(): _operation(path, method) for method in shown}
    schemas = {name: _titled(name, schema) for name, schema in facts("schema")["schemas"].items()}
    root = server.settings.args.get("root_path")
    return {
        "openapi": "3.1.0",
        "info": {"title": "FastAPI", "version": "0.1.0"},
        **({"servers": [{"url": root.rstrip("/")}]} if root else {}),
        "paths": paths,
        "components": {"schemas": _with_paths(schemas)},
    }


def _operation(path: str, method: str) -> dict[str, Any]:
    name = path.strip("/").replace("/", "_").replace("{", "").replace("}", "") or "root"
    operation: dict[str, Any] = {
        "summary": name.replace("_", " ").title(),
        "operationId": f"{name}_{method.lower()}",
        "responses": {
            "200": {"description": "Successful Response", "content": {"application/json": {"schema": {}}}}
        },
    }
    if path in BODIES and method == "POST":
        reference = {"$ref": f"#/components/schemas/{BODIES[path]}"}
        operation["requestBody"] = {"content": {"application/json": {"schema": reference}}, "required": True}
        for status in ("400", "404", "500"):
            operation["responses"][status] = {"description": "Error"}
    return operation


def _titled(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "title": name}


def _with_paths(node: Any) -> Any:
    if isinstance(node, dict):
        return {
            key: f"#/components/schemas/{value}"
            if key == "$ref" and isinstance(value, str)
            else _with_paths(value)
            for key, value in node.items()
        }
    return [_with_paths(part) for part in node] if isinstance(node, list) else node
