"""Defects of chat answers: the envelope, how they end, how many there are."""

from __future__ import annotations

from typing import Any

from pytest_vllm.sim.defects.choose import asks, failure, in_body, in_bytes, in_choices, refused
from pytest_vllm.sim.defects.edit import set_text, text_of
from pytest_vllm.sim.defects.make import header, ignores, spoil
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import CHAT

HERE = (CHAT,)

spoil(
    "chat.model-other",
    "An answer names a model that nobody asked for.",
    HERE,
    "model",
    "gpt-4o",
    catches=["chat.model"],
)
spoil(
    "chat.role-other",
    "An answer is by the user.",
    HERE,
    "choices.*.message.role",
    "user",
    catches=["chat.content.role"],
)
spoil(
    "chat.created-milliseconds",
    "`created` counts milliseconds.",
    HERE,
    "created",
    lambda at: at * 1000,
    catches=["chat.created"],
)
spoil("chat.id-fixed", "All answers have one id.", HERE, "id", "chatcmpl-0", catches=["chat.id.unique"])
spoil(
    "chat.finish-always-stop",
    "Every answer ends with `stop`, cut or not.",
    HERE,
    "choices.*.finish_reason",
    "stop",
    catches=["chat.max-tokens.finish"],
)
spoil(
    "chat.finish-eos",
    "The finish reason is the engine's own word.",
    HERE,
    "choices.*.finish_reason",
    "eos_token",
    catches=["chat.finish.known"],
)
spoil(
    "chat.stop-reason-missing",
    "`stop_reason` is never told.",
    HERE,
    "choices.*.stop_reason",
    None,
    catches=["chat.stop.reason"],
)
header(
    "chat.content-type",
    "Answers say text/html.",
    HERE,
    "content-type",
    "text/html",
    catches=["chat.content-type"],
)
in_bytes(
    "chat.infinity",
    "The body holds Infinity, which is no JSON.",
    HERE,
    lambda body: body.replace(b'"stop_reason":null', b'"stop_reason":Infinity'),
    catches=["chat.json"],
)
ignores(
    "chat.new-limit-ignored",
    "`max_completion_tokens` is unknown: the older name's limit holds.",
    ["max_completion_tokens"],
    HERE,
    area="usage",
    catches=["chat.max-completion-tokens"],
)
ignores("chat.n-ignored", "`n` is ignored: one choice comes back.", ["n"], HERE, catches=["chat.n.indices"])


def _free(asked: dict[str, Any]) -> bool:
    """A plain conversation: nothing else reads its text."""
    bound = ("tools", "response_format", "structured_outputs", "stop", "chat_template_kwargs")
    return asked.get("max_tokens") == 12 and not any(asked.get(name) for name in bound)


