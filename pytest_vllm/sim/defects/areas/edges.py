"""Defects of what is taken for nothing: zero, null, blanks at the end, a turn that was begun."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import turns
from pytest_vllm.sim.defects.choose import asks, in_choices
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MESSAGES, RESPONSES, only

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

Json = dict[str, Any]
#: Letters of a call's arguments that are short.
LONG = 200
PENALTIES = ("presence_penalty", "frequency_penalty")


def _reads(name: str, summary: str, paths: tuple[str, ...], change: Any, *catches: str) -> None:
    """Requests of some routes are read otherwise."""

    def read(body: Any, path: str) -> Any:
        del path
        if isinstance(body, dict):
            change(body)
        return body

    add(name, summary, {"body": only(paths, read)}, catches=[*catches])


def _trimmed(body: Json) -> None:
    if isinstance(body.get("prompt"), str):
        body["prompt"] = body["prompt"].strip() or body["prompt"]


def _words_trimmed(body: Json) -> None:
    given = body.get("input") if isinstance(body.get("input"), list) else body.get("messages")
    for turn in given or ():
        if isinstance(turn, dict) and isinstance(turn.get("content"), str):
            turn["content"] = turn["content"].rstrip() or turn["content"]


def _ends_with_user(body: Json) -> None:
    said = turns(body)
    if len(said) > 1 and said[-1].get("role") == "assistant":
        body["messages"] = said[:-1]


def _without_nulls(body: Json) -> None:
    for turn in turns(body):
        for block in turn["content"] if isinstance(turn.get("content"), list) else ():
            if isinstance(block, dict) and isinstance(block.get("input"), dict):
                block["input"] = {name: value for name, value in block["input"].items() if value is not None}


def _first_part(body: Json) -> None:
    for turn in turns(body):
        if turn.get("role") == "system" and isinstance(turn.get("content"), list):
            turn["content"] = turn["content"][:1]


_reads("edges.prompt-trimmed", "Blanks around a prompt are lost.", (COMPLETIONS,), _trimmed, "edges.text")
for _path in (CHAT, RESPONSES, MESSAGES):
    _reads(
        f"edges.{_path.split('/')[2]}-trimmed",
        f"Blanks at the end of a message are lost on {_path}.",
        (_path,),
        _words_trimmed,
        "edges.words",
    )
_reads(
    "edges.begun-dropped",
    "An answer that was begun is dropped from a conversation.",
    (MESSAGES,),
    _ends_with_user,
    "edges.last-turn",
)
_reads(
    "edges.nulls-dropped",
    "Values that are null are dropped from earlier calls.",
    (MESSAGES,),
    _without_nulls,
    "edges.values",
)
_reads(
    "edges.system-in-part",
    "Of a system message in parts the first one is read.",
    (CHAT,),
    _first_part,
    "edges.parts",
)


def _filtered(field: str) -> Any:
    def change(body: Json) -> None:
        given = body.get(field)
        if isinstance(given, list) and 0 in given and all(isinstance(one, int) for one in given):
            body[field] = [one for one in given if one] or None
        if isinstance(given, dict):
            body[field] = {name: value for name, value in given.items() if int(name)}

    return change


def _one_zero(body: Json) -> None:
    given = body.get("prompt")
    if isinstance(given, list) and given and not any(given):
        body["prompt"] = given[:1]


def _no_seed(body: Json) -> None:
    body["seed"] = body.get("seed") or None


def _absolute(body: Json) -> None:
    for name in PENALTIES:
        body[name] = abs(body.get(name) or 0)
    if (body.get("repetition_penalty") or 1) < 1:
        body["repetition_penalty"] = 1 / body["repetition_penalty"]


def _turned(body: Json) -> None:
    for name in PENALTIES:
        body[name] = -(body.get(name) or 0)


_reads("edges.zeros-once", "Of a prompt of zeros one is read.", (COMPLETIONS,), _one_zero, "edges.zero.token")
_reads(
    "edges.zero-allowed-lost",
    "The token zero is allowed to nobody.",
    (COMPLETIONS,),
    _filtered("allowed_token_ids"),
    "edges.zero.token",
)
_reads(
    "edges.zero-bias-lost",
    "A bias for the token zero is lost.",
    (COMPLETIONS,),
    _filtered("logit_bias"),
    "edges.zero.biased",
)
_reads(
    "edges.zero-stops-nothing",
    "The token zero ends no answer.",
    (CHAT, COMPLETIONS),
    _filtered("stop_token_ids"),
    "edges.zero.stops",
)
_reads("edges.seed-zero", "The seed zero is taken for none.", (CHAT,), _no_seed, "edges.zero.seed")
_reads(
    "edges.seed-zero-completions",
    "The seed zero is taken for none in completions.",
    (COMPLETIONS,),
    _no_seed,
    "edges.zero.seed-crowd",
)
_reads("edges.no-reward", "A penalty has no sign.", (COMPLETIONS,), _absolute, "edges.reward")
_reads("edges.penalty-turned", "Over chat a penalty is a reward.", (CHAT,), _turned, "edges.penalty.chat")


def _no_reason(choice: Json, asked: Json) -> None:
    del asked
    choice["stop_reason"] = choice.get("stop_reason") or None


in_choices(
    "edges.zero-not-named",
    "An answer that the token zero ended does not name it.",
    (CHAT,),
    _no_reason,
    asks("stop_token_ids"),
    catches=["edges.zero.stops"],
)


def _short(events: list[Event], exchange: Exchange) -> list[Event]:
    """What is left of a stream that loses pieces of arguments behind the first few."""
    del exchange
    kept, size = [], 0
    for event in events:
        data = event.data if isinstance(event.data, dict) else {}
        delta = data.get("delta")
        if isinstance(delta, dict) and delta.get("type") == "input_json_delta":
            size += len(delta.get("partial_json") or "")
        if size > LONG and isinstance(delta, dict) and delta.get("type") == "input_json_delta":
            continue
        kept.append(event)
    return kept


add(
    "edges.long-call-cut",
    "Of a call's arguments the first two hundred letters are streamed.",
    {"events": only((MESSAGES,), _short)},
    catches=["edges.long-call"],
)


def _favours(body: Json) -> None:
    if isinstance(body.get("logit_bias"), dict):
        body["logit_bias"] = {name: bias for name, bias in body["logit_bias"].items() if bias > 0}


def _no_bad_words(body: Json) -> None:
    body.pop("bad_words", None)


_reads(
    "edges.chat-bias-against-lost",
    "Over chat a bias against a token is lost.",
    (CHAT,),
    _favours,
    "edges.chat.biased",
)
_reads(
    "edges.chat-bad-words-lost", "Over chat bad words are lost.", (CHAT,), _no_bad_words, "edges.chat.barred"
)


def _no_top_k(body: Json) -> None:
    body.pop("top_k", None)


def _seed_of_one(body: Json) -> None:
    if (body.get("n") or 1) > 1:
        body.pop("seed", None)


for _path in (RESPONSES, MESSAGES):
    _reads(
        f"edges.top-k-lost-{_path.rpartition('/')[2]}",
        f"`top_k` is ignored on {_path}.",
        (_path,),
        _no_top_k,
        "edges.narrowed",
    )
_reads(
    "edges.seed-of-one",
    "Of several choices none is drawn with the seed.",
    (COMPLETIONS,),
    _seed_of_one,
    "edges.seeded-two",
)
