"""The context's length against the model and the version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.preflight.rule import ERROR, NOTE, WARNING, Finding, put, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment
    from pytest_vllm.profile.modelfile import ModelFile

_FLAG = "max-model-len"
_BLOCKS, _SIZE = "num-gpu-blocks-override", "block-size"
_LONGER = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"

#: Architectures whose attention knows no positions, so that none is beyond what it was made for.
_UNPLACED = ("NemotronHForCausalLM", "JambaForCausalLM", "GraniteMoeHybridForCausalLM")


def _beyond(model: ModelFile) -> str:
    """What becomes of answers beyond the positions that the model's configuration names."""
    unplaced = model.architecture in _UNPLACED
    return (
        "its attention has no positions: try how far it reads" if unplaced else "answers beyond are garbage"
    )


def _scaled(of: Deployment) -> bool:
    overrides = of.given("hf-overrides")
    return of.has("rope-scaling") or (isinstance(overrides, dict) and bool(overrides))


@rule("context.beyond-model", ERROR, source="vllm/config/model.py _get_and_verify_max_len")
def beyond_model(of: Deployment) -> Iterator[Finding]:
    """More context than the model was made for, without RoPE scaling."""
    length, model = of.max_model_len, of.model
    if not of.has(_FLAG) or length is None or model is None or length <= model.context or _scaled(of):
        return
    allowed = of.env_on(_LONGER)
    yield Finding(
        of.key(_FLAG),
        f"max-model-len is {length:,}, {model.title} has {model.context:,} positions",
        f"{_LONGER} lets it start; {_beyond(model)}" if allowed else "vLLM refuses to start",
        put(of.key(_FLAG), model.context),
        severity=WARNING if allowed or not model.certain else ERROR,
    )


@rule("context.unset", NOTE, source="guide: the 99th percentile, not the model's maximum")
def unset(of: Deployment) -> Iterator[Finding]:
    """The context is the model's whole."""
    model = of.model
    if of.has(_FLAG) or model is None or of.simulated or of.has("config") or model.context <= 32768:
        return
    yield Finding(
        f"server.args.{_FLAG}",
        f"max-model-len is not set: {model.title} has {model.context:,} positions",
        "one sequence may fill that much of the KV cache",
        advice="max-model-len = the longest prompt and answer that you mean to serve",
    )


@rule("context.automatic", ERROR, versions="<0.14", source="vllm/engine/arg_utils.py")
def automatic(of: Deployment) -> Iterator[Finding]:
    """The context is to be fitted to memory by a version that cannot."""
    given = of.given(_FLAG)
    if given in (-1, "auto", "-1"):
        yield Finding(
            of.key(_FLAG),
            f"max-model-len is {given}",
            f"vLLM fits the length to the memory from 0.14 on, not {of.shown_version}",
            advice="write a number",
        )


@rule("context.draft-shorter", WARNING, source="the draft's max_position_embeddings")
def draft_shorter(of: Deployment) -> Iterator[Finding]:
    """The draft model has a shorter context than the target."""
    length = of.max_model_len
    if of.draft is not None and length is not None and of.draft.context < length:
        yield Finding(
            of.key("speculative-config"),
            f"{of.draft.title} has {of.draft.context:,} positions, max-model-len is {length:,}",
            "nothing is drafted beyond them",
        )


@rule(
    "context.beyond-blocks",
    WARNING,
    versions=">=0.8.0",
    source="https://github.com/vllm-project/vllm/issues/35541",
)
def beyond_blocks(of: Deployment) -> Iterator[Finding]:
    """More context than the cache blocks hold that were asked for by number."""
    length, blocks = of.max_model_len, of.whole(_BLOCKS) if of.has(_BLOCKS) else 0
    size = of.whole(_SIZE) if of.has(_SIZE) else 16
    hybrid = bool(of.model and of.model.hybrid)
    if length is None or not blocks or not size or hybrid or (blocks - 1) * size >= length:
        return
    yield Finding(
        of.key(_BLOCKS),
        # one block is never given out
        f"{_BLOCKS} is {blocks:,}, which hold {(blocks - 1) * size:,} tokens; max-model-len {length:,}",
        "a longer request waits for ever, and whatever comes behind it",
        put(of.key(_BLOCKS), -(-length // size) + 1),
    )
