"""What the support bot needs of its server: checks of its own, and ordinary tests beside them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import httpx
import openai

from pytest_vllm import MUST, SHOULD, Recording, Request, Server, check, exchange, need, text_of

QUESTION = [
    {"role": "system", "content": "You answer questions about trains, in one sentence."},
    {"role": "user", "content": "When does the first train leave?"},
]


@exchange("bot.question")
def bot_question(server: Server) -> Request:
    """The bot's usual request."""
    return server.chat(QUESTION, max_tokens=32)


@exchange("bot.question-streamed")
def bot_question_streamed(server: Server) -> Request:
    """The same, as the web page asks it."""
    return server.chat(QUESTION, max_tokens=32, stream=True, stream_options={"include_usage": True})


@check("bot.question.within-budget", MUST, spec="profile:budget", needs=["chat"])
def test_within_budget(bot_question: Recording) -> None:
    """An answer costs at most the 32 tokens that the bot pays for."""
    used = bot_question.ok["usage"]["completion_tokens"]

    assert used <= 32, f"{used} tokens were billed"


@check("bot.question.streams-the-same", SHOULD, spec="profile:budget", needs=["chat", "stream"])
def test_streams_the_same(bot_question: Recording, bot_question_streamed: Recording) -> None:
    """The web page shows what the API answers."""
    whole = text_of(bot_question.ok["choices"][0])
    need(whole, "the answer is empty")

    choices = [choice for chunk in bot_question_streamed.deltas for choice in chunk["choices"]]
    streamed = "".join(choice["delta"].get("content") or "" for choice in choices)
    assert streamed == whole, f"streamed {streamed!r}, at once {whole!r}"


def test_the_sdk_reads_this_server(vllm_client: openai.OpenAI, vllm_server: Server) -> None:
    answer = vllm_client.chat.completions.create(
        model=vllm_server.model, messages=[{"role": "user", "content": "Hello"}], max_tokens=8
    )

    assert answer.choices[0].message.role == "assistant"


def test_a_prompt_is_counted_once(
    vllm_http: httpx.Client,
    vllm_server: Server,
    vllm_metrics: Callable[[], AbstractContextManager[Any]],
) -> None:
    with vllm_metrics() as grown:
        body = {"model": vllm_server.model, "prompt": "One two three", "max_tokens": 4}
        usage = vllm_http.post("/v1/completions", json=body).raise_for_status().json()["usage"]

    assert grown("vllm:prompt_tokens_total") == usage["prompt_tokens"]


def test_the_profile_is_the_bots(vllm_profile: Any, vllm_capabilities: Any) -> None:
    assert vllm_profile.server.args["max-num-seqs"] == 8
    assert vllm_capabilities["chat"].present
