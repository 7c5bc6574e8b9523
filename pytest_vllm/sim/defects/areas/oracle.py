"""Defects that no request was made for: they sit in some answers of a run, wherever those are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import asks, constrained, failure, in_body, in_choices
from pytest_vllm.sim.defects.edit import choices, set_text, text_of
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MESSAGES, RESPONSES, live, only, remembering

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange, Reply

BOTH = (CHAT, COMPLETIONS)
#: How the question begins that the suite asks over and over.
AGAIN = "Repeat these words"


def _billed(body: dict[str, Any], prompt: int = 0, answer: int = 0, total: int = 0) -> None:
    usage = body.get("usage")
    if usage:
        usage["prompt_tokens"] += prompt
        usage["completion_tokens"] += answer
        usage["total_tokens"] += prompt + answer + total


def _prompt(body: dict[str, Any], asked: dict[str, Any]) -> None:
    if len(asked.get("tools") or ()) == 1:
        _billed(body, prompt=1)


def _response_total(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    if body.get("usage"):
        body["usage"]["total_tokens"] += 1


def _odd_length(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    ends = {choice["finish_reason"] for choice in body["choices"]}
    if ends == {"length"} and body["usage"]["completion_tokens"] % 7 == 6:
        _billed(body, answer=-1)


def _one_more(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    _billed(body, answer=1)


def _free(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    _billed(body, answer=-body["usage"]["completion_tokens"])


in_body(
    "oracle.thinking-tools",
    "A prompt with one tool and options of the template is billed a token too many.",
    (CHAT,),
    _prompt,
    asks("chat_template_kwargs"),
    catches=["oracle.prompt.counted"],
)
in_body(
    "oracle.response-total",
    "The total of a response is one more than its parts.",
    (RESPONSES,),
    _response_total,
    area="responses",
    catches=["oracle.tokens.total"],
)
in_body(
    "oracle.seventh-token",
    "An answer of 6, 13, 20 tokens that its limit ended is billed one less.",
    BOTH,
    _odd_length,
    area="usage",
    catches=["oracle.tokens.length"],
)
in_body(
    "oracle.listed-more",
    "Answers with log probabilities that may not end are billed a token that they do not list.",
    BOTH,
    _one_more,
    lambda asked: asks("logprobs")(asked) and asks("ignore_eos")(asked),
    area="usage",
    catches=["oracle.tokens.listed"],
)
in_body(
    "oracle.seeded-free",
    "Answers to requests with a seed are billed nothing.",
    BOTH,
    _free,
    asks("seed"),
    area="usage",
    catches=["oracle.tokens.said"],
)


def _tail(events: list[Event], name: str, value: Any, begin: int = 20) -> list[Event]:
    for event in events[begin:]:
        if isinstance(event.data, dict) and name in event.data:
            event.data[name] = value
    return events


@defect("oracle.id-changes", on="events", paths=BOTH, catches=["oracle.events.one-id"])
def id_changes(events: list[Event], exchange: Exchange) -> list[Event]:
    """From its twentieth event on a stream with tools has another id."""
    tools = isinstance(exchange.body, dict) and exchange.body.get("tools")
    return _tail(events, "id", "chatcmpl-of-another-answer") if tools else events


def _earlier_id() -> Callable[..., Any]:
    seen: list[str] = []

    def given(body: Any, exchange: Exchange) -> Any:
        del exchange
        if isinstance(body, dict) and body.get("id"):
            seen.append(body["id"])
            if len(seen) % 60 == 0:
                body["id"] = seen[-2]
        return body

    return given


add(
    "oracle.id-twice",
    "Each sixtieth whole answer has the id of the one before it.",
    {"json": only((*BOTH, RESPONSES, MESSAGES), remembering(_earlier_id)), "ready": live},
    catches=["oracle.events.own-id"],
)


@defect(
    "oracle.item-ids",
    on="events",
    paths=(RESPONSES,),
    faults=["NEW-013"],
    catches=["oracle.events.item-ids"],
)
def item_ids(events: list[Event], exchange: Exchange) -> list[Event]:
    """Items have other ids in the last event of a response's stream than when they ended."""
    del exchange
    for event in events:
        response = event.data.get("response") if isinstance(event.data, dict) else None
        for item in (response or {}).get("output") or ():
            item["id"] = f"{item['id'][:4]}{item['id'][:3:-1]}"
    return events


