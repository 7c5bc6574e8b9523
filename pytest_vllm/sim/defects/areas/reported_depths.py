"""Faults of public reports that show behind long texts, the second time, and among several engines."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import asked
from pytest_vllm.sim.defects.choose import failure, in_body, refused
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, live, only, remembering

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.reply import Exchange, Reply
    from pytest_vllm.sim.api.server import Server

Json = dict[str, Any]
#: Characters from which on a text is read in several steps.
DEEP = 8000
DATA = re.compile(r"data:[^']*")


def _deep_among_others(given: Json) -> bool:
    texts = given.get("input")
    rows = texts if isinstance(texts, list) else []
    return len(rows) > 1 and any(isinstance(text, str) and len(text) > DEEP for text in rows)


refused(
    "classify.deep-breaks-batch",
    "A text that is read in several steps breaks the batch it is in.",
    ("/classify",),
    500,
    failure("KeyError: None"),
    _deep_among_others,
    profile="sim-classify",
    faults=["vllm-project/vllm#23223"],
    catches=["classify.answered"],
)


def _shifted(body: Json, given: Json) -> None:
    del given
    for row in body["data"]:
        row["probs"] = [*row["probs"][1:], row["probs"][0]]


in_body(
    "classify.deep-shifts-batch",
    "A text that is read in several steps changes the classes of those beside it.",
    ("/classify",),
    _shifted,
    _deep_among_others,
    profile="sim-classify",
    catches=["classify.beside-deep"],
)


def _behind_much(given: Json) -> bool:
    said = str(given.get("messages"))
    return "image_url" in said and len(DATA.sub("", said)) > DEEP


refused(
    "vision.behind-much-breaks",
    "A picture behind a text that is read in several steps ends in a server error.",
    (CHAT,),
    500,
    failure("Attempted to assign 1705 multimodal tokens to 0 placeholders"),
    _behind_much,
    profile="spark-qwen35",
    faults=["vllm-project/vllm#18414"],
    catches=["vision.behind.answered"],
)


def _echoed() -> Callable[..., Any]:
    seen: set[str] = set()

    def refusing(reply: Reply, exchange: Exchange) -> Reply:
        if reply.status == 200 and asked(exchange, "continue_final_message") and asked(exchange, "echo"):
            begun = json.dumps(asked(exchange, "messages"))
            if begun in seen:
                reply.status, reply.body = 500, failure("EngineCore encountered an issue")
            seen.add(begun)
        return reply

    return refusing


add(
    "fields.echo-again-breaks",
    "An echo of what goes on ends in a server error the second time.",
    {"reply": only((CHAT,), remembering(_echoed)), "ready": live},
    faults=["vllm-project/vllm#19285"],
    catches=["fields.echo-again"],
)


@defect(
    "metrics.one-engine-works",
    on="finished",
    needs=["--data-parallel-size", "2"],
    faults=["vllm-project/vllm#48808", "vllm-project/vllm#36748"],
    catches=["metrics.engines.shared"],
)
def one_engine_works(number: int, server: Server) -> int:
    """Of two engines one gets all that comes."""
    server.least_busy = lambda: server.engines[0]  # type: ignore[method-assign]
    return number
