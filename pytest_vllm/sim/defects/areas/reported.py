"""Faults of public reports that show only where a request meets their condition: answers that are changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import always, asks, failure, in_body, refused
from pytest_vllm.sim.defects.edit import choices, set_text, text_of
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, RESPONSES, live, only, remembering

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

BOTH = (CHAT, COMPLETIONS)
EMBEDDINGS = "/v1/embeddings"
#: Characters from which on a text of a batch counts as long.
LONG = 4000
TORN = "\ufffd"


def _uncut(asked: dict[str, Any]) -> bool:
    return asked.get("truncate_prompt_tokens") == -1


refused(
    "fields.uncut-refused",
    "A limit of -1 for the prompt is refused.",
    BOTH,
    400,
    failure("truncate_prompt_tokens must be at least 1, got -1.", 400),
    _uncut,
    faults=["vllm-project/vllm#22635"],
    catches=["fields.neutral"],
)
refused(
    "embeddings.uncut-refused",
    "A limit of -1 for a text is refused.",
    (EMBEDDINGS,),
    400,
    failure("truncate_prompt_tokens must be at least 1, got -1.", 400),
    _uncut,
    faults=["vllm-project/vllm#22635"],
    catches=["embeddings.uncut"],
    profile="sim-embed",
)


def _top_zero(body: dict[str, Any], asked: dict[str, Any]) -> None:
    if asked.get("top_k") == 0 and body.get("usage"):
        body["usage"]["prompt_tokens"] += 1
        body["usage"]["total_tokens"] += 1


in_body(
    "fields.top-zero-longer",
    "With `top_k` at 0 a prompt has a token more.",
    BOTH,
    _top_zero,
    always,
    catches=["fields.neutral", "oracle.same.prompt"],
)


def _entries(body: Any) -> Iterator[dict[str, Any]]:
    for choice in body.get("choices") or () if isinstance(body, dict) else ():
        held = choice.get("logprobs")
        yield from (held.get("content") or ()) if isinstance(held, dict) else ()


def _spelt(spell: Callable[[str], str]) -> Callable[[Any, Exchange], Any]:
    def spoiled(body: Any, exchange: Exchange) -> Any:
        del exchange
        for entry in _entries(body):
            for one in (entry, *entry.get("top_logprobs", ())):
                if not one["token"].isascii():
                    one["token"] = spell(one["token"])
                    one["bytes"] = [*one["token"].encode()]
        return body

    return spoiled


def _each(change: Callable[[Any, Exchange], Any]) -> Callable[[list[Event], Exchange], list[Event]]:
    def spoiled(events: list[Event], exchange: Exchange) -> list[Event]:
        for event in events:
            change(event.data, exchange)
        return events

    return spoiled


_RAW = _spelt(lambda token: "".join(chr(byte + 256 if byte < 33 else byte) for byte in token.encode()))
add(
    "logprobs.letters-raw",
    "Tokens in other scripts are spelt as the vocabulary holds their bytes.",
    {"json": only((CHAT,), _RAW), "events": only((CHAT,), _each(_RAW))},
    faults=["vllm-project/vllm#19177"],
    catches=["logprobs.letters.own", "logprobs.letters.joined"],
)
_EMPTY = _spelt(lambda _: "")
add(
    "logprobs.letters-empty",
    "Tokens in other scripts are empty.",
    {"json": only((CHAT,), _EMPTY), "events": only((CHAT,), _each(_EMPTY))},
    faults=["vllm-project/vllm#27300"],
    catches=["logprobs.letters.joined"],
)
add(
    "logprobs.letters-torn-stream",
    "In streams, tokens in other scripts are torn characters.",
    {"events": only((CHAT,), _each(_spelt(lambda _: TORN)))},
    catches=["logprobs.letters.streamed"],
)


def _most(asked: dict[str, Any]) -> bool:
    return max(asked.get("top_logprobs") or 0, int(asked.get("logprobs") or 0)) >= 20


refused(
    "logprobs.most-refused",
    "Twenty candidates end in a number that JSON does not have.",
    BOTH,
    400,
    failure("Out of range float values are not JSON compliant: -inf", 400),
    _most,
    faults=["vllm-project/vllm#16540"],
    catches=["logprobs.most", "logprobs.most-completion"],
)


@defect(
    "logprobs.echo-stream-shifted",
    on="events",
    paths=(COMPLETIONS,),
    faults=["vllm-project/vllm#47815"],
    catches=["logprobs.echo.offsets"],
)
def echo_stream_shifted(events: list[Event], exchange: Exchange) -> list[Event]:
    """In an echoed stream, offsets after the first piece lack the prompt's length."""
    asked = exchange.body if isinstance(exchange.body, dict) else {}
    if asked.get("echo") and isinstance(asked.get("prompt"), str):
        held = [found for _, choice in choices(events) if (found := choice.get("logprobs"))]
        for found in held[1:]:
            found["text_offset"] = [at - len(asked["prompt"]) for at in found["text_offset"]]
    return events


