"""The start-up log: the lines that an operator or a verifier reads, in vLLM's order and words."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from pytest_vllm.sim.boot.machine import GIB
from pytest_vllm.sim.versions import facts, is_timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.boot.deployment import Deployment

#: (process, level, place, text); level "" prints the text alone.
Line = tuple[str, str, str, str]
SHARD = 4.3 * GIB
LOAD_RATE = 1.2 * GIB


def formatted(line: Line, deployment: Deployment, wall: float) -> str:
    """A line as it is printed: with process, level, date and place, as the version does."""
    process, level, place, text = line
    if not level:
        return text
    stamp = time.strftime("%m-%d %H:%M:%S", time.localtime(wall))
    head = f"{level} {stamp} [{place}]"
    if deployment.version < "0.10.1":
        return f"{head} {text}"
    name = "EngineCore_0" if process == "EngineCore" and deployment.version < "0.11.1" else process
    return f"({name} pid={os.getpid()}) {head} {text}"


def opening(d: Deployment) -> Iterator[Line]:
    """What comes before the engine starts."""
    api = "APIServer"
    if d.version >= "0.22.0":
        for text in ("", "       █     █     █▄   ▄█", f" ▄▄ ▄█ █     █     █ ▀▄▀ █  version {d.version}"):
            yield api, "INFO", "api_utils.py:347", text
        yield api, "INFO", "api_utils.py:347", f"  █▄█▀ █     █     █     █  model   {d.model}"
        yield api, "INFO", "api_utils.py:347", "   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀"
    else:
        yield api, "INFO", "api_server.py:1896", f"vLLM API server version {d.version}"
    if d.version >= "0.9.0":
        yield api, "INFO", "utils.py:328", f"non-default args: {non_default(d)}"
    for name in d.unknown_environment:
        if d.version >= "0.17.0":
            yield api, "WARNING", "envs.py:2300", f"Unknown vLLM environment variable detected: {name}"
    if d.version >= "0.10.1":
        yield api, "INFO", "model.py:733", f"Resolved architecture: {d.shape.architecture}"
    if d.version >= "0.9.2":
        yield api, "INFO", "model.py:2152", f"Using max model len {d.capacity.max_model_len}"
    if d.capacity.chunked_prefill:
        text = f"Chunked prefill is enabled with max_num_batched_tokens={d.capacity.max_num_batched_tokens}."
        yield api, "INFO", "scheduler.py:225", text
    if d.args.get("enforce_eager"):
        yield (
            api,
            "WARNING",
            "vllm.py:1703",
            "Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT kernel warmup.",
        )


def engine(d: Deployment) -> Iterator[tuple[float, Line]]:
    """The engine's start: virtual seconds that pass before each line, and the line."""
    core, worker = "EngineCore", "Worker" if d.version >= "0.12.0" else "EngineCore"
    args = d.args
    config = (
        f"model='{d.model}', speculative_config={args.get('speculative_config')}, tokenizer='{d.model}', "
        "dtype=torch.bfloat16, "
        f"max_seq_len={d.capacity.max_model_len}, download_dir={args.get('download_dir')!r}, "
        "load_format=auto, "
        f"tensor_parallel_size={args.get('tensor_parallel_size', 1)}, pipeline_parallel_size="
        f"{args.get('pipeline_parallel_size', 1)}, data_parallel_size={args.get('data_parallel_size', 1)}, "
        "quantization="
        f"{d.shape.quantization if d.shape.quantization != 'none' else None}, enforce_eager="
        f"{bool(args.get('enforce_eager'))}, kv_cache_dtype={args.get('kv_cache_dtype', 'auto')}, seed="
        f"{args.get('seed') or 0}, served_model_name={(args.get('served_model_name') or [d.model])[0]}, "
        f"enable_prefix_caching={d.capacity.prefix_caching}, "
        f"enable_chunked_prefill={d.capacity.chunked_prefill}"
    )
    yield (
        6.0,
        (core, "INFO", "core.py:133", f"Initializing a V1 LLM engine (v{d.version}) with config: {config}"),
    )
    yield 1.0, (worker, "INFO", "gpu_model_runner.py:5100", f"Starting to load model {d.model}...")
    if not d.machine.is_cpu:
        yield 0.4, (worker, "INFO", "cuda.py:480", attention(d))
    yield from _weights(d, worker)
    yield from _graphs(d, worker)
    yield from _memory(d, core, worker)


def attention(d: Deployment) -> str:
    """The line that names the attention back end."""
    name = d.args.get("attention_backend") or d.environ.get("VLLM_ATTENTION_BACKEND") or "FLASH_ATTN"
    if d.machine.capability.startswith("10.") and "attention_backend" not in d.args.given:
        name = "FLASHINFER"
    if d.version < "0.12.0":
        return f"Using {'Flash Attention' if name == 'FLASH_ATTN' else name} backend on V1 engine."
    return (
        f"Using {name} attention backend out of potential backends: ['FLASH_ATTN', 'FLASHINFER', "
        "'TRITON_ATTN']."
    )


def _weights(d: Deployment, worker: str) -> Iterator[tuple[float, Line]]:
    shards = max(1, round(d.shape.weights / SHARD))
    seconds = d.shape.weights / LOAD_RATE
    for number in range(shards + 1):
        share = 100 * number // shards
        text = (
            f"Loading safetensors checkpoint shards: {share:3d}% Completed | {number}/{shards} "
            f"[{int(seconds * number / shards) // 60:02d}:{int(seconds * number / shards) % 60:02d}<00:00,  "
            "1.00s/it]"
        )
        yield seconds / shards if number else 0.1, ("", "", "", text)
    if d.version >= "0.8.0":
        yield 0.1, (worker, "INFO", "default_loader.py:501", f"Loading weights took {seconds:.2f} seconds")
    size = f"{d.shape.weights / GIB:.2f} GiB"
    memory = f"{size} memory and" if d.version >= "0.11.1" else f"{size} and"
    yield (
        0.2,
        (
            worker,
            "INFO",
            "gpu_model_runner.py:5158",
            f"Model loading took {memory} {seconds + 1:.6f} seconds",
        ),
    )


