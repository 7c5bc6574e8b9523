"""Defects of memory: what is not given back, what does not fit, what the log tells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import JSON, Exchange, Reply
from pytest_vllm.sim.defects.make import spoil
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import COMPLETIONS

if TYPE_CHECKING:
    from pytest_vllm.sim.boot.deployment import Deployment
    from pytest_vllm.sim.engine.sequence import Sequence

#: A cache in which the blocks of a few requests show.
SMALL = ["--num-gpu-blocks-override", "4000"]
#: A prompt longer than a GPU takes that only just fits the model.
LONG = 3000


@defect("memory.blocks-leak", on="freed", catches=["memory.finished.freed", "memory.many.freed"])
def blocks_leak(freed: bool, sequence: Sequence) -> bool:
    """A finished request keeps its KV blocks."""
    return freed and sequence.ended == "abort"


@defect(
    "memory.left-keeps-blocks",
    on="freed",
    faults=["ROBUST-016"],
    needs=SMALL,
    catches=["memory.left.freed"],
)
def left_keeps_blocks(freed: bool, sequence: Sequence) -> bool:
    """A request whose client has left keeps its KV blocks."""
    return freed and sequence.ended != "abort"


def _size(blocks: int) -> Any:
    def told(text: str, engine: Any) -> str:
        del engine
        text = re.sub(r'num_gpu_blocks="\d+"', f'num_gpu_blocks="{blocks}"', text)
        return re.sub(r'kv_cache_size_tokens="\d+"', f'kv_cache_size_tokens="{blocks * 16}"', text)

    return told


add(
    "memory.cache-below-context",
    "The cache is smaller than one request of full length, and the server starts all the same.",
    {"metrics": _size(100)},
    catches=["memory.capacity.one-request"],
)
add(
    "memory.less-than-promised",
    "The cache holds half of the tokens that the profile promises.",
    {"metrics": _size(8000)},
    profile="spark-fp8",
    catches=["memory.capacity.promised"],
)


def _long(reply: Reply, exchange: Exchange) -> bool:
    prompt = (exchange.body or {}).get("prompt") if isinstance(exchange.body, dict) else None
    return reply.status == 200 and isinstance(prompt, list) and len(prompt) > LONG


@defect(
    "memory.long-prompt-ends-engine",
    on="reply",
    paths=(COMPLETIONS,),
    faults=["MEM-003", "MEM-018", "ROBUST-028"],
    catches=["memory.longest.answered"],
)
def long_prompt_ends(reply: Reply, exchange: Exchange) -> Reply:
    """A prompt that nearly fills the context runs out of memory."""
    if not _long(reply, exchange):
        return reply
    return Reply(500, b'{"error": {"message": "EngineCore encountered an issue.", "code": 500}}', [JSON])


spoil(
    "memory.long-prompt-cut",
    "A prompt that does not fit into a batch is cut without a word.",
    (COMPLETIONS,),
    "usage.prompt_tokens",
    lambda tokens: min(tokens, 2048),
    catches=["memory.longest.counted"],
)


def _starved(lines: list[str], deployment: Deployment) -> list[str]:
    del deployment
    if not any("KV cache size" in text for text in lines):
        return lines
    return [
        *lines,
        "WARNING NVRM: nvGpuOpsReportFatalError: NV_ERR_NO_MEMORY",
        "WARNING Sequence group 0 is preempted by PreemptionMode.RECOMPUTE mode: not enough KV cache",
    ]


add(
    "memory.driver-starved",
    "The driver of a machine with shared memory gets none while the server starts, and it goes on.",
    {"log": _starved},
    faults=["MEM-002"],
    catches=["memory.log.not-starved", "memory.log.no-preemption"],
)


def _log_says_more(lines: list[str], deployment: Deployment) -> list[str]:
    del deployment
    return [re.sub(r"(KV cache size: )([\d,]+)( tokens)", r"\g<1>9\2\3", line) for line in lines]


add(
    "memory.log-says-more",
    "The log tells a KV cache larger than the one that was made.",
    {"log": _log_says_more},
    catches=["memory.capacity.told-alike"],
)
add(
    "memory.half-the-cache",
    "Half of the memory that should be the cache is held by somebody else.",
    {"metrics": _size(8800), "log": lambda lines, _: [line for line in lines if "KV cache size" not in line]},
    profile="spark-fp8",
    catches=["memory.capacity.as-computed", "memory.capacity.promised"],
)


def _preempts(text: str, engine: Any) -> str:
    del engine
    done = sum(
        float(count) for count in re.findall(r"^vllm:request_success_total.* (\S+)$", text, re.MULTILINE)
    )
    return re.sub(
        r"^(vllm:num_preemptions_total\S*) \S+$", lambda found: f"{found[1]} {done}", text, flags=re.MULTILINE
    )


add(
    "memory.preempts",
    "Every request is put back once and computed again, however empty the cache is.",
    {"metrics": _preempts},
    catches=["memory.preempted.none", "memory.preempted.alone"],
)


_refused = {"count": 0}


def _start(value: Any, settings: Any) -> Any:
    del settings
    _refused["count"] = 0
    return value


def _seen(body: Any, path: str) -> Any:
    prompt = body.get("prompt") if isinstance(body, dict) and path == COMPLETIONS else None
    if (
        isinstance(prompt, list)
        and len(prompt) == 2
        and isinstance(prompt[1], list)
        and len(prompt[1]) > LONG
    ):
        _refused["count"] += 1
    return body


def _kept(text: str, engine: Any) -> str:
    del engine
    return re.sub(
        r"^(vllm:kv_cache_usage_perc(?:\{[^}]*\})?) (\S+)$",
        lambda found: f"{found[1]} {float(found[2]) + 0.01 * _refused['count']}",
        text,
        flags=re.MULTILINE,
    )


add(
    "memory.refused-keeps-blocks",
    "What was taken for the first prompt of a request is kept when the second one is refused.",
    {"boot": _start, "body": _seen, "metrics": _kept},
    catches=["memory.refused.freed"],
)


@defect("memory.takes-more", on="log", profile="h100-fp8", catches=["memory.cap.respected"])
def takes_more(lines: list[str], deployment: Deployment) -> list[str]:
    """More of the GPU is taken than --gpu-memory-utilization allows."""
    if any("KV cache size" in line for line in lines):
        device = deployment.device
        take = device.take
        device.take = lambda size, total: take(size * 1.3, total)  # type: ignore[method-assign]
    return lines
