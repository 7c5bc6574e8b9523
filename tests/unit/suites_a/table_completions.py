"""Wrong answers about tokens, completions and log probabilities."""

from __future__ import annotations

from typing import Any

from tests.unit.suites_a.breaks import (
    Break,
    answered,
    edited,
    everywhere,
    first,
    headed,
    like,
    replaced,
    said,
    usage,
)


def _in(prefix: str) -> Any:
    return lambda key: key.startswith(prefix)


def _logprobs(**fields: Any) -> Any:
    return lambda body: body["choices"][0]["logprobs"].update(fields)


def _each(name: str, change: Any) -> Any:
    def edit(body: Any) -> None:
        found = body["choices"][0]["logprobs"]
        found[name] = [change(value) for value in found[name]]

    return edit


def _entries(change: Any) -> Any:
    def edit(body: Any) -> None:
        for entry in body["choices"][0]["logprobs"]["content"]:
            change(entry)

    return edit


def _prompt(change: Any) -> Any:
    return lambda body: change(body["choices"][0]["prompt_logprobs"])


def _drawn(*tokens: str) -> Any:
    return _logprobs(tokens=list(tokens))


def _swapped(body: Any) -> None:
    """The first two tokens in each other's place, and so unlikely as no tie is."""
    found = body["choices"][0]["logprobs"]
    other = next(one for one in found["tokens"] if one != found["tokens"][0])
    found["tokens"][0] = other
    found["token_logprobs"][0] -= 3


def _replaced(old: str, new: str) -> Any:
    return lambda body: body.update(prompt=body["prompt"].replace(old, new))


TOKENIZE = [
    Break("tokenize.answered", answered("tokenize.word", 500), "a word fails"),
    Break(
        "tokenize.round-trip[chinese]",
        edited("tokenize.text-back[chinese]", _replaced("京", "\ufffd")),
        "lost",
    ),
    Break(
        "tokenize.round-trip-exact[combining-marks]",
        edited("tokenize.text-back[combining-marks]", lambda b: b.update(prompt="á ê ñ ö")),
        "composed",
    ),
    Break("tokenize.count[ascii]", edited("tokenize.text[ascii]", lambda b: b.update(count=3)), "miscounted"),
    Break("tokenize.ids[ascii]", edited("tokenize.text[ascii]", lambda b: b.update(tokens=["The"])), "words"),
    Break(
        "tokenize.ids[code]", edited("tokenize.text[code]", lambda b: b.update(tokens=[], count=0)), "none"
    ),
    Break("tokenize.strings", edited("tokenize.opening", lambda b: b["token_strs"].pop()), "one lost"),
    Break("tokenize.special-tokens", edited("tokenize.opening", lambda b: b["tokens"].pop(2)), "one lost"),
    Break("tokenize.one-beginning", edited("tokenize.chat", lambda b: b["tokens"].insert(0, 1)), "two BOS"),
    Break("tokenize.chat.answered", answered("tokenize.turns", 500), "a conversation fails"),
    Break("tokenize.ids[emoji]", edited("tokenize.text[emoji]", lambda b: b.pop("tokens")), "no tokens"),
    Break("tokenize.chat.verbatim", edited("tokenize.chat-back", _replaced("France", "")), "a word lost"),
    Break("tokenize.chat.history", edited("tokenize.turns-back", _replaced("Bello", "")), "history lost"),
    Break(
        "tokenize.chat.history",
        edited("tokenize.turns-back", lambda b: b.update(prompt=b["prompt"][::-1].swapcase())),
        "garbled",
    ),
    Break("tokenize.chat.system", edited("tokenize.system-back", _replaced("sentence", "")), "a word lost"),
    Break("tokenize.chat.system", answered("tokenize.system", 400), "refused without saying why"),
    Break("tokenize.chat.system", answered("tokenize.system", 500), "a server error"),
    Break(
        "tokenize.chat.continued",
        edited("tokenize.begun-back", lambda b: b.update(prompt=b["prompt"] + "<|im_end|>\n")),
        "the turn is closed",
    ),
]

