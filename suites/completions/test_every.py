"""What holds of the prompts of one batch holds for those of every completion of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm import MUST, Recordings, check, listed, observe, only_if

from ..oracle.answers import COMPLETIONS, answer_of, answers  # noqa: TID252 - suites lie together
from ..oracle.counting import texts_of  # noqa: TID252 - suites lie together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording

    from ..oracle.answers import Answer  # noqa: TID252 - suites lie together

SPEC = "vllm:serving/openai_compatible_server/#completions-api"


@check("completions.every.prompt-ids", MUST, spec=SPEC, exchanges=["oracle.owned[", "*"])
def test_prompt_ids(vllm_recordings: Recordings) -> None:
    """The ids told of a prompt are those that it was given by, for each of a batch."""
    found = [one for one in vllm_recordings.of("") if one.request.path == COMPLETIONS and answer_of(one)]
    rows = [row for one in found for row in _prompts(one)]
    only_if(rows, "no answer tells the ids of a prompt that was given by ids")
    observe("prompts", len(rows))
    wrong = [f"{key}: {told[:8]} for {given[:8]}" for key, told, given in rows if told != given]

    assert not wrong, f"{len(wrong)} of {len(rows)}: {listed(wrong)}"


@check("completions.every.echoed", MUST, spec=SPEC, exchanges=["oracle.many[", "*"])
def test_echoed(vllm_recordings: Recordings) -> None:
    """Every echoed text of a batch begins with its own prompt, however many there are."""
    rows = [(one, text, prompt) for one in answers(vllm_recordings) for text, prompt in _echoes(one)]
    only_if(rows, "no batch was echoed")
    observe("prompts of one request, at most", max(len(one.asked["prompt"]) for one, _, _ in rows))
    wrong = [f"{one.key}: {text[:40]!r} for {prompt[:40]!r}" for one, text, prompt in rows if text != prompt]

    assert not wrong, f"{len(wrong)} of {len(rows)}: {listed(wrong)}"


def _echoes(one: Answer) -> Iterator[tuple[str, str]]:
    """How each text of a batch begins, and its prompt; with ids vLLM leaves the echo away."""
    prompts, number = one.asked.get("prompt"), int(one.asked.get("n") or 1)
    bare = one.path != COMPLETIONS or not one.asked.get("echo") or one.asked.get("return_token_ids")
    whole = isinstance(prompts, list) and all(isinstance(text, str) for text in prompts)
    if bare or not whole or not prompts or one.asked.get("truncate_prompt_tokens"):
        return
    if len(one.choices) == number * len(prompts):
        for at, choice in enumerate(one.choices):
            prompt = prompts[at // number]
            yield choice.text[: len(prompt)], prompt


def _prompts(one: Recording) -> Iterator[tuple[str, list[int], list[int]]]:
    """Key, ids told and ids given, for each prompt of a completion that was given by ids, uncut."""
    asked = one.request.json
    prompts = texts_of(asked.get("prompt")) or ()
    if asked.get("truncate_prompt_tokens") or not prompts:
        return
    for choice in (choice for body in one.bodies for choice in body.get("choices") or ()):
        told, place = choice.get("prompt_token_ids"), choice["index"] // int(asked.get("n") or 1)
        given = prompts[place] if place < len(prompts) else None
        if isinstance(told, list) and told and isinstance(given, list):
            yield one.key, told, given
