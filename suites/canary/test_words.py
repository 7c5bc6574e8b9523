"""What answers read like. Weak models write weak answers; broken engines write none."""

from __future__ import annotations

import re

from pytest_vllm import (
    CAPABILITY,
    MUST,
    SHOULD,
    Recording,
    Recordings,
    Server,
    check,
    need,
    only_if,
    server_errors,
    text_of,
)

from .exchanges import QUESTIONS
from .wording import run_fault, salad_fault

SPEC = "fault:vllm-project/vllm/issues/27364"
ANSWERS = {row["id"]: row["answer"] for row in QUESTIONS}
NEEDS = ["chat"]


@check("canary.words.runs", MUST, spec=SPEC, family=CAPABILITY, needs=NEEDS)
def test_runs(canary_story: Recording, vllm_server: Server) -> None:
    """A paragraph is not one character or one word over and over."""
    text = _text(canary_story, vllm_server)
    fault = run_fault(text)

    assert not fault, f"{fault}: {text[:160]!r}"


@check(
    "canary.words.language",
    MUST,
    spec="fault:OpenHands/OpenHands/issues/11308",
    family=CAPABILITY,
    needs=NEEDS,
)
def test_language(canary_story: Recording, vllm_server: Server) -> None:
    """A paragraph of plain English has common words in it."""
    text = _text(canary_story, vllm_server)
    fault = salad_fault(text)

    assert not fault, f"{fault}: {text[:160]!r}"


@check("canary.questions", SHOULD, spec=SPEC, family=CAPABILITY, needs=NEEDS, exchanges=["canary.question"])
def test_questions(vllm_recordings: Recordings) -> None:
    """At least half of six questions that every child can answer are answered right."""
    answers = {one.key: one for one in vllm_recordings.of("canary.question[") if one.status == 200}
    need(answers, "no question was answered")
    texts = {key: text_of(one.json["choices"][0]) for key, one in answers.items()}
    right = [key for key, text in texts.items() if re.search(ANSWERS[_name(key)], text, re.IGNORECASE)]

    assert 2 * len(right) >= len(texts), f"{len(right)} of {len(texts)} are right: {texts}"


@check("canary.served", MUST, spec="openai:chat/object", needs=["completions"], exchanges=["canary."])
def test_served(vllm_recordings: Recordings) -> None:
    """No question with a known answer ends in a server error."""
    plain = [one for one in vllm_recordings.of("canary.") if "logprobs" not in (one.request.json or {})]
    wrong = server_errors(plain)  # what log probabilities break is a matter of theirs

    assert not wrong, f"{len(wrong)} requests: {'; '.join(wrong[:3])}"


def _text(answer: Recording, server: Server) -> str:
    only_if(server.args.get("load-format") != "dummy", "the weights are dummies")
    text = text_of(answer.ok["choices"][0])
    need(text.strip(), "the answer is empty")
    return text


def _name(key: str) -> str:
    return key.partition("[")[2].rstrip("]")
