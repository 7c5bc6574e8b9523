"""What fills the cache, and how answers of requests that were put back are told apart from wrong ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_vllm.wire.recording import NotRun, Recording, Request
from pytest_vllm.wire.server import Server
from suites.memory.exchanges import crowd
from suites.memory.test_crowd import parts, unfinished, unlike

SERVER = Server("http://127.0.0.1:8000", "m", max_model_len=4096, max_num_seqs=64)


def scraped(blocks: int, size: int = 16) -> Recording:
    labels = f'block_size="{size}",num_gpu_blocks="{blocks}"'
    text = f"# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{{{labels}}} 1.0\n"
    return Recording("memory.finished", Request("GET", "/metrics"), status=200, metrics_after=text)


def earlier(seconds: float = 0.5) -> Recording:
    asked = Request("POST", "/v1/completions", json={"prompt": " ".join(["7"] * 600)})
    return Recording("streaming.long-prompt", asked, status=200, seconds=seconds)


@pytest.mark.parametrize("blocks", [300, 600, 2000])
def test_the_prompts_fill_the_cache_and_leave_less_than_a_block_for_each(blocks: int) -> None:
    prompts, tokens = crowd(SERVER, scraped(blocks), earlier())
    held = sum(-(-len(prompt) // 16) for prompt in prompts)

    assert blocks - 1 - len(prompts) < held <= blocks - 1
    assert all(len(prompt) % 16 == 15 for prompt in prompts)
    assert all(len(prompt) + tokens <= 4096 for prompt in prompts)


@pytest.mark.parametrize(
    ("server", "blocks", "seconds", "why"),
    [
        (SERVER, 10_000, 0.5, "is not filled here"),
        (SERVER, 2400, 5.0, "it would take 320 s"),
        (Server("http://127.0.0.1:8000", "m", max_model_len=4096, max_num_seqs=2), 600, 0.5, "at once"),
        (Server("http://127.0.0.1:8000", "m", max_model_len=32, max_num_seqs=64), 600, 0.5, "a context of"),
    ],
)
def test_what_is_large_slow_or_alone_is_not_filled(
    server: Server, blocks: int, seconds: float, why: str
) -> None:
    with pytest.raises(NotRun, match=why):
        crowd(server, scraped(blocks), earlier(seconds))


def choice(text: str, *tokens: str, rival: float = -5.0) -> dict[str, Any]:
    told = [(token, {token: -0.1, "token_id:9": rival}) for token in tokens]
    return {"text": text, "tokens": told, "finish": "length"}


def test_the_same_tokens_have_the_same_text() -> None:
    whole, cut = choice("ab", "token_id:1", "token_id:2"), choice("a", "token_id:1", "token_id:2")

    assert not unlike(whole, whole)
    assert "the same tokens" in unlike(whole, cut)


def test_answers_may_part_where_two_tokens_are_about_as_likely() -> None:
    one = choice("ab", "token_id:1", "token_id:2", rival=-0.2)

    assert not unlike(one, choice("ac", "token_id:1", "token_id:9", rival=-0.2))
    assert unlike(choice("ab", "token_id:1", "token_id:2"), choice("ac", "token_id:1", "token_id:9"))


def answered(*choices: dict[str, Any], length: int = 2) -> Recording:
    body = json.dumps({"choices": list(choices)}).encode()
    asked = Request("POST", "/v1/completions", json={"prompt": [[1], [2]], "max_tokens": length})
    kind = (("content-type", "application/json"),)
    return Recording("memory.crowd", asked, status=200, headers=kind, chunks=((0.1, body),))


def row(index: int, tokens: int = 2, finish: str = "length") -> dict[str, Any]:
    told = {"tokens": ["token_id:1"] * tokens, "top_logprobs": [{"token_id:1": -0.1}] * tokens}
    return {"index": index, "text": "x" * tokens, "logprobs": told, "finish_reason": finish}


@pytest.mark.parametrize(
    ("choices", "why"),
    [
        ([row(0), row(1)], ""),
        ([row(0)], "1 of 2 choices"),
        ([row(0), row(1, tokens=1)], "choice 1 has 1 of 2 tokens"),
        ([row(0), row(1, finish="stop")], "choice 1 ends with 'stop'"),
    ],
)
def test_each_choice_is_as_long_as_was_asked(choices: list[dict[str, Any]], why: str) -> None:
    assert "; ".join(unfinished(answered(*choices))) == why


def test_a_server_that_sheds_load_is_not_judged() -> None:
    shed = Recording("memory.crowd", Request("POST", "/v1/completions", json={}), status=503)

    with pytest.raises(NotRun, match="shed"):
        unfinished(shed)


def test_pieces_of_a_stream_are_joined_by_choice() -> None:
    two = answered(row(0, tokens=1), row(0, tokens=1), row(1))

    assert {at: len(one["tokens"]) for at, one in parts(two).items()} == {0: 2, 1: 2}
