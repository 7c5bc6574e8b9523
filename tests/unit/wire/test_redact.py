"""No secret survives in a recording, in whatever form and wherever it was planted."""

from __future__ import annotations

import base64
import html
import json
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_vllm.wire.recording import Recording, Request, dump
from pytest_vllm.wire.redact import HIDDEN, Redactor, is_distinctive

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "s3cr3t/with+odd=characters&\"quotes'"
HF = "hf_" + "aB3" * 11
SK = "sk-proj-abc123DEF456ghi789"

FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": lambda s: json.dumps(s)[1:-1],
    "json, UTF-8": lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
    "json in json": lambda s: json.dumps(json.dumps(s)[1:-1])[1:-1],
    "url": lambda s: quote(s, ""),
    "url, lower case": lambda s: quote(s, "").lower() if quote(s, "") != s else s,
    "path": quote,
    "form": quote_plus,
    "html": html.escape,
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "base64 url": lambda s: base64.urlsafe_b64encode(s.encode()).decode().rstrip("="),
}
SECRETS = st.text(st.characters(codec="utf-8", exclude_characters="*"), min_size=8, max_size=40).filter(
    str.strip
)
AROUND = st.text(max_size=6)


@given(SECRETS, st.sampled_from(sorted(set(FORMS) - {"url, lower case"})), AROUND, AROUND)
def test_no_form_of_a_secret_survives_in_a_text(secret: str, form: str, before: str, after: str) -> None:
    planted = FORMS[form](secret)
    redacted = Redactor([secret]).text(f"{before} {planted} {after}")

    assert HIDDEN in redacted
    assert planted not in redacted


@given(SECRETS, st.binary(max_size=5), st.binary(max_size=5), st.booleans())
def test_base64_of_something_around_the_secret(secret: str, before: bytes, after: bytes, url: bool) -> None:
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    whole = encode(before + secret.encode() + after).decode()
    redacted = Redactor([secret]).text(f"Basic {whole}").removeprefix("Basic ")
    left = redacted.split(HIDDEN)

    assert HIDDEN in redacted
    assert all(len(part) <= len(encode(before + b"xx")) + len(encode(b"xx" + after)) for part in left)


PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "error": lambda s: {"error": f"no connection with {s}"},
    "metrics_before": lambda s: {"metrics_before": f'x{{key="{s}"}} 1'},
    "metrics_after": lambda s: {"metrics_after": f'x{{key="{s}"}} 1'},
    "response header": lambda s: {"headers": (("x-echo", f"a {s} b"), (f"x-{s}", "1"))},
    "credential header": lambda s: {"headers": (("set-cookie", f"session={s}"), ("Authorization", s))},
    "path": lambda s: {"request": Request("GET", f"/x?key={s}")},
    "content": lambda s: {"request": Request("POST", "/x", content=f'{{"a": "{s}"')},
    "json": lambda s: {"request": Request("POST", "/x", json={"a": [{"b": f"<{s}>"}, 1, None], s: True})},
    "request header": lambda s: {"request": Request("GET", "/x", headers={"x-a": s, "accept": None})},
    "key": lambda s: {"key": f"a[{s}]"},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", [KEY, "token-0123456789", "pässwörd-ẞecret-123"])
def test_no_secret_survives_in_any_field(place: str, form: str, secret: str) -> None:
    planted = FORMS[form](secret)
    clean = Recording("k", Request("GET", "/"), status=200)
    recording = replace(clean, **PLACES[place](planted))
    kept = dump(Redactor([secret, "another-secret"]).recording(recording))

    for known in FORMS.values():
        assert known(secret) not in kept
    assert json.dumps(planted, ensure_ascii=False)[1:-1] not in kept


@given(
    SECRETS,
    st.sampled_from(sorted(set(FORMS) - {"url, lower case"})),
    st.binary(max_size=20),
    st.binary(max_size=20),
    st.lists(st.integers(0, 300)),
)
def test_a_body_is_overwritten_across_reads(
    secret: str, form: str, before: bytes, after: bytes, cuts: list[int]
) -> None:
    planted = FORMS[form](secret).encode()
    body = before + b" " + planted + b" " + after
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    chunks = tuple((float(n), body[a:b]) for n, (a, b) in enumerate(pairwise(places)))
    redacted = Redactor([secret]).recording(Recording("k", Request("GET", "/"), chunks=chunks))

    assert planted not in redacted.body
    assert [(at, len(chunk)) for at, chunk in redacted.chunks] == [(at, len(chunk)) for at, chunk in chunks]
    assert len(redacted.body) == len(body)


