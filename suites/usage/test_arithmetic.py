"""The numbers in `usage` add up, over everything that was asked."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, SHOULD, Recording, Recordings, check, need

if TYPE_CHECKING:
    from collections.abc import Iterator

SPEC = "openai:chat/object#usage"
CHAT, COMPLETIONS = "chat.", "completions."
NEEDS, ALL = ["chat", "completions"], [CHAT, COMPLETIONS]


@check("usage.total", MUST, spec=SPEC, needs=NEEDS, exchanges=ALL)
def test_total(vllm_recordings: Recordings) -> None:
    """`total_tokens` is prompt and completion together."""
    wrong = {
        key: usage
        for key, usage, _ in _usages(vllm_recordings)
        if usage["total_tokens"] != usage["prompt_tokens"] + usage["completion_tokens"]
    }

    assert not wrong, f"do not add up: {wrong}"


@check("usage.within-limit", MUST, spec=SPEC, needs=NEEDS, exchanges=ALL)
def test_within_limit(vllm_recordings: Recordings) -> None:
    """No choice is billed more tokens than its limit."""
    wrong = {
        key: f"{usage['completion_tokens']} of {_limit(asked)}"
        for key, usage, asked in _usages(vllm_recordings)
        if usage["completion_tokens"] > _limit(asked)
    }

    assert not wrong, f"billed above max_tokens: {wrong}"


@check("usage.prompt-counted", MUST, spec=SPEC, needs=NEEDS, exchanges=ALL)
def test_prompt_counted(vllm_recordings: Recordings) -> None:
    """Every prompt has tokens."""
    wrong = [key for key, usage, _ in _usages(vllm_recordings) if usage["prompt_tokens"] < 1]

    assert not wrong, f"no prompt tokens: {wrong}"


@check("usage.stable", MUST, spec=SPEC, needs=["chat"])
def test_stable(chat_plain: Recording, chat_repeat: Recording) -> None:
    """The same prompt is billed the same, cached or not."""
    first, again = (one.ok["usage"]["prompt_tokens"] for one in (chat_plain, chat_repeat))

    assert first == again, f"{first} prompt tokens, then {again}"


@check("usage.choices", MUST, spec=SPEC, needs=["chat"])
def test_choices(chat_n: Recording) -> None:
    """`completion_tokens` is the sum over all choices."""
    asked, used = chat_n.request.json, chat_n.ok["usage"]["completion_tokens"]
    wanted = asked["n"] * asked["max_tokens"]

    assert used == wanted, f"{used} tokens for {asked['n']} choices of {asked['max_tokens']}"


@check("usage.batch", MUST, spec="openai:completions/object#usage", needs=["completions"])
def test_batch(completions_batch: Recording) -> None:
    """`completion_tokens` is the sum over all prompts and choices of a batch."""
    asked, used = completions_batch.request.json, completions_batch.ok["usage"]["completion_tokens"]
    wanted = len(asked["prompt"]) * asked["n"] * asked["max_tokens"]

    assert used == wanted, f"{used} tokens for 2 prompts with 2 choices of {asked['max_tokens']}"


@check("usage.batch-prompts", MUST, spec="openai:completions/object#usage", needs=["completions", "tokenize"])
def test_batch_prompts(completions_batch_ids: Recording) -> None:
    """`prompt_tokens` is the sum over all prompts of a batch."""
    used = completions_batch_ids.ok["usage"]["prompt_tokens"]
    wanted = sum(map(len, completions_batch_ids.request.json["prompt"]))

    assert used == wanted, f"{used} prompt tokens for prompts of {wanted}"


@check("usage.echo-only", SHOULD, spec="openai:completions/create#echo", needs=["completions"])
def test_echo_only(completions_echo_only: Recording) -> None:
    """An echo with nothing generated is billed no completion tokens."""
    need(completions_echo_only.status == 200, "the server refuses an echo with nothing generated")
    used = completions_echo_only.ok["usage"]["completion_tokens"]

    assert used == 0, f"{used} completion tokens, max_tokens is 0"


@check("usage.cached-part", SHOULD, spec=SPEC, needs=[*NEEDS, "cached-tokens"], exchanges=ALL)
def test_cached_part(vllm_recordings: Recordings) -> None:
    """Cached tokens are part of the prompt."""
    parts = _parts(vllm_recordings, "prompt_tokens", "cached_tokens")
    wrong = {key: pair for key, pair in parts.items() if not 0 <= pair[0] <= pair[1]}

    assert not wrong, f"(cached tokens, prompt tokens): {wrong}"


@check("usage.reasoning-part", SHOULD, spec=SPEC, needs=[*NEEDS, "reasoning"], exchanges=ALL)
def test_reasoning_part(vllm_recordings: Recordings) -> None:
    """Reasoning tokens are part of the answer."""
    parts = _parts(vllm_recordings, "completion_tokens", "reasoning_tokens")
    wrong = {key: pair for key, pair in parts.items() if not 0 <= pair[0] <= pair[1]}

    assert not wrong, f"(reasoning tokens, completion tokens): {wrong}"


@check("usage.cached-tokens", MUST, spec=SPEC, needs=["chat", "cached-tokens"])
def test_cached_tokens(chat_repeat: Recording) -> None:
    """With prompt token details, a repeated prompt reports how much was cached."""
    details = chat_repeat.ok["usage"].get("prompt_tokens_details")
    need(chat_repeat.ok["usage"]["prompt_tokens"], "the prompt has no tokens")

    assert details is None or type(details.get("cached_tokens")) is int, f"prompt_tokens_details: {details}"


def _usages(recordings: Recordings) -> Iterator[tuple[str, Any, Any]]:
    """Key, usage and request of every answer."""
    for one in [*recordings.of(CHAT), *recordings.of(COMPLETIONS)]:
        if one.status == 200:
            yield one.key, one.json["usage"], one.request.json


def _limit(asked: Any) -> float:
    """Most tokens that a request may be billed; an echo alone may cost the one token it ran for."""
    prompts = asked.get("prompt")
    many = len(prompts) if isinstance(prompts, list) and not isinstance(prompts[0], int) else 1
    limit = asked.get("max_completion_tokens") or asked.get("max_tokens", 16 if prompts else None)
    if limit is None:
        return inf
    return float(max(limit, 1) * (asked.get("n") or 1) * many)


def _parts(recordings: Recordings, whole: str, part: str) -> dict[str, tuple[int, int]]:
    """Part and whole of every answer that reports the part."""
    told = {key: (usage, usage.get(f"{whole}_details") or {}) for key, usage, _ in _usages(recordings)}
    found = {
        key: (details[part], usage[whole])
        for key, (usage, details) in told.items()
        if details.get(part) is not None
    }
    need(found, f"no answer tells its {part}")
    return found
