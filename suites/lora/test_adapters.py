"""Adapters are listed, answer under their own names, and do something."""

from __future__ import annotations

from typing import Any

from pytest_vllm import MUST, SHOULD, Case, Recording, Recordings, Server, check, need, only_if, unexpected

from .exchanges import adapters

SPEC = "vllm:features/lora/"
SILENT = "fault:vllm-project/vllm/issues/55193"
MIXED = "fault:vllm-project/vllm/issues/44250"
NEEDS = ("lora",)
CHATTING = ("lora", "chat")


@check("lora.answered", MUST, spec=SPEC, needs=CHATTING, exchanges=("lora.",))
def test_answered(vllm_recordings: Recordings) -> None:
    """Every request to an adapter that is listed is answered with 200."""
    wrong = unexpected(vllm_recordings.of("lora."))

    assert not wrong, "; ".join(wrong[:4])


@check("lora.listed", MUST, spec=SPEC, needs=NEEDS)
def test_listed(vllm_server: Server, lora_models: Recording) -> None:
    """Every adapter the server was started with is listed, a model as its parent."""
    rows = [row for row in lora_models.ok.get("data") or [] if isinstance(row, dict)]
    modules = vllm_server.args.get("lora-modules") or []
    words = [modules] if isinstance(modules, str) else list(modules)
    asked = {str(word).partition("=")[0] for word in words if "=" in str(word) and "{" not in str(word)}
    bases = {row.get("id") for row in rows if not row.get("parent")}
    told = {row.get("id"): row.get("parent") for row in rows if row.get("parent")}

    assert asked <= set(told), f"not listed with a parent: {', '.join(sorted(asked - set(told)))}"
    assert set(told.values()) <= bases, f"parents are {set(told.values())}, served are {bases}"


@check("lora.rooted", MUST, spec=SPEC, needs=NEEDS)
def test_rooted(lora_models: Recording) -> None:
    """A listed adapter says where its weights come from, apart from the model's."""
    rows = lora_models.ok.get("data") or []
    bases = {row.get("root") for row in rows if not row.get("parent")}
    wrong = [
        f"{row['id']}: {row.get('root')!r}"
        for row in adapters(lora_models)
        if not row.get("root") or row.get("root") in bases
    ]

    assert not wrong, "; ".join(wrong)


def numbers(recording: Recording) -> tuple[str, list[float]]:
    """The text of an answer and the log probabilities of its tokens."""
    choice: dict[str, Any] = recording.ok["choices"][0]
    message = choice.get("message") or {}
    text = (
        f"{message.get('reasoning') or message.get('reasoning_content') or ''}{message.get('content') or ''}"
    )
    told = (choice.get("logprobs") or {}).get("content") or []
    return text, [float(entry["logprob"]) for entry in told]


def distance(one: Recording, other: Recording) -> float:
    """How far two answers are apart: 1 where the texts differ, else the greatest gap of log probabilities."""
    (text, here), (words, there) = numbers(one), numbers(other)
    if text != words:
        return 1.0
    return max((abs(a - b) for a, b in zip(here, there, strict=False)), default=0.0)


@check("lora.effect", MUST, spec=SILENT, needs=CHATTING)
def test_effect(
    lora_prompt: Case, lora_base: Recording, lora_base_again: Recording, lora_adapter: Recording
) -> None:
    """An adapter differs from its base model by more than that does from itself."""
    del lora_prompt
    noise = distance(lora_base, lora_base_again)
    need(noise < 1, "the base model does not repeat its own greedy answers")
    effect = distance(lora_base, lora_adapter)

    assert effect > noise, f"the adapter says {numbers(lora_adapter)[0]!r:.60}, as the base model does"


@check("lora.model", MUST, spec=SPEC, needs=CHATTING)
def test_model(
    lora_prompt: Case, lora_models: Recording, lora_base: Recording, lora_adapter: Recording
) -> None:
    """An answer names the adapter or model that was asked for."""
    del lora_prompt
    first = adapters(lora_models)[0]
    found, wanted = (lora_base.ok.get("model"), lora_adapter.ok.get("model")), (first["parent"], first["id"])

    assert found == wanted, f"asked for {wanted}, named {found}"


@check("lora.model.streamed", MUST, spec=SPEC, needs=("lora", "chat", "stream"))
def test_model_streamed(lora_models: Recording, lora_stream: Recording) -> None:
    """Every chunk of a stream names the adapter that was asked for."""
    wanted = adapters(lora_models)[0]["id"]
    named = {str(chunk.get("model")) for chunk in lora_stream.deltas if isinstance(chunk, dict)}
    need(named, "the stream held no chunk")

    assert named == {wanted}, f"asked for {wanted}, named {sorted(named)}"


@check("lora.unknown", MUST, spec=SPEC, needs=CHATTING)
def test_unknown(lora_unknown: Recording) -> None:
    """An adapter that nobody loaded is not found; the base model does not stand in."""
    lora_unknown.answered()

    assert lora_unknown.status == 404, f"answered with {lora_unknown.status}: {lora_unknown.text[:120]}"


def cached(recording: Recording) -> int:
    """The tokens that came from the cache. Raises Undecided where they are not reported."""
    details = (recording.ok.get("usage") or {}).get("prompt_tokens_details") or {}
    need("cached_tokens" in details, "cached tokens are not reported")
    return int(details["cached_tokens"] or 0)


@check("lora.cache.apart", MUST, spec=MIXED, needs=("lora", "chat", "prefix-cache", "cached-tokens"))
def test_apart(
    lora_prefix_base: Recording, lora_prefix_base_again: Recording, lora_prefix_adapter: Recording
) -> None:
    """What the base model cached does not serve an adapter."""
    only_if(cached(lora_prefix_base_again), "nothing of this prompt is cached at all")
    # what stands ahead of every conversation was asked of both before
    found = max(cached(lora_prefix_adapter) - cached(lora_prefix_base), 0)

    assert not found, f"{found} tokens of the adapter's first prompt came from the base model's cache"


@check("lora.completion.model", SHOULD, spec=SPEC, needs=("lora", "completions"))
def test_completion(lora_models: Recording, lora_completion: Recording) -> None:
    """A completion, too, names the adapter."""
    wanted, named = adapters(lora_models)[0]["id"], lora_completion.ok.get("model")

    assert named == wanted, f"asked for {wanted}, named {named}"
