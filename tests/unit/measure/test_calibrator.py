"""The calibrator says what vLLM says, in its shape, and writes down when."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tools.calibrator import Calibrator

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST, GAP, WORDS = 0.04, 0.005, 6


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a calibrator in a thread, which ends with this process."""
    calibrator = Calibrator(FIRST, GAP, WORDS)
    threading.Thread(target=calibrator.serve, daemon=True).start()
    with httpx.Client(base_url=f"http://127.0.0.1:{calibrator.port}", trust_env=False) as client:
        yield client


def events(client: httpx.Client, path: str) -> list[dict[str, Any]]:
    """The events of an answer but for the last one, which says that it is."""
    *found, last = client.post(path, json={"model": "calibrator"}).text.strip().split("\n\n")
    assert last == "data: [DONE]"
    return [json.loads(one.removeprefix("data: ")) for one in found]


def test_completions_say_words_and_nothing_before_them(client: httpx.Client) -> None:
    """A client that takes any choice for a token would find a first one that is none."""
    *words, usage = events(client, "/v1/completions")

    assert [one["choices"][0]["text"] for one in words] == [" word"] * WORDS
    assert [one["choices"][0]["finish_reason"] for one in words] == [None] * (WORDS - 1) + ["length"]
    assert {one["object"] for one in words} == {"text_completion"}
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], WORDS)


def test_chat_begins_with_the_role(client: httpx.Client) -> None:
    role, *words, usage = events(client, "/v1/chat/completions")

    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [one["choices"][0]["delta"] for one in words] == [{"content": " word"}] * WORDS
    assert words[-1]["choices"][0]["finish_reason"] == "length"
    assert {one["object"] for one in words} == {"chat.completion.chunk"}
    assert usage["usage"] == {"prompt_tokens": 8, "completion_tokens": WORDS, "total_tokens": WORDS + 8}


def test_it_names_its_model(client: httpx.Client) -> None:
    assert [one["id"] for one in client.get("/v1/models").json()["data"]] == ["calibrator"]
    assert client.get("/health").status_code == 200


def test_it_writes_down_what_it_did(client: httpx.Client) -> None:
    """By the clock that time.monotonic reads, of the streams since it was asked last."""
    client.get("/truth")
    before = time.monotonic()
    answers = [client.post("/v1/completions", json={}) for _ in range(2)]
    after = time.monotonic()
    rows = client.get("/truth").json()

    assert [int(one.headers["x-stream"]) for one in answers] == [0, 1]
    assert [len(one["written"]) for one in rows] == [WORDS] * 2
    for row in rows:
        assert before < row["arrived"] < row["written"][0] < row["written"][-1] < after
        assert row["written"][0] - row["arrived"] >= FIRST
        assert row["written"][-1] - row["arrived"] >= FIRST + GAP * (WORDS - 1)
    assert client.get("/truth").json() == []