COMPLETIONS = [
    Break("completions.answered", answered("completions.ids", 400), "token ids are refused"),
    Break(
        "completions.schema", edited("completions.plain", lambda b: b.update(object="x")), "another object"
    ),
    Break(
        "completions.schema", edited("completions.plain", lambda b: b["choices"][0].pop("text")), "no text"
    ),
    Break(
        "completions.beams", edited("completions.beams", lambda b: b.update(choices=b["choices"][:1])), "one"
    ),
    Break("completions.unknown-fields", edited("completions.plain", lambda b: b.update(colour=1)), "unknown"),
    Break("completions.json", answered("completions.plain", 200, '{"id": Infinity}'), "Infinity"),
    Break("completions.content-type", headed("completions.plain", content_type="text/html"), "HTML"),
    Break("completions.choices.one", edited("completions.plain", first(index=1)), "number one"),
    Break("completions.created", edited("completions.plain", lambda b: b.update(created=0)), "zero"),
    Break("completions.id.unique", everywhere(_in("completions."), lambda b: b.update(id="1")), "one id"),
    Break("completions.id.request-id", edited("completions.request-id", lambda b: b.update(id="1")), "lost"),
    Break("completions.model", edited("completions.request-id", lambda b: b.update(model="x")), "another"),
    Break("completions.logprobs.unasked", edited("completions.plain", first(logprobs={})), "unasked"),
    Break("completions.prompt.counted", edited("completions.plain", usage(prompt_tokens=6)), "one more"),
    Break("completions.prompt.ids-counted", edited("completions.ids", usage(prompt_tokens=6)), "BOS added"),
    Break("completions.prompt.ids-alike", edited("completions.ids", said(" London.")), "another text"),
    Break("completions.prompt.bare", edited("completions.bare", usage(prompt_tokens=6)), "BOS added"),
    Break("completions.prompt.truncated", edited("completions.truncated", usage(prompt_tokens=6)), "ignored"),
    Break("completions.batch.indices", edited("completions.batch", first(index=1)), "an index twice"),
    Break(
        "completions.batch.order",
        edited("completions.batch", lambda b: [c.update(index=3 - c["index"]) for c in b["choices"]]),
        "prompts swapped",
    ),
    Break("completions.batch.ids", edited("completions.batch-ids", lambda b: b["choices"].pop()), "one lost"),
    Break("completions.echo.verbatim", edited("completions.echo", said("Ca va?")), "an accent lost"),
    Break("completions.echo.only", edited("completions.echo-only", said("")), "no prompt"),
    Break("completions.echo.only", answered("completions.echo-only", 500), "a server error"),
    Break("completions.finish.agrees", edited("completions.plain", usage(completion_tokens=7)), "too early"),
    Break(
        "completions.max-tokens.exact", edited("completions.forced", usage(completion_tokens=7)), "one more"
    ),
    Break("completions.max-tokens.exact", edited("completions.forced", first(finish_reason="stop")), "stop"),
    Break(
        "completions.max-tokens.default",
        edited("completions.default-length", usage(completion_tokens=9)),
        "9",
    ),
    Break(
        "completions.min-tokens", edited("completions.min-tokens", usage(completion_tokens=2)), "ended early"
    ),
    Break("completions.nulls", edited("completions.nulls", usage(completion_tokens=9)), "no stop"),
    Break("completions.stop.text", edited("completions.stop", said(" hello h")), "the stop string is in"),
    Break("completions.stop.text", edited("completions.stop", said(" he")), "a letter lost"),
    Break("completions.stop.text", like("completions.forced", "completions.stop"), "stop is ignored"),
    Break("completions.stop.finish", edited("completions.stop", first(finish_reason="length")), "length"),
    Break("completions.stop.reason", edited("completions.stop", first(stop_reason=None)), "no reason"),
    Break("completions.stop.none", edited("completions.forced", first(stop_reason="hello")), "a reason"),
    Break("completions.stop.counted", edited("completions.stop", usage(completion_tokens=3)), "one more"),
    Break("completions.stop.included", like("completions.stop", "completions.stop-included"), "ignored"),
    Break("completions.stop.first-wins", like("completions.forced", "completions.stop-list"), "the late one"),
    Break("completions.stop.unmatched", edited("completions.stop-unmatched", said(" hello")), "held back"),
    Break("completions.stop.token", like("completions.forced", "completions.stop-token"), "ignored"),
    Break("completions.stop.token-hidden", edited("completions.stop-token", said(" hello")), "shown"),
    Break("completions.stop.token-reason", edited("completions.stop-token", first(stop_reason=None)), "none"),
    Break("completions.allowed-token-ids", edited("completions.forced", _drawn("a", "b")), "ignored"),
    Break(
        "completions.logit-bias", like("completions.bias-to-first", "completions.bias-to-second"), "ignored"
    ),
    Break("completions.logit-bias", answered("completions.bias-to-first", 400), "refused without a name"),
    Break(
        "completions.frequency-penalty", like("completions.pair", "completions.frequency-penalty"), "ignored"
    ),
    Break("completions.penalty-begins", edited("completions.frequency-penalty", _swapped), "the prompt's"),
    Break(
        "completions.narrowing[top-p]",
        edited("completions.narrowed[top-p]", _each("token_logprobs", lambda value: value - 3)),
        "ignored",
    ),
    Break("completions.narrowing[top-k]", answered("completions.narrowed[top-k]", 500), "a server error"),
    Break("completions.logit-bias", answered("completions.bias-to-first", 500), "a server error"),
    Break(
        "completions.narrowing[min-p]", answered("completions.narrowed[min-p]", 400), "refused without a name"
    ),
    Break("completions.seed.repeats", like("completions.seed-other", "completions.seed-again"), "ignored"),
    Break(
        "completions.seed.repeats-throughout", edited("completions.seed-again", said(" profiles x")), "apart"
    ),
    Break(
        "completions.seed.matters",
        like(
            "completions.seed-first",
            "completions.seed-other",
            "completions.seed-third",
            "completions.seed-fourth",
        ),
        "fixed",
    ),
    Break(
        "completions.special-tokens.hidden",
        like("completions.special-shown", "completions.special-hidden"),
        "shown unasked",
    ),
    Break(
        "completions.special-tokens.shown",
        like("completions.special-hidden", "completions.special-shown"),
        "hidden although asked for",
    ),
]


