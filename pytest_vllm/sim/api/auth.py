"""Who may ask: API keys and cross-origin rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.versions import guarded_prefixes

if TYPE_CHECKING:
    from pytest_vllm.sim.http.request import Request
    from pytest_vllm.sim.settings import Settings

_METHODS = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, QUERY"
_VARYING = ("Method", "Headers", "Private-Network")


def refused(request: Request, settings: Settings) -> bool:
    """Whether the key guards this path and the request does not carry it."""
    if not settings.api_keys or request.method == "OPTIONS":
        return False
    prefixes = settings.version.pick(guarded_prefixes())
    root = (settings.args.get("root_path") or "").rstrip("/")
    path = request.path.removeprefix(root)
    if not path.startswith(tuple(prefixes)):
        return False
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return scheme.lower() != "bearer" or key not in settings.api_keys


def cors_headers(request: Request, settings: Settings) -> list[tuple[str, str]]:
    """What the CORS layer adds to an answer."""
    origin, allowed = request.headers.get("origin"), _listed(settings, "allowed_origins")
    if _asks_first(request):
        return []
    if "*" in allowed:
        allow = [("access-control-allow-origin", "*")] if origin else []
        return [*allow, ("vary", "Origin")] if settings.version >= "0.27.0" else allow
    headers = [("vary", "Origin")]
    if origin and origin in allowed:
        headers.insert(0, ("access-control-allow-origin", origin))
        if settings.args.get("allow_credentials"):
            headers.append(("access-control-allow-credentials", "true"))
    return headers


def preflight(request: Request, settings: Settings) -> Reply | None:
    """The answer to a browser's question before the request; None when this is no such question."""
    headers = request.headers
    if not _asks_first(request):
        return None
    allowed, methods = _listed(settings, "allowed_origins"), _listed(settings, "allowed_methods")
    failures = [] if "*" in allowed or headers["origin"] in allowed else ["origin"]
    if not {"*", headers["access-control-request-method"]} & set(methods or ["*"]):
        failures.append("method")
    made = [
        ("vary", ", ".join(("Origin", *(f"Access-Control-Request-{name}" for name in _VARYING)))),
        ("access-control-allow-methods", _METHODS if "*" in (methods or ["*"]) else ", ".join(methods)),
        ("access-control-max-age", "600"),
    ]
    if "origin" not in failures:
        made.append(("access-control-allow-origin", "*" if "*" in allowed else headers["origin"]))
    if "access-control-request-headers" in headers:
        made.append(("access-control-allow-headers", headers["access-control-request-headers"]))
    made.append(("content-type", "text/plain; charset=utf-8"))
    text = f"Disallowed CORS {', '.join(failures)}" if failures else "OK"
    return Reply(400 if failures else 200, text.encode(), made)


def _asks_first(request: Request) -> bool:
    names = {"origin", "access-control-request-method"}
    return request.method == "OPTIONS" and names <= set(request.headers)


def _listed(settings: Settings, name: str) -> list[str]:
    given = settings.args.get(name, [])
    return given if isinstance(given, list) else [given]
