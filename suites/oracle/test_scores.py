"""A token is as likely in one answer as in any other that has said the same up to it."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recordings, Server, check, listed, observe, only_if

from .answers import CHAT, COMPLETIONS, RESPONSES, answers
from .apis import BY_ID, TORN
from .drift import apart
from .likeness import as_chat, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .answers import Answer
    from .apis import Choice, Token

SPEC = "fault:vllm-project/vllm/issues/11778"
#: Fields that shape the prompt, on the routes whose answers are compared: two answers to the same are scored
#: alike, however they were drawn.
SHAPES = (
    "model", "messages", "prompt", "tools", "tool_choice", "chat_template", "chat_template_kwargs",
    "add_generation_prompt", "continue_final_message", "add_special_tokens", "documents", "response_format",
    "reasoning_effort", "truncate_prompt_tokens", "suffix", "mm_processor_kwargs", "cache_salt", "echo",
    "prompt_embeds", "structured_outputs", "thinking_token_budget", "include_reasoning", "functions",
    "allowed_token_ids", "logit_bias", "bad_words",
)  # fmt: skip


@check("oracle.same.scores", MUST, spec=SPEC, needs=["logprobs"], exchanges=["oracle.response-listed", "*"])
def test_scores(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """A token is as likely in each answer to the same prompt, rounding aside."""
    only_if(vllm_server.at_least("0.10.2"), "before 0.10.2 log probabilities may be those of what was drawn")
    mode = str(vllm_server.args.get("logprobs-mode") or "raw")
    only_if(mode.startswith("raw"), f"--logprobs-mode {mode} gives those of what was drawn")
    pairs: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for group in _groups(answers(vllm_recordings), vllm_server.model):
        for one, other in _against_the_first(group):
            pairs[one.key, other.key] += _shared(one.choices[0], other.choices[0])
    compared = {keys: scores for keys, scores in pairs.items() if scores}
    only_if(compared, "no prompt was answered twice with log probabilities")
    observe("pairs of answers whose scores were compared", len(compared))
    exact = vllm_server.simulated
    wrong = [f"{a} {fault}, {b}" for (a, b), rows in compared.items() if (fault := apart(rows, exact=exact))]
    every = apart([row for rows in compared.values() for row in rows], exact=exact)

    assert len(wrong) * 4 <= len(compared) * (not exact), f"{len(wrong)} of {len(compared)}: {listed(wrong)}"
    assert not every, f"in all answers {every}"


def _groups(said: Sequence[Answer], model: str) -> Iterator[list[Answer]]:
    """Answers with log probabilities to the same prompt; an adapter may be another one under its name."""
    found: defaultdict[str, list[Answer]] = defaultdict(list)
    for one in said:
        if _scored(one) and one.asked.get("model") == model:
            path, asked = as_chat(one.path, one.asked)
            kept = {name: value for name, value in plain(asked).items() if name in SHAPES}
            found[json.dumps([path, kept], sort_keys=True)].append(one)
    yield from (group for group in found.values() if len(group) > 1)


def _scored(one: Answer) -> bool:
    return one.path in (CHAT, COMPLETIONS, RESPONSES) and bool(one.choices and one.choices[0].tokens)


def _against_the_first(group: Sequence[Answer]) -> Iterator[tuple[Answer, Answer]]:
    first = max(group, key=lambda one: len(one.choices[0].tokens[0][1]))
    yield from ((one, first) for one in group if one is not first)


def _shared(one: Choice, other: Choice) -> list[tuple[float, float]]:
    """Scores of the same candidates, as far as both answers say the same."""
    rows: list[tuple[float, float]] = []
    for mine, theirs in zip(one.tokens, other.tokens, strict=False):
        rows += _both(mine, theirs)
        if mine[0] != theirs[0]:
            break
    return rows


def _both(mine: Token, theirs: Token) -> Iterator[tuple[float, float]]:
    """Scores of candidates whose text is that of one token alone."""
    names = mine[1].keys() & theirs[1].keys()
    yield from (
        (_number(mine[1][name]), _number(theirs[1][name]))
        for name in names
        if name and TORN not in name and not name.startswith(BY_ID)
    )


def _number(value: Any) -> float:
    return float(value or 0.0)