def _stale() -> Callable[..., Any]:
    seen: set[str] = set()

    def spoiled(body: Any, exchange: Exchange) -> Any:
        asked = exchange.body if isinstance(exchange.body, dict) else {}
        begin = str(asked.get("prompt") or asked.get("messages"))[:60]
        if asked.get("prompt_logprobs") is not None and isinstance(body, dict):
            if begin in seen:
                for choice in body.get("choices") or ():
                    for row in (choice.get("prompt_logprobs") or [])[1:17]:
                        for entry in (row or {}).values():
                            entry["logprob"] -= 0.7
            seen.add(begin)
        return body

    return spoiled


add(
    "logprobs.prompt-stale",
    "A prompt that was read before has the log probabilities of something else at its beginning.",
    {"json": only((COMPLETIONS,), remembering(_stale)), "ready": live},
    faults=["vllm-project/vllm#42245"],
    catches=["logprobs.prompt.again"],
)


refused(
    "fields.id-breaks",
    "A request that brings its own id breaks the server.",
    (*BOTH, RESPONSES),
    500,
    failure("Duplicate request id"),
    asks("request_id"),
    faults=["vllm-project/vllm#10583"],
    catches=["fields.served", "fields.request-id"],
)
refused(
    "canary.questions-break",
    "A question about an opposite breaks the server.",
    (CHAT,),
    500,
    failure("index is out of bounds"),
    lambda asked: "the opposite of" in str(asked.get("messages")),
    catches=["canary.served"],
)
refused(
    "sizes.choices-break",
    "Sixteen choices break the server.",
    (CHAT,),
    500,
    failure("list index out of range"),
    lambda asked: isinstance(asked.get("n"), int) and asked["n"] >= 16,
    catches=["sizes.served"],
)
refused(
    "reasoning.told-breaks",
    "Reasoning that is sent back breaks the server.",
    (CHAT,),
    500,
    failure("KeyError: reasoning"),
    lambda asked: "'reasoning':" in str(asked.get("messages")),
    catches=["reasoning.served", "reasoning.history.shape"],
)
refused(
    "tools.marked-breaks",
    "A call whose value holds the markup of calls breaks the server.",
    (CHAT,),
    500,
    failure("No JSON object could be decoded"),
    lambda asked: "tool_call>" in str(asked.get("tools")),
    catches=["tools.served"],
)
refused(
    "pairs.script-breaks",
    "Any Thai text breaks the server.",
    (CHAT,),
    500,
    failure("codec can not encode character"),
    lambda asked: "\u0e21\u0e35" in str(asked.get("messages")),
    catches=["pairs.served"],
)


