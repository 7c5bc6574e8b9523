"""What was not asked for does not come: it costs time and width, and gives away what a request held back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, SHOULD, Recordings, Server, check, listed, only_if

from .answers import CHAT, COMPLETIONS, answer_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording

VLLM = "vllm:serving/openai_compatible_server/"
#: Part of an answer -> the fields that ask for it.
PARTS: dict[str, tuple[str, ...]] = {
    "prompt_token_ids": ("return_token_ids", "echo"),
    "token_ids": ("return_token_ids",),
    "prompt_logprobs": ("prompt_logprobs", "echo"),
    "logprobs": ("logprobs", "echo", "prompt_logprobs"),
    "prompt_text": ("return_prompt_text",),
}


@check("oracle.unasked", SHOULD, spec=VLLM, exchanges=["*"])
def test_unasked(vllm_recordings: Recordings) -> None:
    """No answer holds token ids or log probabilities that nobody asked for."""
    answered = [one for one in vllm_recordings.of("") if one.request.path in (CHAT, COMPLETIONS)]
    read = [one for one in answered if answer_of(one)]
    only_if(read, "no answer of chat or completions can be read")
    wrong = [f"{one.key}: {', '.join(parts)}" for one in read if (parts := sorted(set(_unasked(one))))]

    assert not wrong, listed(wrong)


def _unasked(one: Recording) -> Iterator[str]:
    asked: dict[str, Any] = one.request.json
    for name, fields in PARTS.items():
        if all(asked.get(field) is None or asked[field] is False for field in fields):
            holders = [holder for body in one.bodies for holder in (body, *(body.get("choices") or ()))]
            yield from (name for holder in holders if holder.get(name))


@check("oracle.calls.empty", MUST, spec="fault:vllm-project/vllm/issues/44104", exchanges=["*"])
def test_empty(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """No answer holds an empty list of calls: clients take it for a call."""
    only_if(vllm_server.at_least("0.24.0"), "before 0.24 every whole answer holds such a list")
    found = [one for one in vllm_recordings.of("") if one.request.path == CHAT and answer_of(one)]
    # what a parser sends amid a stream is its own matter
    read = [one for one in found if not (one.request.streams and one.request.json.get("tools"))]
    only_if(read, "no answer of chat can be read")
    wrong = [one.key for one in read if any(said.get("tool_calls") == [] for said in _said(one))]

    assert not wrong, f"{len(wrong)} answers: {listed(wrong)}"


def _said(one: Recording) -> Iterator[dict[str, Any]]:
    """The messages or deltas of an answer."""
    for body in one.bodies:
        for choice in body.get("choices") or ():
            yield choice.get("delta") or choice.get("message") or {}
