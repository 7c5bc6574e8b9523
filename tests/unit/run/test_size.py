"""What does not fit into the server's context is not sent; a refusal that names it is excused only then."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_vllm.run.size import TEMPLATE, Sizes, most
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Capability, Server

if TYPE_CHECKING:
    from pytest_vllm.wire.client import WireClient

LIMIT = 256
REFUSAL = "This model's maximum context length is 256 tokens. However, you requested 300 tokens."


class Counts:
    """A client whose server counts every prompt as so many tokens."""

    def __init__(self, count: int) -> None:
        self.count, self.asked = count, list[Any]()

    async def send(self, key: str, request: Request) -> Recording:
        self.asked.append(request.json)
        body = json.dumps({"count": self.count}).encode()
        return Recording(key, request, sent=0.0, status=200, chunks=((0.1, body),))


def sizes(count: int, *, tokenize: bool = True) -> Sizes:
    able = {"tokenize": Capability("tokenize", tokenize, "probed")}
    server = Server("http://x", "m", max_model_len=LIMIT, capabilities=able)
    return Sizes(server, cast("WireClient", Counts(count)))


def completion(prompt: object, expect: int | None = 200, **more: Any) -> Request:
    return Request("POST", "/v1/completions", json={"prompt": prompt, **more}, expect=expect)


def refused(request: Request, status: int = 400, text: str = REFUSAL) -> Recording:
    return Recording("x", request, sent=0.0, status=status, chunks=((0.1, text.encode()),))


@pytest.mark.parametrize(
    ("request_", "count", "sent"),
    [
        (completion("a " * 300), 200, True),
        (completion("a " * 300), 300, False),
        (completion("a " * 300, max_tokens=100), 200, False),
        (completion("a " * 300, expect=400), 300, True),
        (completion("a " * 300, expect=None), 300, True),
        (completion([7] * 257), 1, False),
        (completion([7] * 256), 1, True),
        (completion([[7], [7] * 257]), 1, False),
    ],
    ids=[
        "fits",
        "too long",
        "no room for the answer",
        "to be refused",
        "may be refused",
        "ids",
        "ids fit",
        "of two",
    ],
)
def test_what_does_not_fit_is_not_sent(request_: Request, count: int, sent: bool) -> None:
    why = asyncio.run(sizes(count).too_big(request_))

    assert bool(why) is not sent
    assert not why or "a context of" in why


def test_what_fits_for_certain_is_not_counted() -> None:
    known = sizes(300)

    assert asyncio.run(known.too_big(completion("a"))) == ""
    assert cast("Counts", known.client).asked == []


def test_without_a_tokenizer_a_prompt_is_sent_and_its_refusal_is_excused() -> None:
    blind, request = sizes(1, tokenize=False), completion("a " * 300)

    assert asyncio.run(blind.too_big(request)) == ""
    assert asyncio.run(blind.refused(refused(request)))


@pytest.mark.parametrize(
    ("request_", "count", "status", "text", "excused"),
    [
        (completion("a " * 300), 300, 400, REFUSAL, True),
        (completion("a " * 300, expect=None), 300, 400, REFUSAL, True),
        (completion("a " * 300), 200, 400, REFUSAL, False),
        (completion("a "), 300, 400, REFUSAL, False),
        (completion("a " * 300), 300, 400, "temperature must be non-negative", False),
        (completion("a " * 300), 300, 500, REFUSAL, False),
        (completion("a " * 300, expect=400), 300, 400, REFUSAL, False),
    ],
    ids=["too long", "may be refused", "counted: fits", "fits for certain", "another", "an error", "meant"],
)
def test_only_a_refusal_of_what_does_not_fit_is_excused(
    request_: Request, count: int, status: int, text: str, excused: bool
) -> None:
    """A server that refuses what fits is accused."""
    assert bool(asyncio.run(sizes(count).refused(refused(request_, status, text)))) is excused


def test_a_chat_is_counted_as_its_template_renders_it() -> None:
    body = {
        "messages": [{"role": "user", "content": "a " * 300}],
        "tools": [{}],
        "max_tokens": 1,
        "logprobs": True,
    }
    known = sizes(400)

    assert asyncio.run(known.too_big(Request("POST", "/v1/chat/completions", json=body, expect=200)))
    assert cast("Counts", known.client).asked == [
        {"model": None, "messages": body["messages"], "tools": [{}]}
    ]


def test_a_count_beyond_the_characters_is_not_believed() -> None:
    request = completion("a " * 300)

    assert asyncio.run(sizes(5000).too_big(request)) == ""


def test_a_template_may_add_to_what_a_chat_says() -> None:
    chat = Request("POST", "/v1/chat/completions", json={"messages": []})

    assert most(chat) >= TEMPLATE
