"""Speculative decoding: the method, its numbers, what it does not go with."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from pytest_vllm.preflight.facts import names
from pytest_vllm.preflight.rule import ERROR, NOTE, WARNING, Finding, Fix, put, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment

_KEY = "server.args.speculative-config"
_TOKENS = "num_speculative_tokens"
#: Methods that need no second checkpoint, beside those whose layers the target brings along (`*mtp`).
_ALONE = {"ngram", "ngram_gpu", "suffix", "custom_class", "extract_hidden_states"}


def _method(of: Deployment) -> str:
    return str(of.speculation.get("method") or "")


def _integer(of: Deployment, name: str) -> int | None:
    value = of.speculation.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@rule("speculation.method", ERROR, versions=">=0.8.5", source="SpeculativeConfig.method of each release")
def method(of: Deployment) -> Iterator[Finding]:
    """A method that this version does not have."""
    name, known = _method(of), names("speculation", of.release)
    if name and name not in known and ("." not in name or not of.at_least("0.22.0")):
        near = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
        yield Finding(
            _KEY,
            f"method is {name!r}",
            f"{of.shown_version} has no such method",
            advice=f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(known)}",
            severity=ERROR if of.exact else WARNING,
        )


@rule("speculation.field", ERROR, versions=">=0.8.5", source="fields of SpeculativeConfig in each release")
def field(of: Deployment) -> Iterator[Finding]:
    """A key of speculative-config that this version does not have."""
    table, known = of.given("speculative-config"), names("field", of.release)
    for name in table if isinstance(table, dict) else ():
        spelled = name.replace("-", "_").partition(".")[0]
        if spelled not in known:
            near = difflib.get_close_matches(spelled, known, n=1, cutoff=0.7)
            yield Finding(
                f"{_KEY}.{name}",
                f"speculative-config has {name!r}",
                f"{of.shown_version} knows no such key and refuses",
                Fix(f"{_KEY}.{name}", "rename", to=near[0]) if near else Fix(f"{_KEY}.{name}", "remove"),
            )


@rule("speculation.tokens", ERROR, source="SpeculativeConfig.__post_init__")
def tokens(of: Deployment) -> Iterator[Finding]:
    """How many tokens are drafted is missing or not positive."""
    given, name = of.speculation.get(_TOKENS), _method(of)
    if of.speculation and given is None and name in ("ngram", "ngram_gpu", "eagle", "eagle3", "draft_model"):
        yield Finding(
            _KEY,
            f"{name} without {_TOKENS}",
            "vLLM refuses unless the draft's config gives it",
            put(f"{_KEY}.{_TOKENS}", 3 if name.startswith("eagle") else 5),
            severity=ERROR if name.startswith("ngram") else WARNING,
        )
    if isinstance(given, int) and given <= 0:
        yield Finding(
            f"{_KEY}.{_TOKENS}", f"{_TOKENS} is {given}", "vLLM refuses", put(f"{_KEY}.{_TOKENS}", 5)
        )


@rule("speculation.lookup", ERROR, versions=">=0.8.5", source="SpeculativeConfig.__post_init__")
def lookup(of: Deployment) -> Iterator[Finding]:
    """The n-gram's shortest length is above its longest, or below one."""
    low, high = _integer(of, "prompt_lookup_min"), _integer(of, "prompt_lookup_max")
    if _method(of) not in ("ngram", "ngram_gpu"):
        return
    if low is not None and high is not None and low > high:
        yield Finding(
            f"{_KEY}.prompt_lookup_min",
            f"prompt_lookup_min is {low}, prompt_lookup_max {high}",
            "vLLM refuses",
            put(f"{_KEY}.prompt_lookup_min", high),
        )
    elif (low is not None and low < 1) or (high is not None and high < 1):
        name = "prompt_lookup_min" if low is not None and low < 1 else "prompt_lookup_max"
        yield Finding(f"{_KEY}.{name}", f"{name} is below 1", "vLLM refuses", put(f"{_KEY}.{name}", 2))


@rule("speculation.model", ERROR, versions=">=0.8.5", source="SpeculativeConfig.__post_init__")
def model(of: Deployment) -> Iterator[Finding]:
    """A method that needs a draft model without one."""
    name = _method(of)
    if (
        of.speculation
        and not of.speculation.get("model")
        and name in ("eagle", "eagle3", "draft_model", "medusa")
    ):
        yield Finding(_KEY, f"{name} without model", "it needs a second checkpoint: model = …")