def _graphs(d: Deployment, worker: str) -> Iterator[tuple[float, Line]]:
    if d.args.get("enforce_eager") or d.machine.is_cpu:
        return
    yield 8.0, (worker, "INFO", "monitor.py:48", "torch.compile took 8.00 s in total")
    if d.version >= "0.18.0":
        yield (
            1.0,
            (
                worker,
                "INFO",
                "gpu_worker.py:740",
                f"Estimated CUDA graph memory: {d.capacity.graphs / GIB:.2f} GiB total",
            ),
        )


def _memory(d: Deployment, core: str, worker: str) -> Iterator[tuple[float, Line]]:
    capacity = d.capacity
    if d.machine.is_cpu:
        if d.version >= "0.20.0":
            text = (
                f"Explicitly set ({capacity.kv_memory / GIB:.1f}/{d.machine.memory / GIB:.2f}) GiB for KV "
                "cache on node 0."
            )
            yield 0.2, (worker, "INFO", "cpu_worker.py:260", text)
    elif d.version >= "0.9.2":
        yield (
            1.0,
            (
                worker,
                "INFO",
                "gpu_worker.py:759",
                f"Available KV cache memory: {capacity.kv_memory / GIB:.2f} GiB",
            ),
        )
    device = "CPU" if d.machine.is_cpu and d.version >= "0.30.0" else "GPU"
    size = f"{device} KV cache size: {capacity.kv_tokens:,} tokens"
    concurrency = (
        f"Maximum concurrency for {capacity.max_model_len:,} tokens per request: {capacity.concurrency:.2f}x"
    )
    place = "kv_cache_utils.py:2327"
    if d.version >= "0.28.0":
        yield 0.2, (core, "INFO", place, f"{size}, {concurrency}")
    else:
        yield 0.2, (core, "INFO", place, size)
        yield 0.0, (core, "INFO", place, concurrency)
    if not (d.args.get("enforce_eager") or d.machine.is_cpu):
        yield (
            3.0,
            (
                "",
                "",
                "",
                "Capturing CUDA graphs (decode, FULL): 100%|██████████| 35/35 [00:03<00:00, 11.67it/s]",
            ),
        )
        text = f"Graph capturing finished in 3 secs, took {max(capacity.graphs, 0.3 * GIB) / GIB:.2f} GiB"
        yield 0.1, (worker, "INFO", "gpu_model_runner.py:6300", text)
    total = 12.0 if not d.machine.is_cpu else 1.0
    unit = "s" if d.version >= "0.16.0" else "seconds"
    yield (
        0.1,
        (
            core,
            "INFO",
            "core.py:402",
            f"init engine (profile, create kv cache, warmup model) took {total:.2f} {unit}",
        ),
    )


def listening(d: Deployment, server: Server, host: str, port: int) -> Iterator[Line]:
    """What comes once the engine is ready."""
    api = "APIServer"
    tasks = list(server.settings.kind.listed(d.version))
    if d.version >= "0.10.1":
        yield api, "INFO", "entry.py:136", f"Supported tasks: {tasks}"
    if server.settings.auto_tools:
        text = (
            '"auto" tool choice has been enabled. Please note that while the parallel_tool_calls client '
            "option is "
        )
        yield api, "INFO", "serving.py:150", text + "preset for compatibility reasons, it will be ignored."
    if server.settings.dev_mode:
        text = "SECURITY WARNING: Development endpoints are enabled! This should NOT be used in production!"
        yield api, "WARNING", "api_server.py:1017", text
    if d.version >= "0.30.0" and not d.args.get("enable_scale_out"):
        text = "Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out to enable them."
        yield api, "INFO", "factories.py:89", text
    name = (
        "vLLM server"
        if d.version >= "0.24.0"
        else "vLLM API server 0"
        if d.version >= "0.9.0"
        else "vLLM API server"
    )
    where = f"unix:{d.args.get('uds')}" if d.args.get("uds") else f"http://{host}:{port}"
    yield api, "INFO", "entry.py:140", f"Starting {name} on {where}"
    if server.settings.sampling_defaults and server.settings.kind.generates and d.version >= "0.8.0":
        text = f"Using default chat sampling params from model: {server.settings.sampling_defaults}"
        yield api, "INFO", "serving.py:180", text
    yield api, "INFO", "launcher.py:186", "Available routes are:"
    for path, methods in server.routes.items():
        shown = ", ".join(sorted(method if method != "*" else "GET" for method in methods))
        yield api, "INFO", "launcher.py:195", f"Route: {path}, Methods: {shown}"
    yield "", "", "", f"INFO:     Started server process [{os.getpid()}]"
    yield "", "", "", "INFO:     Waiting for application startup."
    yield "", "", "", "INFO:     Application startup complete."


def non_default(d: Deployment) -> dict[str, object]:
    """Arguments that differ from their defaults, with secrets masked."""
    flags = facts("flags")
    shown: dict[str, object] = {}
    for key, value in d.args.given.items():
        flag = flags.get(f"--{key.replace('_', '-')}", {})
        default = flag.get("default")
        default = d.version.pick(default) if is_timeline(default) else default
        if value != default and not key.startswith("_"):
            shown[key] = "***" if key in ("api_key", "hf_token") else value
    return shown
