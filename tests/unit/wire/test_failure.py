"""Recordings that knew no list of failures are still read."""

from __future__ import annotations

import json

import pytest

from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Recording, Request, dump, load


def of_format_1(error: str, status: int | None) -> str:
    """A recording as it was written before."""
    head, tail = dump(Recording("a.b", Request("GET", "/"), status=status, error=error)).splitlines()
    first, last = json.loads(head), json.loads(tail)
    del last["failure"]
    return f"{json.dumps({**first, 'version': 1})}\n{json.dumps(last)}\n"


@pytest.mark.parametrize(
    ("error", "status", "failure"),
    [
        ("", 200, None),
        ("not sent: a.c got no response", None, Failure.NOT_SENT),
        ("no connection to x:1: connection refused", None, Failure.NO_CONNECTION),
        ("no connection to x:1: no TLS: self-signed certificate", None, Failure.TLS),
        ("not complete within 5 s, and no response came", None, Failure.TIMEOUT_FIRST_BYTE),
        ("not complete within 5 s (status 200 and 7 bytes of the body had come)", 200, Failure.TIMEOUT_TOTAL),
        ("no byte came for 60 s (status 200 and 7 bytes …)", 200, Failure.TIMEOUT_SILENCE),
        ("given up: 3 exchanges in a row found no server", None, Failure.GIVEN_UP),
        ("the connection closed before the response head was complete", None, Failure.TRUNCATED),
        ("the connection broke: reset by peer (status 200 …)", 200, Failure.RESET),
        ("the body ended after 3 of 9 bytes (status 200 …)", 200, Failure.TRUNCATED),
        ("a chunk's size is no hexadecimal number: 'zz'", 200, Failure.PROTOCOL),
    ],
)
def test_the_words_of_format_1_name_the_failure(
    error: str, status: int | None, failure: Failure | None
) -> None:
    assert load(of_format_1(error, status)).failure is failure


@pytest.mark.parametrize("failure", Failure)
def test_every_failure_survives_the_disk(failure: Failure) -> None:
    recording = Recording("a.b", Request("GET", "/"), error="x", failure=failure)

    assert load(dump(recording)).failure is failure


def test_an_unknown_failure_is_a_damaged_recording() -> None:
    text = dump(Recording("a.b", Request("GET", "/"), error="x", failure=Failure.TLS))

    with pytest.raises(ValueError, match="damaged"):
        load(text.replace('"tls"', '"gremlins"'))
