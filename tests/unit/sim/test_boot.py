"""Start-up: arguments, refusals, log lines, memory."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.sim.arguments import UsageError, parse
from pytest_vllm.sim.boot.machine import hardware, model
from pytest_vllm.sim.cli import configured
from pytest_vllm.sim.defects.failure import BootFailure
from pytest_vllm.sim.inprocess import Simulated
from pytest_vllm.sim.versions import Version

if TYPE_CHECKING:
    from pathlib import Path

SPARK = (
    "Qwen/Qwen3-32B-FP8 --max-model-len 32000 --gpu-memory-utilization 0.90 --max-num-batched-tokens 16384 "
    "--max-num-seqs 64 --enable-prefix-caching --trust-remote-code --sim-hardware gb10 --sim-version 0.10.1.1"
)


def given(words: str, version: str = "0.32.0") -> dict[str, Any]:
    """What the arguments set."""
    return parse(words.split(), Version(version)).given


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        ("m --max-model-len 4096", "max_model_len", 4096),
        ("m --max_model_len=4k", "max_model_len", 4000),
        ("m --max-model-len 4K", "max_model_len", 4096),
        ("m --max-model-len 1.5k", "max_model_len", 1500),
        ("m --no-enable-prefix-caching", "enable_prefix_caching", False),
        ("m -tp 2", "tensor_parallel_size", 2),
        ("m --served-model-name a b", "served_model_name", ["a", "b"]),
        ('m --speculative-config {"method":"ngram"}', "speculative_config", {"method": "ngram"}),
        ("m --speculative-config.method ngram", "speculative_config", {"method": "ngram"}),
        ("m --kv-cache-memory 1000", "kv_cache_memory_bytes", 1000),
        ("--model x", "model", "x"),
    ],
)
def test_arguments_are_read_as_vllm_reads_them(words: str, key: str, value: Any) -> None:
    """Suffixes, negation, aliases, lists, JSON, dotted JSON, prefixes."""
    assert given(words)[key] == value


@pytest.mark.parametrize(
    ("words", "version", "message"),
    [
        ("m --max-modle-len 3", "0.32.0", "unrecognized arguments: --max-modle-len 3"),
        ("m --disable-log-requests", "0.17.0", "unrecognized arguments: --disable-log-requests"),
        ("m --task embed", "0.13.0", "unrecognized arguments: --task embed"),
        ("m --swap-space 4", "0.18.0", "unrecognized arguments: --swap-space 4"),
        ("m --dtype float17", "0.32.0", "argument --dtype: invalid choice: 'float17'"),
        ("m --max-num-seqs many", "0.32.0", "argument --max-num-seqs: invalid int value: 'many'"),
        ("m --port", "0.32.0", "argument --port: expected one argument"),
        ("m --structured-outputs-config {", "0.32.0", "cannot be converted"),
    ],
)
def test_wrong_arguments_are_refused_as_argparse_does(words: str, version: str, message: str) -> None:
    """Unknown, removed, of the wrong type."""
    with pytest.raises(UsageError, match=re.escape(message)):
        given(words, version)


@pytest.mark.parametrize("version", ["0.16.0", "0.33.0"])
def test_a_flag_that_was_away_is_back(version: str) -> None:
    """--disable-log-requests: gone in 0.17, again from 0.33."""
    assert "disable_log_requests" in given("m --disable-log-requests", version) or version == "0.33.0"


def refusal(*argv: str, **environ: str) -> list[str]:
    """The last words of a start that fails."""
    with pytest.raises(BootFailure) as caught, Simulated(argv, environ):
        pass
    assert caught.value.status == 1
    return caught.value.lines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "m --enable-auto-tool-choice",
            "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser",
        ),
        (
            "m --enable-auto-tool-choice --tool-call-parser hermez",
            "invalid tool call parser: hermez (chose from {",
        ),
        ("m --reasoning-parser qwen9", "Reasoning parser 'qwen9' not found"),
        (
            "sim-model --max-model-len 100000",
            "User-specified max_model_len (100000) is greater than the derived",
        ),
        (
            "m --max-num-batched-tokens 100 --max-num-seqs 200",
            "must be greater than or equal to max_num_seqs",
        ),
        (
            "m --max-num-batched-tokens 2048 --no-enable-chunked-prefill",
            "This effectively limits the maximum sequence length",
        ),
        ("Qwen/Qwen3-32B --sim-hardware gb10 -tp 3", "must be divisible by tensor parallel size (3)"),
        ("Qwen/Qwen3-32B --sim-hardware rtx5090", "No available memory for the cache blocks."),
        (
            "Qwen/Qwen3-32B-AWQ --sim-hardware rtx5090 --gpu-memory-utilization 0.7",
            "To serve at least one request with the model's max seq len (40960)",
        ),
        (
            "Qwen/Qwen3.5-35B-A3B-FP8 --sim-hardware gb10 --max-num-batched-tokens 512 --max-num-seqs 8",
            "block_size (528) must be <= max_num_batched_tokens (512)",
        ),
        ("m --enable-expert-parallel", "Number of experts in the model must be greater than 0"),
        ("m --chat-template /srv/none.jinja", "appears path-like, but doesn't exist!"),
    ],
)
def test_a_start_that_vllm_refuses_is_refused(words: str, message: str) -> None:
    """With vLLM's words somewhere in the last lines."""
    assert any(message in line for line in refusal(*words.split()))


