"""Who may ask: API keys and cross-origin rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    """The headers for a browser of an allowed origin."""
    origin = request.headers.get("origin")
    allowed = settings.args.get("allowed_origins", [])
    if not origin or not allowed or ("*" not in allowed and origin not in allowed):
        return []
    if "*" in allowed:
        headers = [("access-control-allow-origin", "*")]
    else:
        headers = [("access-control-allow-origin", origin), ("vary", "Origin")]
    if settings.args.get("allow_credentials"):
        headers.append(("access-control-allow-credentials", "true"))
    return headers
