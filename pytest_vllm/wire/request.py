"""A request as the bytes that go out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from pytest_vllm.wire.recording import Request

_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


def own_headers(*, has_body: bool) -> dict[str, str]:
    """The headers of every request that does not say otherwise, beside Host, length and the API key."""
    own = {"accept": "*/*", "accept-encoding": "identity", "user-agent": "pytest-vllm"}
    return {**own, "content-type": "application/json"} if has_body else own


def target(path: str) -> str:
    """The request line's target: the path as it is written, what cannot stand there percent-encoded."""
    return quote(path, _PRINTABLE, errors="surrogatepass")


def encoded_body(request: Request) -> bytes | None:
    """The body's bytes; None for none. In `content`, lone surrogates U+DC80..U+DCFF stand for raw bytes."""
    if request.content is not None:
        try:
            return request.content.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # other surrogates have no byte to stand for
            return request.content.encode("utf-8", "surrogatepass")
    if request.json is None:
        return None
    try:
        return json.dumps(request.json, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # lone surrogates travel as escapes
        return json.dumps(request.json, separators=(",", ":")).encode()
