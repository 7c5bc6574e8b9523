"""Faults of public reports that show in large batches, at the brim of the context, and behind a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import asks, failure, in_body, refused
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, live, only, remembering
from pytest_vllm.sim.vision import pictures, url_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.reply import Exchange, Reply
    from pytest_vllm.sim.generation import Output

Json = dict[str, Any]
#: Texts from which on a batch counts as large, and tokens of the context of the simulator's profiles.
LARGE, CONTEXT = 16, 4096


def _large(*fields: str) -> Callable[[Json], bool]:
    """Requests with many texts."""
    return lambda asked: any(
        isinstance(asked.get(field), list) and len(asked[field]) >= LARGE for field in fields
    )


def _drifted(body: Json, asked: Json) -> None:
    del asked
    for row in body.get("data") or ():
        vector = row.get("embedding")
        if isinstance(vector, list):
            changed = [value * (1.4 if place % 2 else 0.6) for place, value in enumerate(vector)]
            size = sum(value * value for value in changed) ** 0.5
            row["embedding"] = [value / size for value in changed]


in_body(
    "embeddings.large-batch-drifts",
    "In a large batch the vectors are less exact.",
    ("/v1/embeddings",),
    _drifted,
    _large("input"),
    faults=["vllm-project/vllm#16815"],
    profile="sim-embed",
    catches=["embeddings.same-in-any-order"],
)


def _halved(body: Json, asked: Json) -> None:
    del asked
    for row in body.get("data") or ():
        row["probs"] = [value / 2 for value in row["probs"]]


in_body(
    "classify.large-batch-halves",
    "In a large batch all numbers are smaller.",
    ("/classify",),
    _halved,
    _large("input"),
    area="classify",
    profile="sim-classify",
    catches=["classify.any-order"],
)


def _sunk(body: Json, asked: Json) -> None:
    del asked
    for row in body.get("results") or ():
        row["relevance_score"] /= 2


in_body(
    "ranking.long-list-sinks",
    "In a long list all documents are less relevant.",
    ("/rerank", "/v1/rerank", "/v2/rerank"),
    _sunk,
    _large("documents"),
    profile="sim-rerank",
    catches=["ranking.any-order"],
)


def _brimming(asked: Json) -> bool:
    given = asked.get("input")
    return isinstance(given, list) and len(given) == CONTEXT


refused(
    "embeddings.brim-breaks",
    "A text that fills the context to its last token ends in a server error.",
    ("/v1/embeddings",),
    500,
    failure("EngineCore encountered an issue"),
    _brimming,
    faults=["vllm-project/vllm#29496"],
    profile="sim-embed",
    catches=["embeddings.answered"],
)


def _partly() -> Callable[..., Any]:
    seen: set[str] = set()

    def refusing(reply: Reply, exchange: Exchange) -> Reply:
        messages = exchange.body.get("messages") if isinstance(exchange.body, dict) else None
        shown = [str(url_of(part)) for part in pictures(messages)]
        known = [url in seen for url in shown]
        seen.update(shown)
        if reply.status == 200 and any(known) and not all(known):
            reply.status, reply.body = 400, failure("Failed to apply SimProcessor on data", 400)
        return reply

    return refusing


add(
    "vision.partly-known-refused",
    "A picture that is known beside one that is not is refused.",
    {"reply": only((CHAT,), remembering(_partly)), "ready": live},
    faults=["vllm-project/vllm#44538"],
    profile="spark-qwen35",
    catches=["vision.several.answered"],
)


def _muting() -> tuple[Callable[..., Any], Callable[..., Any]]:
    prompted: list[bool] = []

    def muted(output: Output, body: Json) -> Output:
        if body.get("prompt") and "messages" not in body:
            prompted.append(True)
            output.pieces[:] = [""] * len(output.pieces)
        return output

    def unbilled(body: Any, exchange: Exchange) -> Any:
        del exchange
        if prompted and isinstance(body, dict) and body.get("usage"):
            prompted.clear()
            body["usage"]["seconds"] = 0
        return body

    return muted, unbilled


_MUTED, _UNBILLED = _muting()
add(
    "transcription.prompted-dropped",
    "With words for context the recording is dropped: nothing is written down, and nothing billed.",
    {"output": _MUTED, "json": only(("/v1/audio",), _UNBILLED)},
    faults=["vllm-project/vllm#53206", "vllm-project/vllm#18809"],
    profile="sim-transcribe",
    catches=["transcription.prompted", "transcription.billed"],
)
refused(
    "completions.beams-lack-attribute",
    "A search with beams is refused with an error of the program.",
    (COMPLETIONS,),
    400,
    failure("'BeamSearchSequence' object has no attribute 'lora_request'", 400),
    asks("use_beam_search"),
    area="oracle",
    catches=["oracle.refused.words"],
)
