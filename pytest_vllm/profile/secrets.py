"""Secrets are named in profiles, never written down."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMED = re.compile(
    r"(?:^|[_-])(?:TOKEN|(?:API)?KEY|PASSWORD|PASSWD|PASS|SECRET|CREDENTIALS?|AUTHORIZATION|OTLP_(?:\w+_)?HEADERS)$",
    re.IGNORECASE,
)
_SHAPED = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{8,}|nvapi-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|AKIA[0-9A-Z]{16}|glpat-[A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{30,}|xox[abpr]-[A-Za-z0-9-]{10,}|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,})"
)
#: The password of a URL; a name such as `${PASSWORD}` in its place is none.
_IN_URL = re.compile(r"([a-z][a-z0-9+.-]*://[^/@\s:]*:)(?![$\ue001])[^/@\s]+@")
_IN_QUERY = re.compile(
    r"([?&;](?:[\w-]*[_-])?(?:token|key|secret|password|sig|signature|apikey)=)(?!\$)[^&\s\"']+",
    re.IGNORECASE,
)
_IN_HEADER = re.compile(
    r"((?:authorization|api-key|x-api-key)[\"']?\s*[:=]\s*)(?:(?:bearer|basic|token)(?:\s+|%20))?(?!\$)[^\s\"',]+",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(\bbearer(?:\s+|%20))(?!\$)[^\s\"',]{6,}", re.IGNORECASE)
_VALUE = r"([\"']?)([^\s\"'`,;)}]+)"
#: `--token X` and `--token=X`; `TOKEN=X` and `"token": "X"`.
_FLAG = re.compile(r"((?<![\w-])--?([A-Za-z][\w.-]*)(?:\s*=\s*|\s+))" + _VALUE)
_ASSIGNED = re.compile(r"((?<![\w.$-])([A-Za-z_][\w.-]*)[\"']?\s*[=:]\s*)" + _VALUE)
_SAFE = {"", "none", "empty", "not-needed"}


def secret_name(name: str) -> bool:
    """Whether a variable or flag of this name holds a secret: `HF_TOKEN`, `api-key`."""
    return _NAMED.search(name) is not None


def secret_text(value: str) -> bool:
    """Whether a text contains something that is shaped like a secret."""
    return any(one.search(value) for one in (_SHAPED, _IN_URL, _IN_QUERY, _IN_HEADER, _BEARER))


def redacted(text: str) -> str:
    """A text for people with every value that may be a secret replaced by `***`.

    What is shaped like one, passwords in URLs, queries and headers, and what stands behind a secret's name:
    `--token X`, `HF_TOKEN=X`, `"password": "X"`. References such as `$NAME` stay.
    """
    text = _SHAPED.sub("***", text)
    text = _IN_URL.sub(lambda found: f"{found[1]}***@", text)
    for pattern in (_IN_QUERY, _IN_HEADER, _BEARER):
        text = pattern.sub(lambda found: f"{found[1]}***", text)
    return _ASSIGNED.sub(_given, _FLAG.sub(_given, text))


def _given(found: re.Match[str]) -> str:
    """A value behind the name of a secret; references and placeholders stay."""
    value = found[4]
    open_ = not secret_name(found[2]) or value.startswith(("$", "***", "\ue001")) or value.lower() in _SAFE
    return found[0] if open_ else f"{found[1]}{found[3]}***"


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
