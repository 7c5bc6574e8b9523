"""Where a completion stops, judged on a text that is known beforehand."""

from __future__ import annotations

from pytest_vllm import MUST, SHOULD, Recording, check, need, only_if, text_of

SPEC = "openai:completions/create#stop"
VLLM = "vllm:serving/openai_compatible_server/#completions-api"
NEEDS = ["completions", "tokenize"]


@check("completions.stop.text", MUST, spec=SPEC, needs=NEEDS)
def test_text(completions_stop: Recording, completions_forced: Recording) -> None:
    """The text ends right before a stop string, also one that spans two tokens."""
    whole, stop = _whole(completions_forced), completions_stop.request.json["stop"]
    text, wanted = text_of(completions_stop.ok["choices"][0]), whole.partition(stop)[0]

    assert text == wanted, f"{whole!r} stopped at {stop!r} gives {text!r}, not {wanted!r}"


@check("completions.stop.finish", MUST, spec=SPEC, needs=NEEDS)
def test_finish(completions_stop: Recording, completions_forced: Recording) -> None:
    """A completion that a stop string ended has finish reason `stop`."""
    _whole(completions_forced)
    reason = completions_stop.ok["choices"][0]["finish_reason"]

    assert reason == "stop", f"finish_reason is {reason!r}"


@check("completions.stop.reason", MUST, spec=VLLM, needs=NEEDS)
def test_reason(completions_stop: Recording, completions_forced: Recording) -> None:
    """`stop_reason` names the stop string that ended the completion."""
    _whole(completions_forced)
    stop, reason = completions_stop.request.json["stop"], completions_stop.ok["choices"][0].get("stop_reason")

    assert reason == stop, f"stop_reason is {reason!r}, the stop string {stop!r}"


@check("completions.stop.none", MUST, spec=VLLM, needs=NEEDS)
def test_none(completions_forced: Recording) -> None:
    """A completion that nothing stopped has no `stop_reason`."""
    reason = completions_forced.ok["choices"][0].get("stop_reason")

    assert reason is None, f"stop_reason is {reason!r}"


@check("completions.stop.counted", SHOULD, spec="openai:completions/object#usage", needs=NEEDS)
def test_counted(completions_stop: Recording, completions_forced: Recording) -> None:
    """Generation ends with the token that completes the stop string."""
    whole, stop = _whole(completions_forced), completions_stop.request.json["stop"]
    tokens = completions_forced.ok["choices"][0]["logprobs"]["tokens"]
    last = whole.find(stop) + len(stop)
    wanted = next(n for n in range(1, len(tokens) + 1) if len("".join(tokens[:n])) >= last)
    used = completions_stop.ok["usage"]["completion_tokens"]

    assert used == wanted, f"{used} tokens, {stop!r} is complete after {wanted}"


@check("completions.stop.included", MUST, spec=VLLM, needs=NEEDS)
def test_included(completions_stop_included: Recording, completions_forced: Recording) -> None:
    """`include_stop_str_in_output` keeps the stop string, and nothing behind it."""
    whole, (stop,) = _whole(completions_forced), completions_stop_included.request.json["stop"]
    text = text_of(completions_stop_included.ok["choices"][0])
    wanted = whole[: whole.find(stop) + len(stop)]

    assert text == wanted, f"{whole!r} stopped at {stop!r} gives {text!r}, not {wanted!r}"


@check("completions.stop.first-wins", MUST, spec=SPEC, needs=NEEDS)
def test_first_wins(completions_stop_list: Recording, completions_forced: Recording) -> None:
    """Of several stop strings the first to be complete ends the text."""
    whole, stops = _whole(completions_forced), completions_stop_list.request.json["stop"]
    text, wanted = text_of(completions_stop_list.ok["choices"][0]), whole.partition(stops[-1])[0]

    assert text == wanted, f"{whole!r} stopped at {stops} gives {text!r}, not {wanted!r}"


@check("completions.stop.twice", MUST, spec="fault:vllm-project/vllm/pull/46113", needs=NEEDS)
def test_twice(completions_twice: Recording) -> None:
    """A stop string that a token holds several times cuts the text at the first."""
    choice, stop = completions_twice.ok["choices"][0], completions_twice.request.json["stop"]
    token = str(choice["logprobs"]["tokens"][0])
    only_if(token.count(stop) > 1, f"the token is {token!r}")

    assert text_of(choice) == token.partition(stop)[0], (
        f"{token!r} stopped at {stop!r} gives {text_of(choice)!r}"
    )


@check("completions.stop.unmatched", MUST, spec="fault:vllm-project/vllm/issues/14170", needs=NEEDS)
def test_unmatched(completions_stop_unmatched: Recording, completions_forced: Recording) -> None:
    """A stop string that never comes changes nothing and holds no text back."""
    whole, text = _whole(completions_forced), text_of(completions_stop_unmatched.ok["choices"][0])

    assert text == whole, f"{text!r} with a stop string that never comes, {whole!r} without"


@check("completions.stop.token", MUST, spec=VLLM, needs=NEEDS)
def test_token(completions_stop_token: Recording) -> None:
    """A stop token ends the completion at once."""
    body = completions_stop_token.ok
    used, reason = body["usage"]["completion_tokens"], body["choices"][0]["finish_reason"]

    assert (used, reason) == (1, "stop"), f"{used} tokens, finish_reason {reason!r}"


@check("completions.stop.token-hidden", MUST, spec="fault:vllm-project/vllm/pull/55483", needs=NEEDS)
def test_token_hidden(completions_stop_token: Recording, completions_forced: Recording) -> None:
    """The token that stopped a completion is not part of its text."""
    _whole(completions_forced)
    choice = completions_stop_token.ok["choices"][0]
    need(choice["finish_reason"] == "stop", f"finish_reason is {choice['finish_reason']!r}")

    assert not text_of(choice), f"stopped by its first token, the text is {text_of(choice)!r}"


@check("completions.stop.token-reason", MUST, spec=VLLM, needs=NEEDS)
def test_token_reason(completions_stop_token: Recording) -> None:
    """`stop_reason` is the id of the stop token that ended the completion."""
    (token,) = completions_stop_token.request.json["stop_token_ids"]
    reason = completions_stop_token.ok["choices"][0].get("stop_reason")

    assert reason == token, f"stop_reason is {reason!r}, the stop token {token}"


def _whole(forced: Recording) -> str:
    """The unstopped text, once it is sure that the server let nothing else through."""
    text, tokens = text_of(forced.ok["choices"][0]), forced.ok["choices"][0]["logprobs"]["tokens"]
    need(len(set(tokens)) == 1, f"allowed_token_ids let {sorted(set(tokens))} through")
    return text
