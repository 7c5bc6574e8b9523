"""Marks of reasoning are kept out of every answer of the run, over every route, whole or streamed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_vllm import MUST, Recordings, Server, check, listed, observe, only_if

from ..oracle.answers import COMPLETIONS, answers  # noqa: TID252 - suites lie together
from .thoughts import TAGS, appends

if TYPE_CHECKING:
    from ..oracle.answers import Answer  # noqa: TID252 - suites lie together

SPEC = "vllm:features/reasoning_outputs/"
#: Tags that a model may write as words of its own.
WORDS = ("<response>", "</response>", "<answer>", "</answer>", "<thought>", "</thought>")
MARKS = tuple(tag for tag in TAGS if tag not in WORDS)
#: Fields beside which a mark is no fault of the server, and exchanges that are odd on purpose.
BESIDE = ("thinking_token_budget", "continue_final_message", "logit_bias", "allowed_token_ids", "ignore_eos")
EDGES = ("scripted.", "tools.marked", "tools.odd")


@check("reasoning.every.tags", MUST, spec=SPEC, needs=["reasoning"], exchanges=["*"])
def test_tags(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """No mark of reasoning stands in an answer or a call, on any route that reads it."""
    only_if(not appends(vllm_server), "this parser leaves reasoning in the text")
    read = [one for one in answers(vllm_recordings) if one.path != COMPLETIONS and _plain(one)]
    only_if(read, "no answer of this run is read by a reasoning parser")
    observe("answers read", len(read))
    wrong = [f"{one.key}: {found} in {where[-80:]!r}" for one in read for found, where in _marked(one)]

    assert not wrong, listed(wrong)


def _plain(one: Answer) -> bool:
    kept = one.asked.get("skip_special_tokens") is False
    return not (kept or one.key.startswith(EDGES) or any(map(one.asked.get, BESIDE)))


def _marked(one: Answer) -> list[tuple[str, str]]:
    """Marks of an answer and where they stand, but for those that its request holds."""
    given = json.dumps(one.asked, ensure_ascii=False)
    marks = [mark for mark in MARKS if mark not in given]
    texts = [text for choice in one.choices for text in (choice.content, *(said for _, said in choice.calls))]
    return [(mark, text) for text in texts for mark in marks if mark in text]