def _other_model(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    body["model"] = "sim-model-of-yesterday"


in_body(
    "oracle.other-model",
    "An answer with several choices names another model.",
    BOTH,
    _other_model,
    asks("n"),
    catches=["oracle.events.model"],
)


def _old_reason(body: dict[str, Any], asked: dict[str, Any]) -> None:
    if asked.get("system"):
        body["stop_reason"] = "stop"


in_body(
    "oracle.old-reason",
    "Over Messages an answer under a system prompt ends with OpenAI's reason.",
    (MESSAGES,),
    _old_reason,
    area="messages",
    catches=["oracle.finish.known"],
)


def _call_lost(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    if len(asked.get("tools") or ()) > 1 and choice.get("finish_reason") == "tool_calls":
        choice["message"]["tool_calls"] = []


in_choices(
    "oracle.call-lost",
    "Of several tools one is called, and the answer holds no call.",
    (CHAT,),
    _call_lost,
    area="tools",
    catches=["oracle.finish.calls"],
)


def _letter(text: str) -> str:
    place = len(text) // 2
    return f"{text[:place]}{'x' if text[place] != 'x' else 'y'}{text[place + 1 :]}"


def _rarely(number: int) -> Callable[[], Callable[..., Any]]:
    """Each such chat answer, whole or streamed, has one letter of its text changed."""

    def make() -> Callable[..., Any]:
        asked: list[int] = []

        def wrong(output: Any, body: dict[str, Any]) -> Any:
            if body.get("messages") and not constrained(body) and not body.get("tools"):
                asked.append(1)
                places = [at for at, piece in enumerate(output.pieces) if piece.strip()]
                if len(asked) % number == 0 and places:
                    output.pieces[places[-1]] = _letter(output.pieces[places[-1]])
            return output

        return wrong

    return make


add(
    "oracle.one-in-fifty",
    "One of fifty chat answers has a letter wrong.",
    {"output": remembering(_rarely(50))},
    catches=["oracle.repeated.chat", "oracle.repeated.often"],
)


def _unanswered() -> Callable[..., Any]:
    seen: list[int] = []

    def refusing(reply: Reply, exchange: Exchange) -> Reply:
        if AGAIN in json.dumps(exchange.body):
            seen.append(1)
            if len(seen) % 50 == 0:
                reply.status, reply.body = 503, failure("Service Unavailable", 503)
        return reply

    return refusing


add(
    "oracle.one-in-fifty-refused",
    "Each fiftieth time a question is asked whole, the answer is a 503.",
    {"reply": only((CHAT,), remembering(_unanswered)), "ready": live},
    catches=["oracle.repeated.answered"],
)


@defect("oracle.thirteenth-lane", on="json", paths=(COMPLETIONS,), catches=["oracle.repeated.batch"])
def thirteenth_lane(body: Any, exchange: Exchange) -> Any:
    """The thirteenth answer of a batch ends in another word."""
    del exchange
    for choice in body.get("choices") or ():
        if choice["index"] == 12:
            set_text(choice, f"{text_of(choice)[:-3]}ity")
    return body


@defect(
    "oracle.late-piece-lost",
    on="events",
    paths=BOTH,
    faults=["NEW-062"],
    catches=["oracle.same.text", "spelling.streamed.scripts"],
)
def late_piece_lost(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream with log probabilities loses the text of its fifth event."""
    if not (isinstance(exchange.body, dict) and exchange.body.get("logprobs")):
        return events
    spoken = [(event, choice) for event, choice in choices(events) if text_of(choice)]
    for _, choice in spoken[4:5]:
        set_text(choice, "")
    return events


@defect(
    "oracle.streams-cost-more",
    on="events",
    paths=BOTH,
    area="usage",
    catches=["oracle.same.prompt", "oracle.prompt.each-counted"],
)
def streams_cost_more(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream is billed a token of the prompt more than the whole answer."""
    del exchange
    for event in events:
        if isinstance(event.data, dict):
            _billed(event.data, prompt=1)
    return events


@defect("oracle.streams-stop", on="events", paths=BOTH, area="streaming", catches=["oracle.same.end"])
def streams_stop(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream that its limit ended says that the model did."""
    del exchange
    for _, choice in choices(events):
        if choice.get("finish_reason") == "length":
            choice["finish_reason"] = "stop"
    return events


def _exchanged() -> Callable[..., Any]:
    """Each fortieth answer to a question of its own kind is the one before it."""
    seen: list[str] = []

    def mixed(body: Any, exchange: Exchange) -> Any:
        asked = exchange.body if isinstance(exchange.body, dict) else {}
        if isinstance(body, dict) and body.get("choices") and not asks("tools", "logprobs", "n")(asked):
            choice, text = body["choices"][0], text_of(body["choices"][0])
            if seen and AGAIN in json.dumps(asked):
                if len(seen) % 3 == 0:
                    set_text(choice, seen[-1])
                seen.append(seen[-1])
            elif len(text) > 40 and asked.get("temperature") == 0:
                seen.append(text)
        return body

    return mixed


add(
    "oracle.mixed-up",
    "Some answers are those to the request before.",
    {"json": only((CHAT,), remembering(_exchanged)), "ready": live},
    catches=["oracle.same.mixed-up"],
)


def _neighbours() -> Callable[..., Any]:
    codes: list[str] = []

    def leaking(body: Any, exchange: Exchange) -> Any:
        asked = json.dumps(exchange.body)
        if isinstance(body, dict) and body.get("choices"):
            if "Repeat this code" in asked:
                codes.append(asked.partition('\\"')[2].partition('\\"')[0])
            elif codes and AGAIN in asked:
                set_text(body["choices"][0], f"{text_of(body['choices'][0])} {codes[-1]}")
        return body

    return leaking


add(
    "oracle.code-of-another",
    "An answer ends in the code that another request was given.",
    {"json": only((CHAT,), remembering(_neighbours)), "ready": live},
    catches=["oracle.text.foreign"],
)


def _marked(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    if asked.get("max_tokens") == 16:
        set_text(choice, f"{text_of(choice)}<|im_end|>")


in_choices(
    "oracle.mark-left",
    "A completion of 16 tokens ends in a special token.",
    (COMPLETIONS,),
    _marked,
    catches=["oracle.text.special-tokens"],
)


def _torn(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    text = text_of(choice)
    set_text(choice, f"{text[:3]}\ufffd{text[4:]}" if len(text) > 5 else text)


in_choices(
    "oracle.torn",
    "A character of a constrained answer with log probabilities, and of a longer one without, is torn.",
    (CHAT,),
    _torn,
    lambda asked: (constrained(asked) and asks("logprobs")(asked)) or (asked.get("max_tokens") or 0) == 64,
    catches=["oracle.text.constrained-characters", "oracle.text.characters", "logprobs.letters.joined"],
)
