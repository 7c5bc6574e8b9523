"""Wrong answers about models, chat and usage."""

from __future__ import annotations

from typing import Any

from tests.unit.suites_a.breaks import Break, answered, edited, everywhere, first, headed, like, said, usage


def _entry(**fields: Any) -> Any:
    return lambda body: body["data"][0].update(fields)


def _in(prefix: str) -> Any:
    return lambda key: key.startswith(prefix)


MODELS = [
    Break("models.answered", answered("models.again", 500), "the second listing fails"),
    Break("models.list.schema", edited("models.list", lambda b: b.update(object="models")), "no list"),
    Break("models.list.schema", edited("models.list", _entry(created="now")), "created is a word"),
    Break("models.list.unknown-fields", edited("models.list", _entry(colour="red")), "an unknown field"),
    Break("models.list.not-empty", edited("models.list", lambda b: b["data"].clear()), "nothing listed"),
    Break("models.list.unique", edited("models.list", lambda b: b["data"].append(b["data"][0])), "twice"),
    Break("models.list.unique", edited("models.list", _entry(id="")), "an empty name"),
    Break("models.list.stable", edited("models.again", _entry(id="other")), "another list"),
    Break("models.list.created", edited("models.list", _entry(created=1795822467000)), "milliseconds"),
    Break("models.by-id", answered("models.by-id", 500), "a server error"),
    Break("models.entry.context-length", edited("models.list", _entry(max_model_len=None)), "no length"),
    Break("models.entry.context-length-agrees", edited("models.list", _entry(max_model_len=8192)), "another"),
    Break("models.entry.served-name", edited("models.list", _entry(id="other")), "another name"),
    Break("models.entry.root", edited("models.list", _entry(root=None)), "no root"),
    Break("models.entry.parent", edited("models.list", _entry(parent="nobody")), "a parent unknown"),
]


def _by_user(body: Any) -> None:
    body["choices"][0]["message"]["role"] = "user"


def _leak(body: Any) -> None:
    body["choices"][0]["message"]["content"] += "<|im_end|>"


def _same_choices(body: Any) -> None:
    for choice in body["choices"]:
        choice["message"]["content"] = "the same"


