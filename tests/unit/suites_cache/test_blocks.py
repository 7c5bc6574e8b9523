"""The arithmetic of blocks that the cache suite judges by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_vllm.wire.recording import NotRun, Recording, Request, Undecided
from pytest_vllm.wire.server import Server
from suites.cache.exchanges import block_size
from suites.cache.scrapes import between, block, findable

PLAIN = Server("http://127.0.0.1:8000", "m")
DRAFTING = Server("http://127.0.0.1:8000", "m", drafts=True)


def scrape(**labels: str) -> str:
    inner = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{{{inner}}} 1.0\n"


def config(text: str) -> Recording:
    return Recording("cache.config", Request("GET", "/metrics"), status=200, chunks=((0.1, text.encode()),))


@pytest.mark.parametrize(
    ("tokens", "size", "right"),
    [(53, 16, 48), (49, 16, 48), (48, 16, 32), (16, 16, 0), (1, 16, 0), (389, 128, 384)],
)
def test_the_last_token_is_always_computed(tokens: int, size: int, right: int) -> None:
    assert findable(tokens, size, PLAIN) == (right,)


def test_drafting_may_cost_a_block() -> None:
    assert findable(53, 16, DRAFTING) == (48, 32)


def test_what_others_took_in_between_is_counted() -> None:
    def at(sent: float, tokens: int, key: str = "other") -> Recording:
        body = f'{{"usage": {{"total_tokens": {tokens}}}}}'.encode()
        asked = Request("POST", "/v1/completions", json={"prompt": "x"})
        return Recording(key, asked, status=200, sent=sent, seconds=1.0, chunks=((0.5, body),))

    before, now = at(10.0, 50, "before"), at(20.0, 80, "now")
    others = [at(1.0, 7), at(15.0, 100), at(19.0, 1000), at(30.0, 7)]
    found: Any = SimpleNamespace(of=lambda _: [before, *others, now])

    assert between(found, before, now) == 100 + 1000


def test_the_block_of_attention_counts() -> None:
    assert block_size(scrape(block_size="16", effective_attention_block_size="528")) == 528
    assert block_size(scrape(block_size="16", effective_attention_block_size="None")) == 16
    assert block_size(scrape(block_size="None")) is None
    assert block_size("no metrics {") is None


def test_large_blocks_follow_other_rules() -> None:
    with pytest.raises(NotRun, match="528"):
        block(config(scrape(block_size="528")))


def test_an_untold_block_size_decides_nothing() -> None:
    with pytest.raises(Undecided):
        block(config(scrape(block_size="None")))