def test_memory_that_is_taken_is_refused() -> None:
    """Another process holds what the server wants."""
    lines = refusal("Qwen/Qwen3-8B", "--sim-hardware", "h100", SIM_MEMORY_TAKEN_GIB="30")

    assert any("on startup is less than desired GPU memory utilization" in line for line in lines)
    assert lines[-1].startswith("RuntimeError: Engine core initialization failed.")


def test_the_log_tells_what_a_verifier_reads() -> None:
    """Version, arguments, shards, cache, concurrency, back end, graphs, readiness."""
    with Simulated(SPARK.split()) as sim:
        log = "\n".join(sim.lines)

    for pattern in (
        r"vLLM API server version 0\.10\.1\.1",
        r"non-default args: \{.*'max_model_len': 32000",
        r"Initializing a V1 LLM engine \(v0\.10\.1\.1\) with config: model='Qwen/Qwen3-32B-FP8'",
        r"Loading safetensors checkpoint shards: 100% Completed \| 7/7",
        r"Using Flash Attention backend on V1 engine",
        r"Available KV cache memory: \d+\.\d+ GiB",
        r"GPU KV cache size: [\d,]+ tokens",
        r"Maximum concurrency for 32,000 tokens per request: \d+\.\d+x",
        r"Graph capturing finished in \d+ secs, took \d+\.\d+ GiB",
        r"Application startup complete\.",
    ):
        assert re.search(pattern, log), pattern


def test_a_spark_holds_what_the_profile_expects() -> None:
    """66 GiB of KV cache are 271,360 tokens of Qwen3-32B; decoding is bound by 273 GB/s."""
    deployment, _ = configured(SPARK.split(), {})
    step = deployment.capacity.pace.step(1, 0, 100)

    assert deployment.capacity.kv_tokens >= 271_360
    assert 6 < 1 / step < 8.4
    assert deployment.speed > 20


def test_the_cpu_cache_is_exact() -> None:
    """2 GiB / 23,040 bytes, in blocks of 128: what a real server logs."""
    words = ["HuggingFaceTB/SmolLM2-135M-Instruct", "--max-model-len", "4096", "--sim-hardware", "cpu"]
    deployment, _ = configured(words, {"VLLM_CPU_KVCACHE_SPACE": "2"})

    assert deployment.capacity.kv_tokens == 93_184
    assert f"{deployment.capacity.concurrency:.2f}" == "22.75"


def test_unknown_hardware_and_models_fall_back() -> None:
    """A rehearsal needs no files."""
    assert hardware("no-such").family == "sim"
    assert model("someone/unheard-of").name == "sim-model"


def test_the_process_starts_and_ends_cleanly(tmp_path: Path) -> None:
    """As a program: it serves, and SIGTERM ends it with status 0."""
    log = tmp_path / "log"
    with log.open("wb") as out:
        argv = [sys.executable, "-m", "pytest_vllm.sim", "serve", "m", "--host", "127.0.0.1", "--port", "0"]
        process = subprocess.Popen(argv, stderr=out)
    try:
        deadline = time.monotonic() + 20
        while "startup complete" not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.02)
        found = re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text())
        assert found is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/version") as response:
            assert b"0.32.0" in response.read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()


def test_the_program_refuses_with_status_two() -> None:
    """As argparse does."""
    argv = [sys.executable, "-m", "pytest_vllm.sim", "serve", "m", "--max-modle-len", "3"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)

    assert done.returncode == 2
    assert "unrecognized arguments: --max-modle-len 3" in done.stderr
