"""What a start's log tells of how far it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_vllm.launch.phases import ORDER, PhaseReader, Step, step_of

LOG = Path(__file__).parent / "logs/healthy.log"


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (
            "Loading safetensors checkpoint shards:  47% Completed | 7/15 [01:12<01:20, 10.1s/it]",
            Step("loading weights", "7 of 15 shards"),
        ),
        (
            "Multi-thread loading shards:  13% Completed | 2/15 [01:12<01:20, 10.1s/it]",
            Step("loading weights", "2 of 15 shards"),
        ),
        (
            "INFO 11-27 20:50:01 [x.py:1] Loading weights took 201.53 seconds",
            Step("loading weights", "read in 202 s"),
        ),
        (
            "Model loading took 29.2 GiB memory and 210.100000 seconds",
            Step("loading weights", "29.2 GiB in 210 s"),
        ),
        (
            "Fetching 21 files:  33%|███▎      | 7/21 [00:10<00:20,  1.40s/it]",
            Step("downloading weights", "7 of 21 files"),
        ),
        (
            "model-00002-of-00007.safetensors:  12%|█▏        | 0.6G/4.9G",
            Step("downloading weights", "model-00002-of-00007.safetensors 12 %"),
        ),
        ("(EngineCore pid=9) INFO Available KV cache memory: 61.2 GiB", Step("sizing KV cache", "61.2 GiB")),
        ("GPU KV cache size: 407,648 tokens", Step("sizing KV cache", "407,648 tokens")),
        (
            "CPU KV cache size: 93,184 tokens, Maximum concurrency for 4,096 tokens per request: 22.75x",
            Step("sizing KV cache", "93,184 tokens, 22.75 sequences of 4,096 tokens"),
        ),
        ("# GPU blocks: 27894, # CPU blocks: 2048", Step("sizing KV cache", "27894 blocks")),
        ("INFO [backends.py:1] Dynamo bytecode transform time: 5.31 s", Step("compiling")),
        ("torch.compile takes 23.45 s in total", Step("compiling", "23 s")),
        (
            "Capturing CUDA graphs (PIECEWISE):  42%|████▏     | 28/67 [00:03<00:04]",
            Step("capturing graphs", "28 of 67"),
        ),
        ("Graph capturing finished in 3 secs, took 0.61 GiB", Step("capturing graphs", "3 s")),
        (
            "init engine (profile, create kv cache, warmup model) took 22.83 seconds",
            Step("warming up", "engine ready in 23 s"),
        ),
        ("Initializing a V1 LLM engine (v0.11.0) with config: model='m'", Step("starting the engine")),
        ("INFO:     Application startup complete.", Step("started")),
        (
            "pulling vllm/vllm-openai:v0.32.0: 3 of 17 layers, 1.2 of 9.4 GB",
            Step("pulling image", "3 of 17 layers, 1.2 of 9.4 GB"),
        ),
        ("pulling vllm/vllm-openai:v0.32.0", Step("pulling image")),
        ("INFO 11-27 20:50:01 [x.py:1] Using max model len 4096", None),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_one_line(line: str, step: Step | None) -> None:
    """A phase and what is worth telling of it; nothing for most lines."""
    assert step_of(line) == step


def test_real_start_goes_through_its_phases_in_order() -> None:
    """A vLLM 0.32.0 on a CPU, figures included."""
    reader = PhaseReader()
    for second, line in enumerate(LOG.read_text("utf-8").splitlines()):
        reader.read(line, float(second))

    assert [name for name, _ in reader.history] == [
        "starting",
        "loading the program",
        "starting the engine",
        "loading weights",
        "sizing KV cache",
        "warming up",
        "opening the server",
        "started",
    ]
    assert [at for _, at in reader.history] == sorted(at for _, at in reader.history)
    assert reader.facts["kv-cache-tokens"] == 46592
    assert reader.facts["kv-cache-gib"] == 1.0
    assert reader.facts["max-model-len"] == 4096
    assert reader.facts["architecture"] == "LlamaForCausalLM"


def test_phase_never_goes_back() -> None:
    """A second worker that still loads does not hide that the first one sizes its cache."""
    reader = PhaseReader()
    reader.read("Available KV cache memory: 61.2 GiB", 5.0)
    reader.read("Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:00<00:00]", 6.0)

    assert reader.phase == "sizing KV cache"


def test_cache_size_and_what_fits_are_told_together() -> None:
    """GiB from one line, sequences from a later one; tokens only in between."""
    reader = PhaseReader()
    for line in (
        "Available KV cache memory: 61.2 GiB",
        "GPU KV cache size: 407,648 tokens",
        "Maximum concurrency for 32,768 tokens per request: 12.44x",
    ):
        reader.read(line, 1.0)

    assert reader.detail == "61.2 GiB, 12.44 sequences of 32,768 tokens"


def test_detail_belongs_to_its_phase() -> None:
    """A new phase begins without the old one's detail."""
    reader = PhaseReader()
    reader.read("Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:00<00:00]", 1.0)
    reader.read("Dynamo bytecode transform time: 5.31 s", 2.0)

    assert (reader.phase, reader.detail) == ("compiling", "")


def test_phases_are_all_reachable() -> None:
    """No phase in the order that no line shows, apart from the first."""
    text = (Path(__file__).parents[3] / "pytest_vllm/launch/phases.toml").read_text("utf-8")

    assert [name for name in ORDER[1:] if f"phase = {json.dumps(name)}" not in text] == []
