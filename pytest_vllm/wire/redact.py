"""The one place where secrets are taken out of what is kept or printed."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_vllm.wire.recording import Recording, Request

HIDDEN = "***"
CREDENTIAL_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie", "set-cookie"}
)
CREDENTIAL_FIELDS = frozenset(
    {"api_key", "apikey", "authorization", "access_token", "client_secret", "hf_token", "password", "secret"}
)

#: Credentials known by their look: Hugging Face, OpenAI and its imitators, NVIDIA, GitHub, Bearer.
#: A literal that every match contains comes first: searching for it is cheap, the pattern is not.
_LOOKS = tuple(
    (mark, re.compile(pattern))
    for mark, pattern in (
        (b"hf_", rb"\bhf_(?:[A-Za-z0-9]{20,}|(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{8,})"),
        (b"sk-", rb"(?<![A-Za-z0-9])sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}"),
        (b"nvapi-", rb"(?<![A-Za-z0-9])nvapi-[A-Za-z0-9_-]{16,}"),
        (b"gh", rb"\bgh[pousr]_[A-Za-z0-9]{20,}"),
        (b"earer ", rb"(?<=[Bb]earer )(?=[^\s\"']*[0-9])[A-Za-z0-9._~+/=-]{6,}"),
    )
)

#: Characters of a text that is remembered to hold no secret, and how many are.
SHORT, KEPT = 64, 4096


class Redactor:
    """Hides secrets in texts, JSON values, headers and recordings.

    A secret is found literally, as JSON, HTML and shells escape it, URL-encoded, and in base64 (standard and
    URL-safe alphabet, alone or within something longer). Values that look like ordinary words (`EMPTY`,
    `test`) are hidden in credential headers and fields only: hiding them everywhere would destroy the
    evidence.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """Take the secrets' values; empty ones are ignored."""
        self._known = frozenset(secret for secret in secrets if secret)
        forms = {form for secret in self._known if is_distinctive(secret) for form in _forms(secret)}
        self._forms = sorted(forms)
        #: Short texts that held none: names of fields, words of the protocol, said in every answer.
        self._clean: set[str] = set()

    def knowing(self, *secrets: str | None) -> Redactor:
        """A redactor that hides these as well."""
        return Redactor({*self._known, *filter(None, secrets)})

    def text(self, text: str) -> str:
        """The text with every secret replaced by `***`."""
        if text in self._clean:
            return text
        raw = text.encode("utf-8", "surrogatepass")
        spans = self._spans(raw)
        if not spans:
            if len(text) <= SHORT and len(self._clean) < KEPT:
                self._clean.add(text)
            return text
        parts = [raw[end:start] for (_, end), (start, _) in pairwise([(0, 0), *spans, (len(raw), 0)])]
        return HIDDEN.encode().join(parts).decode("utf-8", "surrogatepass")

    def value(self, value: Any) -> Any:
        """A JSON value, every string and key in it redacted, fields named like a credential hidden."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self._key(name): self._field(name, item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.value(item) for item in value)
        return value

    def headers(self, headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """Header pairs; those that carry credentials keep only their scheme (`Bearer ***`)."""
        return tuple((self.text(name), self._header(name, value)) for name, value in headers)

    def request(self, request: Request) -> Request:
        """A request as it may be kept."""
        headers = {
            self.text(name): None if value is None else self._header(name, value)
            for name, value in request.headers.items()
        }
        content = None if request.content is None else self.text(request.content)
        path = self.text(request.path)
        return replace(request, path=path, json=self.value(request.json), content=content, headers=headers)

    def recording(self, recording: Recording) -> Recording:
        """A recording as it may be kept.

        In the response body a secret is overwritten, byte for byte: lengths, framing and times stay as
        they were.
        """
        return replace(
            recording,
            key=self.text(recording.key),
            request=self.request(recording.request),
            headers=self.headers(recording.headers),
            chunks=self._chunks(recording.chunks),
            error=self.text(recording.error),
            metrics_before=self._optional(recording.metrics_before),
            metrics_after=self._optional(recording.metrics_after),
        )

    def _optional(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)

    def _key(self, name: Any) -> Any:
        return self.text(name) if isinstance(name, str) else name

    def _field(self, name: Any, item: Any) -> Any:
        if isinstance(item, str) and item and str(name).lower().replace("-", "_") in CREDENTIAL_FIELDS:
            return HIDDEN
        return self.value(item)

    def _header(self, name: str, value: str) -> str:
        if name.lower() not in CREDENTIAL_HEADERS:
            return self.text(value)
        scheme, _, rest = value.partition(" ")
        return f"{scheme} {HIDDEN}" if rest and scheme.lower() in ("bearer", "basic", "digest") else HIDDEN

    def _chunks(self, chunks: Sequence[tuple[float, bytes]]) -> tuple[tuple[float, bytes], ...]:
        body = b"".join(chunk for _, chunk in chunks)
        spans = self._spans(body)
        if not spans:
            return tuple(chunks)
        hidden = bytearray(body)
        for start, end in spans:
            hidden[start:end] = b"*" * (end - start)
        cut = 0
        redacted = []
        for at, chunk in chunks:
            redacted.append((at, bytes(hidden[cut : cut + len(chunk)])))
            cut += len(chunk)
        return tuple(redacted)

    def _spans(self, raw: bytes) -> list[tuple[int, int]]:
        """Where secrets lie, merged and in order."""
        merged: list[tuple[int, int]] = []
        for start, end in sorted(self._found(raw)):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def _found(self, raw: bytes) -> Iterator[tuple[int, int]]:
        for form in self._forms:
            start = raw.find(form)
            while start >= 0:
                yield start, start + len(form)
                start = raw.find(form, start + 1)
        for mark, look in _LOOKS:
            if mark in raw:
                yield from (match.span() for match in look.finditer(raw))


def is_distinctive(secret: str) -> bool:
    """Whether a secret can be searched for without hitting ordinary words."""
    return len(secret) >= 8 or (len(secret) >= 5 and not secret.isalpha())


def _forms(secret: str) -> set[bytes]:
    texts = {secret, repr(secret)[1:-1], shlex.quote(secret).strip("'")}
    for ascii_only in (True, False):
        escaped = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        texts |= {escaped, escaped.replace("/", "\\/"), json.dumps(escaped, ensure_ascii=ascii_only)[1:-1]}
    texts |= {html.escape(secret), html.escape(secret, quote=False)}
    raw = secret.encode("utf-8", "surrogatepass")
    for safe in ("", "/", "/:@", "!$&'()*+,;=:@/~"):
        for encoded in (quote(raw, safe), quote_plus(raw, safe)):
            texts |= {encoded, re.sub("%..", lambda hexed: hexed[0].lower(), encoded)}
    forms = {text.encode("utf-8", "surrogatepass") for text in texts} | _base64_forms(raw)
    return {form for form in forms if len(form) >= 5}


def _base64_forms(raw: bytes) -> set[bytes]:
    """What base64 makes of the secret at each of the three places where it can begin in a longer text."""
    forms = set()
    for before in range(3):
        padded = b"\0" * before + raw
        whole = len(padded) // 3 * 4 + (0, 2, 3)[len(padded) % 3]
        first = (0, 2, 3)[before]  # characters that also hold bits of what comes before
        last = whole - (1 if len(padded) % 3 else 0)  # the last one also holds bits of what follows
        encoded = base64.b64encode(padded)[first:last]
        if len(encoded) >= 5:
            forms |= {encoded, encoded.replace(b"+", b"-").replace(b"/", b"_")}
    return forms
