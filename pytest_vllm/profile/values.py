"""Values of a profile that need more than a type: environment, GPUs, volumes, ids, ranges.

Rejections are ValueErrors throughout: they are what pydantic reports.
"""

from __future__ import annotations

import ipaddress
import json
import re
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic_core import PydanticCustomError

from pytest_vllm.facts.capabilities import CAPABILITIES
from pytest_vllm.facts.version import span
from pytest_vllm.locate import case_file
from pytest_vllm.profile.words import unknown

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CHECK_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)+(\[[^\]]+\])?")
_ISSUE = re.compile(r"https?://\S+|[\w.-]+/[\w.-]+#\d+")
_VARIABLE = re.compile(r"\$\{[^}]*\}")
_REFERENCE = {"from-env", "from_env", "optional"}
#: Marks of a URL's parts in which people put keys and logins, and what such a part is called.
_CARRIERS = (("?", "a query"), ("@", "a login"), ("#", "a fragment"), (";=", "a parameter"))

REFERENCE_SHAPE = 'write { from-env = "NAME" }'


def reference(value: Any, *, optional: bool = False) -> Any:
    """`{ from-env = "NAME" }`; a literal is refused.

    Args:
        value: as it is written.
        optional: whether it may say `optional = true`.
    """
    name = value.get("from-env", value.get("from_env")) if isinstance(value, dict) else None
    if isinstance(value, dict) and (
        not isinstance(name, str)
        or not value.keys() <= _REFERENCE
        or not (optional or value.get("optional") in (None, False))
    ):
        raise ValueError(f"not a reference to a secret: {REFERENCE_SHAPE}")
    if isinstance(value, str):
        raise PydanticCustomError(
            "literal", "a secret is never written down: {fix}", {"fix": REFERENCE_SHAPE}
        )
    if isinstance(name, str) and not _ENV_NAME.fullmatch(name):
        raise ValueError("from-env names an environment variable, such as HF_TOKEN")
    return value


def environment_value(value: Any) -> Any:
    """Text, a number, or a reference."""
    if isinstance(value, bool):  # a kind of int to Python
        raise ValueError('an environment variable is text: write "1" or "0"')  # noqa: TRY004
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, dict):
        return reference(value, optional=True)
    if isinstance(value, list):
        raise ValueError("an environment variable is text, not a list")  # noqa: TRY004
    return value


def proxy(value: str | None) -> str | None:
    """`none`, or the URL of an HTTP proxy without a login: that is a secret, and reports quote this.

    Raises ValueError that does not repeat it.
    """
    if value is None or value == "none":
        return value
    if _carried(value) == "a login":
        raise ValueError("a login is never written down: give it in http_proxy or https_proxy instead")
    if carried := _carried(value):
        raise ValueError(f"it carries {carried}, which reports would quote: leave it out")
    try:
        parts = urlsplit(value)
    except ValueError:  # whose words repeat a part of it
        parts = urlsplit("")
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError('write "http://HOST:PORT", or "none" for no proxy')
    return value


def server_url(value: str | None) -> str | None:
    """The base URL of a server, without anything that could hold a secret: reports quote it.

    Raises ValueError that does not repeat it.
    """
    if value is None or value.startswith("unix:"):
        return value
    carried = _carried(value)
    if carried == "a query":
        raise ValueError("it carries a query, and reports would quote a key in it: leave it out")
    if carried:
        raise ValueError(f"it carries {carried}, which reports would quote: leave it out")
    return value


def _carried(url: str) -> str:
    """What a URL carries beside scheme, host, port and path; empty if nothing.

    It is searched as a whole and decoded: a password with a slash, or an escaped `@`, moves the login to
    where no parser of URLs sees one.
    """
    plain = unquote(url)
    found = (what for marks, what in _CARRIERS if any(mark in plain for mark in marks))
    return next(found, "")


def gpus(value: Any) -> Any:
    """`all`, a number of GPUs, or device ids (`0`, `GPU-…`, `nvidia.com/gpu=0`)."""
    if isinstance(value, bool) or not isinstance(value, str | int | list | None):
        raise ValueError(  # noqa: TRY004
            'write "all", a number of GPUs, or a list of device ids such as ["0"] or ["nvidia.com/gpu=0"]'
        )
    if isinstance(value, int) and value < 1:
        raise ValueError("leave gpus out for a server without GPUs")
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        raise ValueError('device ids are text, such as ["0", "1"]')
    return value


def volume(value: str) -> str:
    """`HOST:CONTAINER`, with `:ro` or `:rw` behind it at will."""
    parts = _VARIABLE.sub("…", value).split(":")
    if len(parts) not in (2, 3) or not all(parts) or not parts[1].startswith("/"):
        raise ValueError('not a volume, such as "/opt/hf:/root/.cache/huggingface" or "models:/models:ro"')
    if len(parts) == 3 and not set(parts[2].split(",")) <= {"ro", "rw", "z", "Z"}:
        raise ValueError(f"a volume ends in ro, rw, z or Z, not in {parts[2]!r}")
    return value


def address(value: str) -> str:
    """`HOST:PORT`, the host as an IP address: it is bound, not looked up."""
    host, _, port = value.rpartition(":")
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        port = ""
    if not port.isdecimal() or int(port) > 65535:
        raise ValueError('not an IP address of this machine and a port, such as "10.0.0.5:5557"')
    return value


def capability(value: str) -> str:
    """A name of `pytest_vllm.facts.capabilities.CAPABILITIES`."""
    if value not in CAPABILITIES:
        raise PydanticCustomError("choice", "{text}", {"text": unknown("capability", value, CAPABILITIES)})
    return value


def client(value: str) -> str:
    """A client that the bundled suite runs: an id of `fixtures/cases/clients.json`."""
    known = [str(row["id"]) for row in json.loads(case_file("clients").read_text("utf-8"))]
    if value not in known:
        raise PydanticCustomError("choice", "{text}", {"text": unknown("client", value, known)})
    return value


def check_id(value: str) -> str:
    """A check's id, or one case of it in brackets."""
    if not _CHECK_ID.fullmatch(value):
        raise ValueError("not a check's id, such as 'stream.usage.final-chunk' (see `pytest-vllm checks`)")
    return value


def issue(value: str) -> str:
    """Where the fault is known: a URL, or `owner/repository#number`."""
    if not _ISSUE.fullmatch(value):
        raise ValueError("not a place where the fault is known: a URL or owner/repository#number")
    return value


def version_range(value: str) -> str:
    """A range of vLLM versions: `>=0.27,<0.34`."""
    try:
        given = list(span(value))
    except ValueError:
        given = []
    if not given:
        raise ValueError('not a range of versions, such as ">=0.27,<0.34"')
    return value


def not_blank(value: str) -> str:
    """Text that says something."""
    if not value.strip():
        raise ValueError("it is empty")
    return value