def _unasked(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for choice in body.get("choices") or ():
        choice["logprobs"] = {"content": [{"token": "A", "logprob": -0.1, "bytes": [65], "top_logprobs": []}]}


in_body(
    "chat.logprobs-of-another",
    "A log probability comes with every answer that asked for none.",
    (CHAT,),
    _unasked,
    lambda asked: not asks("logprobs", "prompt_logprobs", "echo")(asked),
    faults=["vllm-project/vllm#27336"],
    catches=["oracle.unasked"],
)


def _thoughtless(body: Any) -> Any:
    if isinstance(body, dict) and isinstance(body.get("output"), list):
        body["output"] = [item for item in body["output"] if item.get("type") != "reasoning"]
    return body


@defect(
    "reasoning.responses-without",
    on="json",
    paths=(RESPONSES,),
    faults=["vllm-project/vllm#43395"],
    catches=["reasoning.response"],
)
def responses_without(body: Any, exchange: Exchange) -> Any:
    """Over Responses reasoning is taken out of the answer and given nowhere."""
    del exchange
    return _thoughtless(body)


@defect(
    "completions.prompt-in-stream",
    on="events",
    paths=(COMPLETIONS,),
    area="streaming",
    faults=["vllm-project/vllm#48853"],
    catches=["stream.prompt-kept-out", "oracle.same.text"],
)
def prompt_in_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    """The first piece of a stream holds the prompt."""
    from pytest_vllm.sim.tokens.tokenizer import load  # noqa: PLC0415 - a vocabulary is read

    asked = exchange.body if isinstance(exchange.body, dict) else {}
    given = asked.get("prompt")
    text = (
        load().decode(given)
        if isinstance(given, list) and all(isinstance(one, int) for one in given)
        else given
    )
    if isinstance(text, str) and not asked.get("echo"):
        for _, choice in [row for row in choices(events) if text_of(row[1])][:1]:
            set_text(choice, f"{text.rstrip(TORN)}{text_of(choice)}")
    return events


@defect(
    "embeddings.long-shifts",
    on="json",
    paths=(EMBEDDINGS,),
    profile="sim-embed",
    faults=["vllm-project/vllm#41049"],
    catches=["embeddings.same-beside-long"],
)
def long_shifts(body: Any, exchange: Exchange) -> Any:
    """In a batch each text after a long one gets the vector of the text before it."""
    given = exchange.body.get("input") if isinstance(exchange.body, dict) else None
    texts = [one for one in given if isinstance(one, str)] if isinstance(given, list) else []
    long = next((at for at, text in enumerate(texts) if len(text) > LONG), len(texts))
    if isinstance(body, dict) and isinstance(body.get("data"), list):
        found = [row["embedding"] for row in body["data"]]
        for at in range(long + 1, len(found)):
            body["data"][at]["embedding"] = found[at - 1]
    return body


@defect(
    "oracle.values-shifted",
    on="json",
    paths=(CHAT,),
    area="oracle",
    faults=["vllm-project/vllm#29216"],
    catches=["oracle.listed.value"],
)
def values_shifted(body: Any, exchange: Exchange) -> Any:
    """Where a schema is asked for, each token has the log probability of the one after it."""
    asked = exchange.body if isinstance(exchange.body, dict) else {}
    found = list(_entries(body)) if asked.get("response_format") else []
    values = [entry["logprob"] for entry in found]
    for entry, value in zip(found, values[1:] + values[:1], strict=True):
        entry["logprob"] = value
    return body


def _runs_on() -> Callable[..., Any]:
    forms: list[int] = []

    def spoiled(events: list[Event], exchange: Exchange) -> list[Event]:
        asked = exchange.body if isinstance(exchange.body, dict) else {}
        if "json_schema" in str(asked.get("response_format")):
            forms.append(1)
            if len(forms) % 30 == 0:
                said = [choice for _, choice in choices(events) if text_of(choice)]
                for choice in said[len(said) // 2 :]:
                    set_text(choice, "    ")
        return events

    return spoiled


add(
    "structured.often-runs-on",
    "Each thirtieth streamed form goes on in white space.",
    {"events": only((CHAT,), remembering(_runs_on)), "ready": live},
    faults=["vllm-project/vllm#55313"],
    catches=["structured.often", "oracle.same.text"],
)


def _end_left(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for choice in body.get("choices") or ():
        said = choice["message"]
        if said.get("reasoning") and said.get("content"):
            said["content"] = f"So I answer now.</think>{said['content']}"


in_body(
    "reasoning.end-left",
    "The words and the tag that end the reasoning stand in the text.",
    (CHAT,),
    _end_left,
    faults=["vllm-project/vllm#39697"],
    catches=["reasoning.budget.tags", "reasoning.tags.content"],
)
