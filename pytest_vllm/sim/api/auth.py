"""Who may ask: API keys and cross-origin rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.versions import facts

if TYPE_CHECKING:
    from pytest_vllm.sim.http.request import Request
    from pytest_vllm.sim.settings import Settings


def refused(request: Request, settings: Settings) -> bool:
    """Whether the key guards this path and the request does not carry it."""
    if not settings.api_keys or request.method == "OPTIONS":
        return False
    prefixes = settings.version.pick(facts("routes")["guarded"])
    root = (settings.args.get("root_path") or "").rstrip("/")
    path = request.path.removeprefix(root)
    if not path.startswith(tuple(prefixes)):
        return False
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return scheme.lower() != "bearer" or key not in settings.api_keys


def cors_headers(request: Request, settings: Settings) -> list[tuple[str, str]]:
    """What the CORS layer adds to an answer."""
    origin, allowed = request.headers.get("origin"), _origins(settings)
    if "*" in allowed:
        return [("access-control-allow-origin", "*")] if origin else []
    headers = [("vary", "Origin")]
    if origin and origin in allowed:
        headers.insert(0, ("access-control-allow-origin", origin))
        if settings.args.get("allow_credentials"):
            headers.append(("access-control-allow-credentials", "true"))
    return headers


def preflight(request: Request, settings: Settings) -> Reply | None:
    """The answer to a browser's question before the request; None when this is no such question."""
    headers = request.headers
    if (
        request.method != "OPTIONS"
        or "origin" not in headers
        or "access-control-request-method" not in headers
    ):
        return None
    allowed = _origins(settings)
    good = "*" in allowed or headers["origin"] in allowed
    made = [
        ("access-control-allow-methods", "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"),
        ("access-control-max-age", "600"),
        ("content-type", "text/plain; charset=utf-8"),
    ]
    return Reply(200 if good else 400, b"OK" if good else b"Disallowed CORS origin", made)


def _origins(settings: Settings) -> list[str]:
    given = settings.args.get("allowed_origins", [])
    return given if isinstance(given, list) else [given]
