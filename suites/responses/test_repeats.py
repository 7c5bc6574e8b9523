"""What a response object repeats of its request, whole and in the events of a stream, is what was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import SHOULD, Recordings, check, listed, only_if

from .items import objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording

PATH = "/v1/responses"
#: Fields of a request that a response object has as well.
REPEATED = (
    "background",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "previous_response_id",
    "reasoning",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
)


@check("responses.echo.whole", SHOULD, spec="openai:responses/object", needs=["responses"], exchanges=["*"])
def test_repeats(vllm_recordings: Recordings) -> None:
    """Whatever a response repeats of its request is what was sent."""
    asked = [one for one in vllm_recordings.of("") if one.request.path == PATH and one.status == 200]
    only_if(asked, "nothing was asked of this interface, or all was refused")
    wrong = [f"{one.key}: {fault}" for one in asked if (fault := next(_faults(one), ""))]

    assert not wrong, listed(wrong)


def _faults(one: Recording) -> Iterator[str]:
    sent = dict(one.request.json)
    if sent.get("temperature") == 0:
        sent.pop("top_p", None)  # a greedy answer draws nothing, and vLLM says so
    for body in objects(one):
        for name in REPEATED:
            if (
                body.get(name) is not None
                and sent.get(name) is not None
                and not _holds(body[name], sent[name])
            ):
                yield f"{name} is {body[name]!r:.100}, sent was {sent[name]!r:.100}"


def _holds(repeated: Any, sent: Any) -> bool:
    """Whether everything that was sent is repeated; what a server adds or leaves null says nothing else."""
    if isinstance(sent, dict) and isinstance(repeated, dict):
        there = [name for name in sent if repeated.get(name) is not None]
        return all(_holds(repeated[name], sent[name]) for name in there)
    if isinstance(sent, list) and isinstance(repeated, list):
        return len(sent) == len(repeated) and all(map(_holds, repeated, sent))
    return bool(repeated == sent)