def _one_fewer(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for choice in body["choices"][1:]:
        choice["index"] = 0


def _alike(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for choice in body["choices"]:
        set_text(choice, text_of(body["choices"][0]))


def _twice(body: dict[str, Any], asked: dict[str, Any]) -> None:
    if not asked.get("n"):
        body["choices"] = [*body["choices"], {**body["choices"][0], "index": 1}]


def _foreign(body: dict[str, Any], asked: dict[str, Any]) -> None:
    body["object"] = "chat.completion.v2"
    body["x_gateway"] = {"tokens": len(asked)}
    body["system_fingerprint"] = f"fp-{len(str(asked))}"
    for choice in body["choices"]:
        choice["message"].pop("refusal", None)


def _with_stop(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    if isinstance(choice.get("stop_reason"), str):
        set_text(choice, text_of(choice) + choice["stop_reason"])
        choice["finish_reason"] = "length"


def _marked(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    set_text(choice, f"{text_of(choice)}<|im_end|>")


def _scored(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    if not asked.get("logprobs"):
        choice["logprobs"] = {"content": []}


def _as_parts(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    choice["message"]["content"] = [{"type": "text", "text": choice["message"].get("content")}]


def _billed_short(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    body["usage"]["completion_tokens"] -= 1
    body["usage"]["total_tokens"] -= 1


def _billed_long(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    body["usage"]["completion_tokens"] += 1
    body["usage"]["total_tokens"] += 1


def _exact(asked: dict[str, Any]) -> bool:
    return bool(asked.get("ignore_eos")) and not asked.get("n") and not asked.get("stream")


in_choices(
    "chat.content-parts",
    "The content is a list of parts.",
    HERE,
    _as_parts,
    _free,
    catches=["chat.content.text"],
)
in_body(
    "chat.billed-short",
    "The token that fills the limit is not billed.",
    HERE,
    _billed_short,
    lambda asked: _free(asked) and not asked.get("logprobs"),
    catches=["chat.finish.agrees"],
)
in_body(
    "chat.billed-long",
    "An answer that may not end is a token longer than its limit.",
    HERE,
    _billed_long,
    _exact,
    catches=["chat.max-tokens.exact", "chat.max-completion-tokens"],
)
in_body("chat.indices-zero", "All choices have index 0.", HERE, _one_fewer, catches=["chat.n.indices"])
in_body(
    "chat.choices-alike",
    "All choices of a request are the same, at any temperature.",
    HERE,
    _alike,
    asks("n"),
    faults=["SAMPLE-005", "SAMPLE-014"],
    catches=["chat.n.varied"],
)
in_body("chat.one-too-many", "A second choice comes unasked.", HERE, _twice, catches=["chat.choices.one"])
in_body(
    "chat.gateway-shape",
    "A gateway renames the object, adds a field and drops another.",
    HERE,
    _foreign,
    catches=["chat.schema"],
)
in_choices(
    "chat.stop-kept",
    "The stop string stays in the text, and the answer counts as cut.",
    HERE,
    _with_stop,
    faults=["SAMPLE-007"],
    catches=["chat.stop.text"],
)
in_choices(
    "chat.special-tokens-shown",
    "The mark that ends a turn is part of the answer.",
    HERE,
    _marked,
    _free,
    catches=["chat.content.special-tokens"],
)
in_choices(
    "chat.logprobs-unasked",
    "An empty list of log probabilities comes unasked.",
    HERE,
    _scored,
    catches=["chat.logprobs.unasked"],
)
refused(
    "chat.client-defaults-refused",
    "A request with `min_p`, as agents send it, is refused even where it is 0.",
    HERE,
    400,
    failure("The min_p sampling parameter is not yet supported with speculative decoding.", 400),
    lambda asked: "min_p" in asked,
    faults=["SAMPLE-003"],
    catches=["chat.answered"],
)
refused(
    "chat.empty-crashes",
    "A user message without a word is a server error.",
    HERE,
    500,
    failure("list index out of range"),
    lambda asked: asked.get("messages") == [{"role": "user", "content": ""}],
    catches=["chat.messages.empty"],
)


@defect("chat.system-lost", on="body", paths=HERE, catches=["chat.messages.system"])
def system_lost(body: Any, path: str) -> Any:
    """System messages do not reach the prompt."""
    del path
    if isinstance(body, dict) and isinstance(body.get("messages"), list):
        kept = [m for m in body["messages"] if not (isinstance(m, dict) and m.get("role") == "system")]
        return {**body, "messages": kept or body["messages"]}
    return body


@defect("chat.history-lost", on="body", paths=HERE, catches=["chat.messages.history"])
def history_lost(body: Any, path: str) -> Any:
    """Only the last message reaches the prompt."""
    del path
    if isinstance(body, dict) and isinstance(body.get("messages"), list):
        return {**body, "messages": body["messages"][-1:]}
    return body


@defect("chat.parts-spelled-out", on="body", paths=HERE, catches=["chat.messages.parts"])
def parts_spelled_out(body: Any, path: str) -> Any:
    """A list of content parts reaches the prompt as the text of its JSON."""
    del path
    if isinstance(body, dict) and isinstance(body.get("messages"), list):
        for message in body["messages"]:
            parts = message.get("content") if isinstance(message, dict) else None
            if isinstance(parts, list) and all(isinstance(part, dict) and "text" in part for part in parts):
                message["content"] = str(parts)
    return body


@defect(
    "chat.falsy-dropped",
    area="usage",
    on="body",
    paths=HERE,
    catches=["chat.greedy.repeats", "chat.max-completion-tokens"],
)
def falsy_dropped(body: Any, path: str) -> Any:
    """A gateway drops what is zero and what it does not know: greedy requests are sampled."""
    del path
    if isinstance(body, dict) and body.get("temperature") == 0 and not body.get("logprobs"):
        return {**body, "temperature": 1.6, "max_completion_tokens": None}
    return body


@defect("chat.min-tokens-ignored", on="output", catches=["chat.min-tokens"])
def min_tokens_ignored(output: Any, body: dict[str, Any]) -> Any:
    """An answer ends after four tokens, however many it must have."""
    if body.get("min_tokens") and body.get("messages"):
        output.ids, output.pieces, output.finish = output.ids[:4], output.pieces[:4], "stop"
    return output


@defect("chat.late-rule-lost", on="body", paths=(CHAT,), catches=["chat.messages.late-rule"])
def late_rule_lost(body: Any, path: str) -> Any:
    """A system message behind the first turn is left out of the prompt."""
    del path
    turns = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(turns, list):
        return body
    kept = [
        one
        for at, one in enumerate(turns)
        if not at or not isinstance(one, dict) or one.get("role") != "system"
    ]
    return {**body, "messages": kept}