CHAT = [
    Break("chat.answered", answered("chat.parts", 500), "content parts fail"),
    Break("chat.schema", edited("chat.plain", lambda b: b.update(object="chat")), "another object"),
    Break("chat.schema", edited("chat.plain", lambda b: b.pop("usage")), "no usage"),
    Break("chat.schema", edited("chat.plain", first(finish_reason=None)), "no finish reason"),
    Break("chat.schema", edited("chat.plain", first(index="0")), "the index is a string"),
    Break("chat.schema-advised", edited("chat.plain", lambda b: b["choices"][0].pop("logprobs")), "no key"),
    Break("chat.unknown-fields", edited("chat.plain", lambda b: b.update(colour="red")), "an unknown field"),
    Break("chat.json", answered("chat.plain", 200, '{"id": NaN}'), "NaN"),
    Break("chat.json", answered("chat.plain", 200, "ok"), "plain text"),
    Break("chat.content-type", headed("chat.plain", content_type="text/plain"), "marked as text"),
    Break("chat.choices.one", edited("chat.plain", lambda b: b["choices"].append(b["choices"][0])), "two"),
    Break("chat.created", edited("chat.plain", lambda b: b.update(created=1795822467000)), "milliseconds"),
    Break("chat.model", edited("chat.plain", lambda b: b.update(model="gpt-4")), "another model"),
    Break("chat.id.unique", everywhere(_in("chat."), lambda b: b.update(id="chatcmpl-1")), "one id for all"),
    Break(
        "chat.id.request-id", edited("chat.request-id", lambda b: b.update(id="chatcmpl-1")), "own id lost"
    ),
    Break("chat.fingerprint", edited("chat.repeat", lambda b: b.update(system_fingerprint="x")), "changed"),
    Break("chat.content.text", edited("chat.plain", said(["Paris"])), "content is a list"),  # type: ignore[arg-type]
    Break("chat.content.role", edited("chat.plain", _by_user), "by the user"),
    Break("chat.content.special-tokens", edited("chat.plain", _leak), "a special token leaks"),
    Break("chat.logprobs.unasked", edited("chat.plain", first(logprobs={"content": []})), "unasked"),
    Break("chat.finish.known", edited("chat.plain", first(finish_reason="tool_calls")), "tool_calls"),
    Break("chat.finish.agrees", edited("chat.plain", first(finish_reason="length")), "length too early"),
    Break("chat.finish.agrees", edited("chat.plain", usage(completion_tokens=13)), "above the limit"),
    Break(
        "chat.max-tokens.exact[one]", edited("chat.exact-tokens[one]", usage(completion_tokens=2)), "one more"
    ),
    Break(
        "chat.max-tokens.finish[two]", edited("chat.exact-tokens[two]", first(finish_reason="stop")), "stop"
    ),
    Break(
        "chat.max-completion-tokens",
        edited("chat.max-completion-tokens", usage(completion_tokens=8)),
        "the older name wins",
    ),
    Break("chat.min-tokens", edited("chat.min-tokens", usage(completion_tokens=4)), "ended early"),
    Break("chat.stop.text", edited("chat.stop", said("The")), "the stop string is in the text"),
    Break("chat.stop.text", like("chat.plain", "chat.stop"), "stop is ignored"),
    Break("chat.stop.finish", edited("chat.stop", first(finish_reason="length")), "length"),
    Break("chat.stop.reason", edited("chat.stop", first(stop_reason=None)), "no stop reason"),
    Break("chat.n.indices", edited("chat.n", lambda b: b["choices"].pop()), "one choice lost"),
    Break("chat.n.varied", edited("chat.n", _same_choices), "temperature is ignored"),
    Break("chat.greedy.repeats", edited("chat.repeat", said("Berlin is.")), "another answer"),
    Break("chat.greedy.logprobs-change-nothing", edited("chat.plain", said("Berlin is.")), "another answer"),
    Break(
        "chat.greedy.like-completions", edited("completions.rendered", said("Berlin is.")), "another answer"
    ),
    Break("chat.bad-words", like("chat.plain", "chat.bad-words"), "bad_words is ignored"),
    Break("chat.messages.parts", edited("chat.parts", usage(prompt_tokens=39)), "parts add tokens"),
    Break("chat.messages.system", like("chat.system-short", "chat.system-long"), "the message is dropped"),
    Break("chat.messages.system", answered("chat.system-long", 400), "refused without saying why"),
    Break("chat.messages.system", answered("chat.system-long", 500), "a server error"),
    Break("chat.messages.developer", like("chat.developer", "chat.developer.longer"), "it is dropped"),
    Break("chat.messages.history", edited("chat.turns", usage(prompt_tokens=36)), "history is dropped"),
    Break("chat.messages.empty", answered("chat.empty-user", 500), "a server error"),
]

USAGE = [
    Break("usage.total", edited("chat.turns", usage(total_tokens=58)), "the prompt alone"),
    Break("usage.within-limit", edited("chat.stop", usage(completion_tokens=13)), "above the limit"),
    Break("usage.prompt-counted", edited("completions.echo", usage(prompt_tokens=0)), "a free prompt"),
    Break("usage.stable", edited("chat.repeat", usage(prompt_tokens=5)), "the cached part is not billed"),
    Break("usage.choices", edited("chat.n", usage(completion_tokens=6)), "one choice is billed"),
    Break("usage.batch", edited("completions.batch", usage(completion_tokens=4)), "one prompt is billed"),
    Break("usage.batch-prompts", edited("completions.batch-ids", usage(prompt_tokens=1)), "one prompt"),
    Break(
        "usage.cached-part",
        edited("chat.repeat", usage(prompt_tokens_details={"cached_tokens": 4608})),
        "more cached than read",
    ),
    Break(
        "usage.reasoning-part",
        edited("chat.repeat", usage(completion_tokens_details={"reasoning_tokens": 60})),
        "more thought than said",
    ),
    Break(
        "usage.cached-tokens",
        edited("chat.repeat", usage(prompt_tokens_details={"cached_tokens": None})),
        "not told",
    ),
    Break("usage.echo-only", edited("completions.echo-only", usage(completion_tokens=3)), "billed"),
    Break("usage.tokenize-agrees", edited("tokenize.chat", lambda b: b.update(count=36)), "one less"),
    Break(
        "usage.messages-agrees",
        edited("usage.messages", lambda b: b["usage"].update(input_tokens=36)),
        "less",
    ),
    Break(
        "usage.responses-agrees",
        edited("usage.responses", lambda b: b["usage"].update(input_tokens=38)),
        "BOS twice",
    ),
    Break("usage.messages.answered", answered("usage.messages", 500), "a server error"),
    Break("usage.responses.answered", answered("usage.responses", 500), "a server error"),
]
