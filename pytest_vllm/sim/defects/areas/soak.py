"""Defects that show only under load for long, or once something was full, asleep or as long as it may be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import JSON, Exchange, Reply
from pytest_vllm.sim.defects.edit import set_text
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, every, only, remembering

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.boot.deployment import Deployment
    from pytest_vllm.sim.engine.sequence import Sequence

#: A cache that can be filled, and a server that can be put to sleep.
SMALL = ["--num-gpu-blocks-override", "4000"]
SLEEPY = ["--enable-sleep-mode"]
#: Requests of a load after which something breaks.
LATE = 100
#: Requests that fail, all of them within the load.
MOST = 5
KEPT = 256 * 1024
#: Tokens of a prompt that are read at once.
STEP = 2048

#: What this process's server has seen; one server per process.
_seen: dict[str, Any] = {"load": 0, "failed": 0, "woken": False, "kept": [], "device": None}


def _start(value: Any, settings: Any) -> Any:
    del settings
    _seen.update(load=0, failed=0, woken=False, kept=[])
    return value


def _count(body: Any, path: str) -> Any:
    """Requests of a load force the length of their answers."""
    if path == COMPLETIONS and isinstance(body, dict) and body.get("ignore_eos") and body.get("min_tokens"):
        _seen["load"] += 1
    return body


def _late() -> bool:
    return bool(_seen["load"] > LATE)


def _keep(ended: int, server: Any) -> int:
    del server
    _seen["kept"].append(bytearray(b"x") * KEPT)
    return ended


add(
    "soak.memory-growth",
    "Something of every request stays in main memory for ever.",
    {"boot": _start, "finished": _keep},
    faults=["MEM-014"],
    catches=["soak.main-memory.steady"],
)


def _find_device(lines: list[str], deployment: Deployment) -> list[str]:
    _seen["device"] = deployment
    return lines


def _take(ended: int, server: Any) -> int:
    del server
    deployment: Deployment = _seen["device"]
    total = deployment.machine.memory
    size = min(deployment.footprint + _seen["load"] * KEPT, total)
    deployment.device.take(size, total)
    return ended


add(
    "soak.gpu-memory-growth",
    "Every request takes a little more of the accelerator's memory.",
    {"boot": _start, "log": _find_device, "body": _count, "finished": _take},
    catches=["soak.gpu-memory.steady"],
)


def _leaks() -> Callable[..., bool]:
    freed = {"count": 0}

    def keeps(value: bool, sequence: Sequence) -> bool:
        """Once many requests were served, blocks of some stay taken."""
        del sequence
        freed["count"] += _late()
        return value and freed["count"] % 5 != 1

    return keeps


add(
    "soak.kv-leak",
    "Under load, the cache's blocks of some requests stay taken.",
    {"boot": _start, "body": _count, "freed": remembering(_leaks)},
    needs=SMALL,
    faults=["ROBUST-016"],
    catches=["soak.given-back"],
)


def _fails(value: Any, request: Any) -> Any:
    if not _late() or request.path != COMPLETIONS or _seen["failed"] >= MOST:
        return value
    _seen["failed"] += 1
    return Reply(500, b'{"error": {"message": "EngineCore", "code": 500}}', [JSON])


add(
    "soak.fails-later",
    "Now and then a request of a long load is answered with an error.",
    {"boot": _start, "body": _count, "route": every(10, _fails)},
    catches=["soak.answered"],
)


def _wrong(body: Any, exchange: Exchange) -> Any:
    if _late() and exchange.path.startswith((COMPLETIONS, CHAT)) and isinstance(body, dict):
        for choice in body.get("choices", []):
            if not (choice.get("message") or {}).get("tool_calls"):
                set_text(choice, "!!!!!!!!")
    return body


add(
    "soak.answers-decay",
    "After a long load all answers are exclamation marks.",
    {"boot": _start, "body": _count, "json": _wrong},
    faults=["PERF-022"],
    catches=["soak.canary.as-before"],
)


def _no_calls(body: Any, exchange: Exchange) -> Any:
    if _late() and exchange.path.startswith(CHAT) and isinstance(body, dict):
        for choice in body.get("choices", []):
            if choice.get("message", {}).pop("tool_calls", None):
                choice["message"]["content"] = "{}"
    return body


add(
    "soak.calls-decay",
    "After a long load calls of tools come as text.",
    {"boot": _start, "body": _count, "json": _no_calls},
    catches=["soak.tools.as-before"],
)


def _garbled(events: list[Any], exchange: Exchange) -> list[Any]:
    if _late() and exchange.path.startswith((COMPLETIONS, CHAT)):
        for event in events:
            for choice in event.data.get("choices", []) if isinstance(event.data, dict) else []:
                set_text(choice, "!")
    return events


add(
    "soak.streams-decay",
    "Under a long load every stream says exclamation marks.",
    {"boot": _start, "body": _count, "events": _garbled},
    catches=["soak.right"],
)


def _preempts(text: str, engine: Any) -> str:
    del engine
    return re.sub(
        r"^(vllm:num_preemptions_total(?:\{[^}]*\})?) \S+$",
        lambda found: f"{found[1]} {_seen['load'] // 10}",
        text,
        flags=re.MULTILINE,
    )


add(
    "soak.preempts",
    "Under load requests are put back again and again.",
    {"boot": _start, "body": _count, "metrics": _preempts},
    catches=["soak.preempted.none"],
)


def _filled() -> Callable[..., int]:
    long = {"count": 0}

    def found(blocks: int, sequence: Sequence) -> int:
        """Once the cache was full, nothing is ever found again."""
        long["count"] += len(sequence.prompt) > 1500
        return 0 if long["count"] > 20 else blocks

    return found


add(
    "soak.never-refills",
    "Once the cache was full, nothing is ever found in it again.",
    {"cache_hits": remembering(_filled)},
    needs=SMALL,
    faults=["CACHE-030"],
    catches=["soak.cache.refills"],
)


def _many(exchange: Exchange) -> bool:
    prompt = exchange.body.get("prompt") if isinstance(exchange.body, dict) else None
    return isinstance(prompt, list) and len(prompt) > 4 and isinstance(prompt[0], list)


def _full() -> Callable[..., Reply]:
    asked = {"count": 0}

    def refused(reply: Reply, exchange: Exchange) -> Reply:
        """The fourth quarter of a full cache is refused."""
        asked["count"] += _many(exchange)
        if asked["count"] < 4 or not _many(exchange):
            return reply
        return Reply(500, b'{"error": {"message": "No free blocks", "code": 500}}', [JSON])

    return refused


add(
    "soak.full-cache-refuses",
    "A full cache lets go of nothing: what comes next is answered with an error.",
    {"reply": remembering(_full)},
    needs=SMALL,
    catches=["soak.cache.evicts"],
)


@defect("soak.longest-ends", on="reply", paths=(COMPLETIONS,), catches=["soak.longest.answered"])
def longest_ends(reply: Reply, exchange: Exchange) -> Reply:
    """A prompt as long as the context ends in an error."""
    prompt = exchange.body.get("prompt") if isinstance(exchange.body, dict) else None
    if reply.status == 200 and isinstance(prompt, list) and len(prompt) > 4000:
        return Reply(500, b'{"error": {"message": "out of memory", "code": 500}}', [JSON])
    return reply


def _woken(value: Any, request: Any) -> Any:
    _seen["woken"] = _seen["woken"] or request.path.startswith("/wake_up")
    return value


def _forgot(body: Any, exchange: Exchange) -> Any:
    if _seen["woken"] and exchange.path == COMPLETIONS and isinstance(body, dict):
        for choice in body.get("choices", []):
            set_text(choice, "!!!!!!")
    return body


add(
    "soak.wakes-empty",
    "A server that slept answers noise: its weights did not come back.",
    {"boot": _start, "route": _woken, "json": _forgot},
    needs=SLEEPY,
    environ=["VLLM_SERVER_DEV_MODE=1"],
    catches=["soak.sleep.wakes"],
)


def _wakes_once() -> Callable[..., Reply]:
    woken: list[str] = []

    def refused(reply: Reply, exchange: Exchange) -> Reply:
        """The first time it wakes up; then what the first time left behind is in the way."""
        del exchange
        woken.append("")
        if len(woken) < 2:
            return reply
        deployment: Deployment = _seen["device"]
        deployment.device.take(deployment.footprint * 1.1, deployment.machine.memory)
        return Reply(500, b'{"error": {"message": "CUDA out of memory", "code": 500}}', [JSON])

    return refused


add(
    "soak.wakes-once",
    "The second time a server is woken memory runs out, and what it had taken by then is not given back.",
    {"boot": _start, "log": _find_device, "reply": only(("/wake_up",), remembering(_wakes_once))},
    needs=SLEEPY,
    environ=["VLLM_SERVER_DEV_MODE=1"],
    faults=["MEM-011"],
    catches=["soak.sleep.wakes"],
)


def _scored_in_part(body: Any, exchange: Exchange) -> Any:
    if exchange.path == COMPLETIONS and isinstance(body, dict):
        for choice in body.get("choices", []):
            if len(choice.get("prompt_logprobs") or ()) > STEP:
                choice["prompt_logprobs"] = choice["prompt_logprobs"][:STEP]
    return body


add(
    "soak.scored-in-part",
    "Of a prompt that is read in several steps the first has log probabilities.",
    {"json": _scored_in_part},
    faults=["vllm-project/vllm#14239"],
    catches=["soak.prompt.scored"],
)
