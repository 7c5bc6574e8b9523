"""The numbers behind the words: they vary, they follow the input, decoding agrees with reading."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING, Any

from pytest_vllm import CAPABILITY, MUST, SHOULD, Metrics, Recording, Recordings, Server, check, need, only_if

if TYPE_CHECKING:
    from collections.abc import Sequence

DEGENERATE = "fault:vllm-project/vllm/issues/52938"
SPECULATED = "fault:vllm-project/vllm/issues/41758"
NEEDS = ["completions", "logprobs"]

#: Nats below the best candidate that still count as a near-tie, strictly and at most.
TIE, LAX = 0.5, 1.5
DRAFTED, ACCEPTED = "vllm:spec_decode_num_draft_tokens_total", "vllm:spec_decode_num_accepted_tokens_total"


@check("canary.varied.sampled", MUST, spec="fault:vllm-project/vllm/issues/27364", needs=NEEDS)
def test_sampled(canary_hot: Recording) -> None:
    """At temperature 2 more than three different tokens are drawn in 24."""
    tokens = _logprobs(canary_hot)["tokens"]

    assert len(set(tokens)) > 3, f"{len(tokens)} tokens are {sorted(set(tokens))}"


@check("canary.varied.unscaled", MUST, spec="fault:vllm-project/vllm/issues/9453", needs=NEEDS)
def test_unscaled(canary_hot: Recording, canary_greedy: Recording, vllm_server: Server) -> None:
    """A temperature does not change the log probability of the likeliest first token."""
    mode = str(vllm_server.args.get("logprobs-mode", "")) if vllm_server.args else "unknown"
    only_if(mode in ("", "raw_logprobs"), f"log probabilities are made as --logprobs-mode says: {mode}")
    hot, plain = (max(_logprobs(one)["top_logprobs"][0].values()) for one in (canary_hot, canary_greedy))

    assert abs(hot - plain) <= LAX, f"{hot:.2f} at temperature 2, {plain:.2f} at 0"


@check("canary.varied.greedy", MUST, spec=DEGENERATE, needs=NEEDS)
def test_greedy(canary_greedy: Recording, vllm_server: Server) -> None:
    """Not every token of a greedy text is the same with the same log probability."""
    only_if(_trained(vllm_server), "the weights are dummies")
    found = _logprobs(canary_greedy)
    pairs = {
        (token, round(value, 4))
        for token, value in zip(found["tokens"], found["token_logprobs"], strict=True)
    }

    assert len(pairs) > 1, f"{len(found['tokens'])} times {next(iter(pairs), None)}"


@check("canary.varied.values", MUST, spec=DEGENERATE, needs=NEEDS)
def test_values(canary_greedy: Recording, vllm_server: Server) -> None:
    """The log probabilities of a text are not all one number."""
    only_if(_trained(vllm_server), "the weights are dummies")
    values = _logprobs(canary_greedy)["token_logprobs"]
    need(len(values) > 8, f"only {len(values)} tokens")

    assert len({round(value, 4) for value in values}) > 1, f"{len(values)} times {values[0]}"


@check("canary.input-matters", MUST, spec=DEGENERATE, needs=NEEDS, exchanges=["canary.scored["])
def test_input_matters(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """Prompts with other words have other log probabilities."""
    only_if(_trained(vllm_server), "the weights are dummies")
    scored = [one for one in vllm_recordings.of("canary.scored[") if one.status == 200]
    need(len(scored) > 1, "fewer than two prompts were answered")
    totals = {round(sum(_scores(one)), 3) for one in scored}

    assert len(totals) > 1, f"{len(scored)} different prompts, each of total log probability {totals}"


@check(
    "canary.language",
    MUST,
    spec="fault:vllm-project/vllm/issues/40923",
    family=CAPABILITY,
    needs=NEEDS,
    exchanges=["canary.sentence", "canary.backwards"],
)
def test_language(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """Most plain English sentences are likelier than their words in backward order."""
    only_if(_trained(vllm_server), "the weights are dummies")
    pairs = [
        (one, vllm_recordings.get(one.key.replace("sentence[", "backwards[")))
        for one in vllm_recordings.of("canary.sentence[")
    ]
    judged = [(one, other) for one, other in pairs if one.status == 200 == other.status]
    need(judged, "no sentence was scored in both orders")
    gains = {one.key: round(mean(_scores(one)) - mean(_scores(other)), 2) for one, other in judged}
    likelier = [key for key, gain in gains.items() if gain > 0]

    assert len(likelier) > len(judged) / 2, f"nats per token in favour of the right order: {gains}"


@check("canary.read-again.agrees", MUST, spec=SPECULATED, needs=NEEDS)
def test_agrees(canary_greedy: Recording, canary_read_again: Recording, vllm_server: Server) -> None:
    """A generated text read again as a prompt has about the same log probabilities."""
    told = _logprobs(canary_greedy)["token_logprobs"]
    again = [value for value, _ in _again(canary_greedy, canary_read_again, vllm_server)]
    apart = mean(abs(one - other) for one, other in zip(told, again, strict=True))

    assert apart < 1.0, (
        f"{apart:.2f} nats per token: generated with {told[:8]} …, read again with {again[:8]} …"
    )


@check("canary.read-again.best", MUST, spec=SPECULATED, needs=NEEDS)
def test_best(canary_greedy: Recording, canary_read_again: Recording, vllm_server: Server) -> None:
    """Read again as a prompt, most greedy tokens are the likeliest, or nearly so."""
    rows = _again(canary_greedy, canary_read_again, vllm_server)
    worse = [(value, best) for value, best in rows if best - value > LAX]

    assert len(worse) <= len(rows) / 4, (
        f"{len(worse)} of {len(rows)} tokens, such as {worse[0]} (its own, the best)"
    )


@check("canary.read-again.exact", SHOULD, spec=SPECULATED, needs=NEEDS)
def test_exact(canary_greedy: Recording, canary_read_again: Recording, vllm_server: Server) -> None:
    """Read again as a prompt, every greedy token is the likeliest, near-ties aside."""
    rows = _again(canary_greedy, canary_read_again, vllm_server)
    worse = [(value, best) for value, best in rows if best - value > TIE]

    assert not worse, f"{len(worse)} of {len(rows)} tokens, such as {worse[0]} (its own, the best)"


@check("canary.drafts", MUST, spec="fault:noonghunna/club-3090/issues/1052", needs=["completions", "metrics"])
def test_drafts(canary_drafted: Recording) -> None:
    """Of the tokens drafted for a repeating text, at least one in twenty is accepted."""
    before, after = Metrics(canary_drafted.metrics_before or ""), Metrics(canary_drafted.metrics_after or "")
    only_if(after.named(DRAFTED), "nothing is drafted: there is no speculative decoding")
    drafted, accepted = ((after.delta(before, name) or 0.0) for name in (DRAFTED, ACCEPTED))
    need(drafted >= 20, f"only {drafted:.0f} tokens were drafted")

    assert accepted >= drafted / 20, f"{accepted:.0f} of {drafted:.0f} drafted tokens were accepted"


def _trained(server: Server) -> bool:
    return server.args.get("load-format") != "dummy"


def _logprobs(answer: Recording) -> Any:
    return answer.ok["choices"][0]["logprobs"]


def _scores(answer: Recording) -> list[float]:
    """Log probabilities of the prompt's tokens but the first."""
    values: Sequence[float | None] = _logprobs(answer)["token_logprobs"]
    return [value for value in values[: answer.ok["usage"]["prompt_tokens"]] if value is not None]


def _again(greedy: Recording, read: Recording, server: Server) -> list[tuple[float, float]]:
    """Log probability and best candidate's, of every generated token read again."""
    prompt = read.request.json["prompt"]
    only_if(server.at_least("0.10.2"), "return_token_ids came with vLLM 0.10.2")
    need(isinstance(prompt, list), "the server gives no token ids to read again")
    found, count = _logprobs(read), len(_logprobs(greedy)["tokens"])
    begin, end = len(prompt) - count, len(prompt)
    values, tops = found["token_logprobs"][begin:end], found["top_logprobs"][begin:end]
    return [(value, max(top.values())) for value, top in zip(values, tops, strict=True)]