@rule("speculation.draft-parallel", ERROR, source="SpeculativeConfig._verify_and_get_draft_tp")
def draft_parallel(of: Deployment) -> Iterator[Finding]:
    """The draft is split over another number of GPUs than one or all."""
    parts, all_ = _integer(of, "draft_tensor_parallel_size"), of.split
    if parts is not None and parts not in (1, all_):
        yield Finding(
            f"{_KEY}.draft_tensor_parallel_size",
            f"draft_tensor_parallel_size is {parts}, tensor-parallel-size {all_}",
            f"vLLM takes 1 or {all_}",
            put(f"{_KEY}.draft_tensor_parallel_size", 1),
        )


@rule("speculation.parallel-key", ERROR, versions=">=0.15", source="SpeculativeConfig.__post_init__")
def parallel_key(of: Deployment) -> Iterator[Finding]:
    """The target's key is used where the draft has its own."""
    if "tensor_parallel_size" in of.speculation:
        key = f"{_KEY}.tensor_parallel_size"
        yield Finding(
            key,
            "speculative-config has tensor_parallel_size",
            "vLLM refuses it there",
            Fix(key, "rename", to="draft_tensor_parallel_size"),
        )


@rule("speculation.vocabulary", ERROR, versions=">=0.15", source="SpeculativeConfig.verify_equal_vocab_size")
def vocabulary(of: Deployment) -> Iterator[Finding]:
    """Draft and target have vocabularies of different sizes."""
    if _method(of) not in ("", "draft_model"):  # heads have vocabularies of their own
        return
    if (
        of.draft
        and of.model
        and of.draft.vocab != of.model.vocab
        and not of.speculation.get("use_heterogeneous_vocab")
    ):
        yield Finding(
            f"{_KEY}.model",
            f"{of.draft.title} has {of.draft.vocab:,} tokens, {of.model.title} {of.model.vocab:,}",
            "drafts cannot be verified: vLLM refuses",
        )


@rule("speculation.suffix-package", WARNING, versions=">=0.11.1", source="vllm suffix decoding page")
def suffix_package(of: Deployment) -> Iterator[Finding]:
    """Suffix decoding needs a package that the official image does not bring."""
    if _method(of) != "suffix":
        return
    stock = of.image is not None and of.image.official
    yield Finding(
        _KEY,
        "suffix decoding needs the package arctic-inference",
        "the official image does not have it: the start ends in an ImportError" if stock else "",
        advice="build an image with it" if stock else "pip install arctic-inference beside vLLM",
        severity=WARNING if stock else NOTE,
    )


@rule("speculation.lora-budget", ERROR, versions=">=0.11.1", source="vllm/config: LoRA with speculation")
def lora_budget(of: Deployment) -> Iterator[Finding]:
    """LoRA with speculation and too few tokens in a step."""
    drafted = _integer(of, _TOKENS)
    if not of.on("enable-lora") or drafted is None or not of.has("max-num-seqs"):
        return
    tokens_, need = of.whole("max-num-batched-tokens"), of.whole("max-num-seqs") * (drafted + 1)
    if 0 < tokens_ < need:
        yield Finding(
            of.key("max-num-batched-tokens"),
            f"max-num-batched-tokens is {tokens_:,}, {of.whole('max-num-seqs')} sequences "
            f"with {drafted} drafts each need {need:,}",
            "vLLM refuses",
            put(of.key("max-num-batched-tokens"), need),
        )


@rule("speculation.metrics", ERROR, versions=">=0.29", source="vllm/entrypoints/openai/cli_args.py")
def metrics(of: Deployment) -> Iterator[Finding]:
    """Metrics of speculation without speculation."""
    key = "per-request-spec-decode-metrics"
    if of.given(key) not in (None, "none") and not of.speculation and not of.has("config"):
        yield Finding(
            of.key(key), f"{key} without speculative-config", "vLLM refuses", Fix(of.key(key), "remove")
        )


@rule("speculation.trying-out", NOTE, source="vLLM's speculative decoding page; guide for RTX PRO 6000")
def trying_out(of: Deployment) -> Iterator[Finding]:
    """Speculation gains on some prompts and loses on others."""
    if of.speculation and not of.simulated:
        yield Finding(
            _KEY,
            "speculative decoding gains on some prompts and loses on others",
            "measure with yours: --vllm-baseline keeps the speed without it",
        )
