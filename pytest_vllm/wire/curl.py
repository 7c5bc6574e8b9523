"""A recorded request as a shell script that sends it again."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pytest_vllm.wire.policy import UNIX, Access
from pytest_vllm.wire.proxy import NONE
from pytest_vllm.wire.redact import CREDENTIAL_HEADERS, HIDDEN
from pytest_vllm.wire.request import encoded_body, own_headers, target

if TYPE_CHECKING:
    from pytest_vllm.wire.recording import Request

_OPTIONS = "--silent --show-error --no-buffer --include --http1.1 --globoff --path-as-is"


def curl(request: Request, url: str, *, key_env: str = "VLLM_API_KEY", access: Access | None = None) -> str:
    """A POSIX shell script that repeats the request, body byte for byte.

    The API key is taken from the environment when the script runs, and left out when the variable is not set.
    It reaches curl through a file descriptor: everybody on a machine sees command lines.

    Args:
        request: what to send, secrets already redacted.
        url: base URL of the server; the script takes another one as its first argument.
        key_env: environment variable that holds the API key.
        access: what was said about the way to the server.
    """
    way, base = _way(url, access or Access())
    given = {name.lower(): value for name, value in request.headers.items()}
    body = encoded_body(request)
    method = "--head" if request.method == "HEAD" else f"-X {shlex.quote(request.method)}"
    lines = [f"curl {_OPTIONS} {method}", *way, *_headers(request, has_body=body is not None)]
    keyed = "authorization" not in given
    if keyed:
        lines.append(f"${{{key_env}:+--config /dev/fd/3}}")
    if request.timeout is not None:
        lines.append(f"--max-time {request.timeout:g}")
    if body is not None:
        lines = [f"{_printed(body)} |", *lines, "--data-binary @-"]
    lines.append(f'"${{1:-{_in_double_quotes(base)}}}"{shlex.quote(target(request.path))}')
    command = " \\\n  ".join(lines)
    if keyed:
        command += f' 3<<END\nheader = "Authorization: Bearer ${key_env}"\nEND'
    return "\n".join(["#!/bin/sh", *_notes(request, given, key_env), command]) + "\n"


def _way(url: str, access: Access) -> tuple[list[str], str]:
    """The options for the way to the server, and the base URL."""
    given = {"--cacert": access.ca, "--cert": access.certificate, "--key": access.key}
    options = [f"{option} {shlex.quote(value)}" for option, value in given.items() if value]
    if access.proxy:
        options.append("--noproxy '*'" if access.proxy == NONE else f"--proxy {shlex.quote(access.proxy)}")
    if not url.startswith(UNIX):
        return options, url.rstrip("/")
    path, _, prefix = url.removeprefix(UNIX).removeprefix("//").partition(":")
    return [*options, f"--unix-socket {shlex.quote(path)}"], f"http://localhost{prefix.rstrip('/')}"


def _notes(request: Request, given: dict[str, str | None], key_env: str) -> list[str]:
    notes = []
    if "authorization" not in given:
        notes.append(f"# sends the API key in {key_env}, if that is set")
    if any(HIDDEN in (value or "") for name, value in given.items() if name in CREDENTIAL_HEADERS):
        notes.append(f"# a credential of the original request is hidden: put it where {HIDDEN} stands")
    if request.abort_after is not None:
        notes.append(f"# the original closed the connection after {request.abort_after} events")
    return notes


def _headers(request: Request, *, has_body: bool) -> list[str]:
    headers: dict[str, tuple[str, str | None]] = {
        name.lower(): (name, value) for name, value in own_headers(has_body=has_body).items()
    }
    if has_body:
        headers["expect"] = ("expect", None)  # curl asks first when a body is long; the client does not
    headers |= {name.lower(): (name, value) for name, value in request.headers.items()}
    return [f"-H {shlex.quote(_header(*pair))}" for pair in headers.values()]


def _header(name: str, value: str | None) -> str:
    if value is None:
        return f"{name}:"
    return f"{name}: {value}" if value else f"{name};"


def _printed(body: bytes) -> str:
    """A command that writes exactly these bytes; a builtin, so no limit of argument lengths applies."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" not in text:
        return f"printf %s {shlex.quote(text)}"
    octal = "".join(chr(b) if 0x20 <= b < 0x7F and b != 0x5C else f"\\0{b:03o}" for b in body)
    return f"printf %b {shlex.quote(octal)}"


def _in_double_quotes(text: str) -> str:
    return "".join(f"\\{c}" if c in '\\"$`}' else c for c in text)
