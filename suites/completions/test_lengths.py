"""How long a completion is, and why it ended."""

from __future__ import annotations

from pytest_vllm import MUST, SHOULD, Recording, Server, check, only_if

CREATE = "openai:completions/create"
VLLM = "vllm:serving/openai_compatible_server/#completions-api"
NEEDS = ["completions"]
FORCED = ["completions", "tokenize"]


@check("completions.finish.agrees", MUST, spec="openai:completions/object#choices", needs=NEEDS)
def test_finish_agrees(completions_plain: Recording) -> None:
    """A completion ends with `length` at its token limit and with `stop` before it."""
    body = completions_plain.ok
    reason, used = body["choices"][0]["finish_reason"], body["usage"]["completion_tokens"]
    limit = completions_plain.request.json["max_tokens"]

    assert reason in ("stop", "length"), f"finish_reason is {reason!r}"
    assert used <= limit, f"{used} tokens, max_tokens is {limit}"
    assert reason != "length" or used == limit, f"length after {used} of {limit} tokens"


@check("completions.max-tokens.exact", MUST, spec=f"{CREATE}#max_tokens", needs=FORCED)
def test_exact(completions_forced: Recording) -> None:
    """A completion that cannot stop has `max_tokens` tokens and ends with `length`."""
    body, limit = completions_forced.ok, completions_forced.request.json["max_tokens"]
    used, reason = body["usage"]["completion_tokens"], body["choices"][0]["finish_reason"]

    assert used == limit, f"{used} tokens, max_tokens is {limit}"
    assert reason == "length", f"finish_reason is {reason!r}"


@check("completions.max-tokens.default", SHOULD, spec=f"{CREATE}#max_tokens", needs=NEEDS)
def test_default(completions_default_length: Recording) -> None:
    """Without a limit a completion has 16 tokens."""
    used = completions_default_length.ok["usage"]["completion_tokens"]

    assert used == 16, f"{used} tokens"


@check("completions.min-tokens", SHOULD, spec="fault:vllm-project/vllm/pull/22014", needs=FORCED)
def test_min_tokens(completions_min_tokens: Recording) -> None:
    """A stop string does not end a completion before `min_tokens`."""
    used = completions_min_tokens.ok["usage"]["completion_tokens"]
    wanted = completions_min_tokens.request.json["min_tokens"]

    assert used >= wanted, f"{used} tokens, min_tokens is {wanted}"


@check("completions.min-tokens.exact", MUST, spec="fault:vllm-project/vllm/pull/46243", needs=FORCED)
def test_min_tokens_exact(completions_min_tokens_exact: Recording, vllm_server: Server) -> None:
    """What ends a completion is kept back for `min_tokens` tokens and no longer."""
    only_if(not vllm_server.drafts, "drafted tokens are not held to it")
    asked, refused = completions_min_tokens_exact.request.json, completions_min_tokens_exact.status == 400
    only_if(not refused, f"the bias is refused: {completions_min_tokens_exact.text[:120]}")
    body = completions_min_tokens_exact.ok
    used, choice = body["usage"]["completion_tokens"], body["choices"][0]

    assert used == asked["min_tokens"] + 1, f"{used} tokens, min_tokens is {asked['min_tokens']}"
    assert choice["finish_reason"] == "stop", f"finish_reason is {choice['finish_reason']!r}"


@check("completions.nulls", MUST, spec="fault:vllm-project/vllm/issues/19862", needs=FORCED)
def test_nulls(completions_nulls: Recording) -> None:
    """Optional parameters may be null."""
    body = completions_nulls.ok

    assert body["usage"]["completion_tokens"] == 1, f"usage {body['usage']} for one token"
