"""Kinds of cache from a config, and how vLLM shares memory out among them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_vllm.profile.caches import CacheLayers
from pytest_vllm.profile.capacity import Serving, pool
from pytest_vllm.profile.catalogue import model_of
from pytest_vllm.profile.layers import layer_names

FULL = CacheLayers(kind="full", layers=32, kv_heads=8, width=256)
LATENT = CacheLayers(kind="mla", layers=61, width=576)


@pytest.mark.parametrize(
    ("repo", "kinds"),
    [
        ("deepseek-ai/DeepSeek-V3", {"mla": 61}),
        ("deepseek-ai/DeepSeek-V3.2", {"sparse-mla": 61, "index": 61}),
        ("deepseek-ai/DeepSeek-V4-Flash", {"unknown": 43}),
        ("MiniMaxAI/MiniMax-M3", {"unknown": 60}),
        ("openai/gpt-oss-120b", {"window": 18, "full": 18}),
        ("google/gemma-3-27b-it", {"window": 52, "full": 10}),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", {"chunk": 36, "full": 12}),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", {"state": 36, "full": 12}),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", {"state": 23, "full": 6}),
        ("moonshotai/Kimi-K3", {"state": 69, "mla": 24}),
        ("BAAI/bge-m3", {}),
        ("openai/whisper-large-v3", {"full": 32, "cross": 32}),
    ],
)
def test_kinds_of_a_config(repo: str, kinds: dict[str, int]) -> None:
    """Read by what the config's keys mean."""
    model = model_of(repo)

    assert model is not None
    assert {one.kind: one.layers for one in model.cache_layers} == kinds


@pytest.mark.parametrize(("split", "heads"), [(1, 8), (4, 2), (8, 1), (16, 1)])
def test_heads_that_are_split(split: int, heads: int) -> None:
    """Each GPU holds a share, and one head at least: fewer heads than GPUs are held more than once."""
    assert FULL.token_bytes("auto", split) == heads * 256 * 2


def test_a_latent_is_not_split() -> None:
    """Every GPU holds MLA's latent whole."""
    assert LATENT.token_bytes("auto", 8) == LATENT.token_bytes("auto", 1) == 1152
    assert LATENT.token_bytes("fp8", 8) == 576


def test_stages_share_the_layers_out() -> None:
    """The stage with the most layers decides."""
    whole, half = pool([FULL], Serving()), pool([FULL], Serving(stages=2))

    assert whole is not None
    assert half is not None
    assert half.request_bytes == whole.request_bytes / 2


def test_a_window_stops_growing() -> None:
    """A context that is ten times as long needs no more of a window, and ten times as much of the rest."""
    window = CacheLayers(kind="window", layers=32, kv_heads=8, width=256, window=1024)
    short = Serving(length=8192, in_flight=1024)
    alone = pool([window], short)
    longer = pool([window], replace(short, length=81_920))

    assert alone is not None
    assert longer is not None
    assert longer.request_bytes == alone.request_bytes


def test_a_state_makes_blocks_larger() -> None:
    """Blocks of attention are as large as a state: 1,056 tokens of 2,048 bytes for 2,146,304."""
    state = CacheLayers(kind="state", layers=30, state_bytes=2_146_304)
    found = pool([state, CacheLayers(kind="full", layers=10, kv_heads=2, width=512)], Serving())

    assert found is not None
    assert (found.block, found.groups) == (1056, 4)


@pytest.mark.parametrize(
    "caches",
    [[], [CacheLayers(kind="unknown", layers=3)], [CacheLayers(kind="state", layers=3, state_bytes=9)]],
)
def test_not_computed(caches: list[CacheLayers]) -> None:
    """No cache, one that is not understood, and nothing but states: no figure, instead of a wrong one."""
    assert pool(caches, Serving()) is None


def test_context_parallelism() -> None:
    """Each GPU holds its part of every sequence; kinds beside each other are not computed so."""
    alone, shared = Serving(length=4096), Serving(length=4096, shared=8)
    one, eighth = pool([LATENT], alone), pool([LATENT], shared)

    assert one
    assert eighth
    assert eighth.request_bytes * 8 == one.request_bytes
    assert eighth.tokens(1e9, shared) == 8 * one.tokens(1e9, alone)
    assert pool([LATENT, LATENT.model_copy(update={"kind": "window", "window": 128})], shared) is None


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({"model_type": "gemma2", "sliding_window": 4096}, ["window", "full", "window", "full"]),
        ({"model_type": "exaone4", "sliding_window_pattern": "LLLG"}, ["window", "window", "window", "full"]),
        ({"model_type": "gemma3_text", "sliding_window_pattern": 2}, ["window", "full", "window", "full"]),
        ({"model_type": "mistral", "sliding_window": 4096}, ["window"] * 4),
        ({"model_type": "qwen2", "sliding_window": 4096}, ["full"] * 4),
    ],
)
def test_which_layers_have_a_window(config: dict[str, object], names: list[str]) -> None:
    """By the rule of each family."""
    assert layer_names({"num_hidden_layers": 4, **config}) == names
