"""Forms with files, as `multipart/form-data` carries them (RFC 7578)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_vllm.sim.http.request import Request

_BOUNDARY = re.compile(r'boundary=(?:"([^"]+)"|([^;\s]+))', re.IGNORECASE)
_NAME = re.compile(r'(?<!file)name="([^"]*)"', re.IGNORECASE)
_FILE = re.compile(r'filename="([^"]*)"', re.IGNORECASE)


@dataclass(frozen=True)
class Upload:
    """A file in a form."""

    name: str
    content: bytes


def fields(request: Request) -> dict[str, str | Upload]:
    """The fields of a form, the last of a name; none of a body that is no such form."""
    kind = request.headers.get("content-type", "")
    found = _BOUNDARY.search(kind)
    if not kind.lower().startswith("multipart/form-data") or not found:
        return {}
    mark = b"--" + (found[1] or found[2]).encode()
    form: dict[str, str | Upload] = {}
    for part in (b"\r\n" + request.body).split(b"\r\n" + mark)[1:]:
        if part.startswith(b"--"):
            break
        head, blank, content = part.partition(b"\r\n\r\n")
        text = head.decode(errors="replace")
        if blank and (name := _NAME.search(text)):
            file = _FILE.search(text)
            form[name[1]] = Upload(file[1], content) if file else content.decode(errors="replace")
    return form
