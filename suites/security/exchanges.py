"""Requests of the security suite: none of them changes anything on the server.

Routes are looked for by PUT, which no route of vLLM's takes: 401 says guarded, 405 open, 404 absent.
"""

import json
from collections.abc import Callable
from typing import Any

from pytest_vllm import Case, Request, Server, case_file, cases, exchange, only_if

ROUTES: list[dict[str, Any]] = json.loads(case_file("security-routes").read_text("utf-8"))
WRONG_KEY = "sk-pytest-vllm-no-such-key"
GOOD: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1},
    "/v1/completions": {"max_tokens": 1},
}
FOREIGN = "https://pytest-vllm.invalid"
NOWHERE = "http://127.0.0.1:9/pytest-vllm.png"

security_route = cases("security_route", ROUTES)
untrusted_field = cases("untrusted_field", case_file("untrusted-fields"))
credential = cases(
    "credential",
    [
        {"id": "none", "headers": {"Authorization": None}},
        {"id": "wrong-key", "headers": {"Authorization": f"Bearer {WRONG_KEY}"}},
        {"id": "empty-key", "headers": {"Authorization": "Bearer"}},
        {"id": "other-scheme", "headers": {"Authorization": f"Basic {WRONG_KEY}"}},
        {"id": "no-scheme", "headers": {"Authorization": WRONG_KEY}},
        {"id": "crafted-host", "headers": {"Authorization": None, "Host": "pytest-vllm.invalid/health?"}},
    ],
)
#: Keys that are nearly the right one, made of it: none of them is.
NEARLY: dict[str, Callable[[str], str]] = {
    "shorter": lambda key: f"Bearer {key[:-1]}",
    "half": lambda key: f"Bearer {key[: len(key) // 2]}",
    "longer": lambda key: f"Bearer {key}x",
    "other-case": lambda key: f"Bearer {key.swapcase()}",
    "in-a-list": lambda key: f"Bearer {WRONG_KEY},{key}",
}
credential_nearly = cases("credential_nearly", [{"id": name} for name in NEARLY])


@exchange("security.nearly")
def security_nearly(server: Server, credential_nearly: Case) -> Request:
    """The list of models, asked for with a credential that is nearly the right one."""
    key = server.api_key or ""
    only_if(key and key.swapcase() != key, "the run's own key is not known, or has no letters")
    value = NEARLY[credential_nearly.id](key)
    return Request("GET", "/v1/models", headers={"Authorization": value}, expect=None)


@exchange("security.scheme-case")
def security_scheme_case(server: Server) -> Request:
    """The list of models, the right key under a scheme in small letters, which HTTP allows."""
    only_if(server.api_key, "the run's own key is not known")
    return Request("GET", "/v1/models", headers={"Authorization": f"bearer {server.api_key}"}, expect=None)


@exchange("security.route")
def security_route_probe(server: Server, security_route: Case) -> Request:  # noqa: ARG001 - no server needed
    """Whether a route is there, asked without a key and without effect."""
    return Request("PUT", security_route["path"], headers={"Authorization": None}, expect=None)


@exchange("security.credential")
def security_credential(server: Server, credential: Case) -> Request:  # noqa: ARG001 - no server needed
    """The list of models, asked for with a credential that is none."""
    return Request("GET", "/v1/models", headers=credential["headers"], expect=None)


@exchange("security.keyless-chat")
def security_keyless_chat(server: Server) -> Request:
    """A chat request without a key."""
    request = server.chat("Hi", max_tokens=1)
    return Request("POST", request.path, json=request.json, headers={"Authorization": None}, expect=None)


@exchange("security.keyed-models")
def security_keyed_models(server: Server) -> Request:
    """The list of models, with the run's own key."""
    return server.get("/v1/models")


@exchange("security.lora-route")
def security_lora_route(server: Server) -> Request:  # noqa: ARG001 - no server needed
    """Whether adapters can be loaded at run time, asked with the key and without effect."""
    return Request("PUT", "/v1/load_lora_adapter", expect=None)


@exchange("security.untrusted")
def security_untrusted(server: Server, untrusted_field: Case) -> Request:
    """A request with a field that only a trusted client may use."""
    path = untrusted_field["path"]
    return server.post(path, {**GOOD.get(path, {}), **untrusted_field["set"]}, expect=None)


@exchange("security.media-url")
def security_media_url(server: Server) -> Request:
    """A picture at an address of the server's own host, where nothing listens."""
    picture = {"type": "image_url", "image_url": {"url": NOWHERE}}
    content = [{"type": "text", "text": "Hi"}, picture]
    return server.chat([{"role": "user", "content": content}], max_tokens=1, expect=None)


@exchange("security.cross-origin")
def security_cross_origin(server: Server) -> Request:  # noqa: ARG001 - no server needed
    """The list of models, asked for by a web page of another site."""
    return Request("GET", "/v1/models", headers={"Origin": FOREIGN})


@exchange("security.cross-origin-refused")
def security_cross_origin_refused(server: Server) -> Request:
    """A request that makes no sense, of the same web page."""
    asked = server.post("/v1/completions", {"prompt": "Hi", "max_tokens": -1}, expect=400)
    return Request("POST", asked.path, json=asked.json, headers={"Origin": FOREIGN}, expect=400)
