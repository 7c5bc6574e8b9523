"""No answer comes without what it cost."""

from __future__ import annotations

from pytest_vllm import MUST, Recordings, check, listed, observe, only_if

from ..oracle.answers import CHAT, COMPLETIONS, Answer, answers  # noqa: TID252 - suites lie together

#: How responses end that have been computed.
COMPUTED = ("completed", "max_output_tokens", "incomplete")


@check("usage.every.told", MUST, spec="openai:chat/object#usage", exchanges=["*"])
def test_told(vllm_recordings: Recordings) -> None:
    """Every answer, and every stream that has to, tells what it cost."""
    due = [one for one in answers(vllm_recordings) if _due(one)]
    only_if(due, "no answer has to tell what it cost")
    observe("answers that have to tell", len(due))
    wrong = [f"{one.key}: no usage" for one in due if one.usage is None]

    assert not wrong, listed(wrong)


def _due(one: Answer) -> bool:
    """Whether an answer has to have a usage: streams of chat and completions where they are asked for it."""
    if one.path in (CHAT, COMPLETIONS):
        return not one.streams or bool((one.asked.get("stream_options") or {}).get("include_usage"))
    return any(end in COMPUTED for choice in one.choices for end in choice.finish)
