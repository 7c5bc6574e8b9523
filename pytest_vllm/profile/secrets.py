"""Secrets are named in profiles, never written down."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMED = re.compile(r"(?:^|[_-])(?:TOKEN|KEY|PASSWORD|PASSWD|SECRET)$", re.IGNORECASE)
_SHAPED = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{8,}|nvapi-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|AKIA[0-9A-Z]{16}|xox[abpr]-[A-Za-z0-9-]{10,}|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,})"
)
_IN_URL = re.compile(r"[a-z]+://[^/@\s:]+:[^/@\s]+@")
_SAFE = {"", "none", "empty", "not-needed"}


def secret_name(name: str) -> bool:
    """Whether a variable or flag of this name holds a secret: `HF_TOKEN`, `api-key`."""
    return _NAMED.search(name) is not None


def secret_text(value: str) -> bool:
    """Whether a text contains something that is shaped like a secret."""
    return _SHAPED.search(value) is not None or _IN_URL.search(value) is not None


def literal_secrets(
    value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every secret that is written down in a raw profile: its path, and how to name it instead.

    The value itself never appears in what is returned.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from literal_secrets(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from literal_secrets(inner, (*path, index))
    elif isinstance(value, str):
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
        named = secret_name(name) and value.lower() not in _SAFE
        if named or secret_text(value):
            yield path, _fix(path, name)


def _fix(path: tuple[str | int, ...], name: str) -> str:
    if path[:2] == ("server", "args") and name in ("api-key", "api_key"):
        return 'write api-key = { from-env = "VLLM_API_KEY" } in [server] instead'
    if path[:2] == ("server", "env") or path == ("server", "api-key"):
        variable = "VLLM_API_KEY" if name == "api-key" else name
        return f'write {name} = {{ from-env = "{variable}" }} and set {variable} where pytest runs'
    return 'put it into an environment variable and name that in [server.env]: NAME = { from-env = "NAME" }'