def _worse(entry: Any) -> None:
    entry["logprob"] -= 9


def _turned(name: str) -> Any:
    return lambda body: body["choices"][0].update({name: body["choices"][0][name][::-1]})


def _unnamed(entries: Any) -> None:
    for entry in entries[1:]:
        for one in entry.values():
            one["decoded_token"] = ""


def _foreign(entry: Any) -> None:
    entry["token"] = "".join(map(chr, entry["token"].encode()))


def _stale(body: Any) -> None:
    for row in body["choices"][0]["prompt_logprobs"][1:]:
        for entry in row.values():
            entry["logprob"] -= 5


LOGPROBS = [
    Break("logprobs.chat.there", edited("logprobs.chat", first(logprobs=None)), "not given"),
    Break("logprobs.completion.there", edited("logprobs.completion", first(logprobs=None)), "not given"),
    Break(
        "logprobs.chat.joined",
        edited("logprobs.chat", lambda b: b["choices"][0]["logprobs"]["content"].reverse()),
        "the other way round",
    ),
    Break(
        "logprobs.stream.same-tokens",
        replaced("logprobs.chat-stream", '"token":"', '"token":"x'),
        "others",
    ),
    Break(
        "logprobs.stream.same-values",
        replaced("logprobs.chat-stream", '"logprob":-', '"logprob":-9'),
        "others",
    ),
    Break("logprobs.prompt.named", edited("logprobs.prompt", _prompt(_unnamed)), "no names"),
    Break(
        "completions.token-ids.counted", edited("logprobs.completion", usage(completion_tokens=3)), "one lost"
    ),
    Break(
        "completions.token-ids.prompt", edited("logprobs.completion", _turned("prompt_token_ids")), "turned"
    ),
    Break(
        "completions.token-ids.text",
        edited("logprobs.detokenized", lambda b: b.update(prompt="The quick brown fox")),
        "of another text",
    ),
    Break("logprobs.letters.own", edited("logprobs.letters", _entries(_foreign)), "raw letters"),
    Break(
        "logprobs.letters.joined",
        edited("logprobs.letters", lambda b: b["choices"][0]["logprobs"]["content"].pop(2)),
        "one lost",
    ),
    Break(
        "logprobs.letters.streamed",
        replaced("logprobs.letters-stream", '"token":"', '"token":"x'),
        "others",
    ),
    Break(
        "logprobs.most",
        edited("logprobs.most-chat", _entries(lambda e: e["top_logprobs"].pop())),
        "one fewer",
    ),
    Break("logprobs.most-completion", answered("logprobs.most-completion", 400), "not JSON compliant"),
    Break(
        "logprobs.echo.offsets",
        replaced("logprobs.echo-stream", '"text_offset":[', '"text_offset":[9'),
        "shifted",
    ),
    Break("logprobs.prompt.again", edited("logprobs.read-again", _stale), "of something else"),
    Break("logprobs.answered", answered("logprobs.echo", 500), "echo fails"),
    Break("logprobs.chat.count", edited("logprobs.chat", usage(completion_tokens=9)), "an entry lost"),
    Break(
        "logprobs.chat.top-count", edited("logprobs.chat", _entries(lambda e: e["top_logprobs"].pop())), "two"
    ),
    Break(
        "logprobs.chat.no-top",
        edited("logprobs.chat-no-top", _entries(lambda e: e.update(top_logprobs=[{"token": "x"}]))),
        "unasked",
    ),
    Break(
        "logprobs.chat.sorted",
        edited("logprobs.chat", _entries(lambda e: e["top_logprobs"].reverse())),
        "not",
    ),
    Break("logprobs.chat.greedy-is-best", edited("logprobs.chat", _entries(_worse)), "not the best"),
    Break("logprobs.chat.taken-is-listed", edited("logprobs.chat", _entries(_worse)), "another value"),
    Break(
        "logprobs.chat.mass",
        edited("logprobs.chat", _entries(lambda e: [t.update(logprob=-0.1) for t in e["top_logprobs"]])),
        "more than one",
    ),
    Break(
        "logprobs.chat.bytes", edited("logprobs.chat", _entries(lambda e: e.update(bytes=[1]))), "other bytes"
    ),
    Break(
        "logprobs.completion.count", edited("logprobs.completion", _logprobs(text_offset=[])), "no offsets"
    ),
    Break(
        "logprobs.completion.top-count",
        edited("logprobs.completion", _each("top_logprobs", lambda top: dict(list(top.items())[:1]))),
        "one candidate",
    ),
    Break(
        "logprobs.completion.greedy-is-best",
        edited("logprobs.completion", _each("token_logprobs", lambda value: value - 9)),
        "not the best",
    ),
    Break(
        "logprobs.completion.joined", edited("completions.forced", _each("tokens", lambda _: "x")), "other"
    ),
    Break(
        "logprobs.completion.offsets", edited("completions.forced", _each("text_offset", lambda _: 1)), "one"
    ),
    Break("logprobs.echo.count", edited("logprobs.echo", _drawn("a")), "tokens lost"),
    Break(
        "logprobs.echo.first-null",
        edited("logprobs.echo", _each("token_logprobs", lambda _: -1.0)),
        "a value",
    ),
    Break(
        "logprobs.echo.first-null", edited("logprobs.echo", _each("token_logprobs", lambda _: None)), "nulls"
    ),
    Break(
        "logprobs.echo.varied", edited("logprobs.echo", _each("token_logprobs", lambda _: -2.5)), "all alike"
    ),
    Break("logprobs.echo.sampled", edited("logprobs.sampled", _drawn("a")), "tokens lost"),
    Break("logprobs.prompt.count", edited("logprobs.prompt", _prompt(lambda p: p.pop())), "one lost"),
    Break("logprobs.prompt.count", edited("logprobs.prompt", first(prompt_logprobs=None)), "none"),
    Break(
        "logprobs.prompt.agrees",
        edited("logprobs.echo", _each("token_logprobs", lambda value: value and value - 3)),
        "other values",
    ),
    Break(
        "logprobs.rescored",
        edited("logprobs.rescored", _each("token_logprobs", lambda value: value and value - 3)),
        "other values",
    ),
    Break(
        "logprobs.finite", edited("logprobs.chat", _entries(lambda e: e.update(logprob=0.5))), "above zero"
    ),
    Break("logprobs.json", answered("logprobs.echo", 200, '{"x": NaN}'), "NaN"),
]