@given(st.binary(max_size=80), st.lists(st.integers(0, 80)))
def test_a_body_without_secrets_is_left_alone(body: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    chunks = tuple((1.0, body[a:b]) for a, b in pairwise(places))
    assume(b"hf_" not in body)

    assert Redactor([KEY]).recording(Recording("k", Request("GET", "/"), chunks=chunks)).chunks == chunks


@pytest.mark.parametrize("secret", [HF, SK, "ghp_" + "a1" * 15, "nvapi-" + "x1-_" * 6])
def test_well_known_looks_are_hidden_unasked(secret: str) -> None:
    assert Redactor().text(f"export X={secret}!") == f"export X={HIDDEN}!"
    assert secret not in dump(
        Redactor().recording(Recording("k", Request("GET", "/"), chunks=((0.0, f'"{secret}"'.encode()),)))
    )


@pytest.mark.parametrize(
    "text",
    [
        "hf_overrides and hf_transfer, HF_HUB_OFFLINE=1",
        "task-force risk-based-assessment-of-2024-things",
        "sk-learn is no key, nor is sk-something-rather-longish",
        "Bearer authentication is required",
        "The test is EMPTY: object content null data role",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert Redactor(["test", "EMPTY", "content", "null", "data", "role"]).text(text) == text


def test_a_bearer_token_is_hidden_in_a_text() -> None:
    assert Redactor().text('curl -H "Authorization: Bearer abc123def" x') == (
        'curl -H "Authorization: Bearer ***" x'
    )


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("Authorization", "Bearer anything", "Bearer ***"),
        ("authorization", "Basic dXNlcjpw", "Basic ***"),
        ("AUTHORIZATION", "anything at all", "***"),
        ("Proxy-Authorization", "x", "***"),
        ("X-API-Key", "EMPTY", "***"),
        ("Cookie", "a=b; c=d", "***"),
        ("set-cookie", "a=b", "***"),
        ("content-type", "text/plain", "text/plain"),
    ],
)
def test_credential_headers_are_always_hidden(name: str, value: str, kept: str) -> None:
    request = Request("GET", "/", headers={name: value})

    assert Redactor().headers([(name, value)]) == ((name, kept),)
    assert Redactor().request(request).headers == {name: kept}


def test_a_removed_header_stays_removed() -> None:
    assert Redactor().request(Request("GET", "/", headers={"authorization": None})).headers == {
        "authorization": None
    }


def test_fields_named_like_credentials_are_hidden() -> None:
    value = {
        "api-key": "EMPTY",
        "args": [{"HF_TOKEN": "x", "max_tokens": 5, "token": "Paris"}],
        "password": "",
    }

    assert Redactor().value(value) == {
        "api-key": HIDDEN,
        "args": [{"HF_TOKEN": HIDDEN, "max_tokens": 5, "token": "Paris"}],
        "password": "",
    }


def test_values_keep_their_kind() -> None:
    assert Redactor([KEY]).value([KEY, (1, KEY), None, True, 1.5, {1: KEY}]) == [
        HIDDEN, (1, HIDDEN), None, True, 1.5, {1: HIDDEN},
    ]  # fmt: skip


def test_secrets_that_overlap_are_both_hidden() -> None:
    redactor = Redactor(["abcdefgh-12345", "12345-ijklmnop"])

    assert redactor.text("x abcdefgh-12345-ijklmnop y") == "x *** y"


def test_a_redactor_can_learn() -> None:
    base = Redactor([KEY])
    more = base.knowing("another-secret", None, "")

    assert more.text(f"{KEY} another-secret") == f"{HIDDEN} {HIDDEN}"
    assert base.text("another-secret") == "another-secret"


@pytest.mark.parametrize(
    ("secret", "distinctive"), [("test", False), ("content", False), ("abc12", True), ("passwords", True)]
)
def test_words_are_not_distinctive(secret: str, distinctive: bool) -> None:
    assert is_distinctive(secret) is distinctive
