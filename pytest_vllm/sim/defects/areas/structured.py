"""Defects of structured output: constraints that do not hold, or hold too well."""

from __future__ import annotations

import json
from typing import Any

from pytest_vllm.sim.defects.choose import asks, constrained, failure, in_bytes, in_choices, refused, shaped
from pytest_vllm.sim.defects.edit import set_text, text_of
from pytest_vllm.sim.defects.make import ignores
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, RESPONSES

HERE = (CHAT,)
BOTH = (CHAT, COMPLETIONS)
VALID = ["structured.schema.valid"]
#: Faults whose mechanism shows as a schema that was not applied at all.
NOT_APPLIED = ["STRUCT-007", "STRUCT-010", "STRUCT-011", "STRUCT-012", "STRUCT-029"]

ignores(
    "structured.format-ignored",
    "`response_format` is ignored: free text, HTTP 200.",
    ["response_format"],
    HERE,
    faults=NOT_APPLIED,
    catches=VALID,
)
ignores(
    "structured.wishes-ignored",
    "vLLM's own constraints are ignored over chat: free text, HTTP 200.",
    ["structured_outputs"],
    HERE,
    faults=["STRUCT-010", "STRUCT-011"],
    catches=["structured.wish.matches"],
)
ignores(
    "structured.responses-free",
    "Over Responses the schema is not applied.",
    ["text"],
    (RESPONSES,),
    faults=["STRUCT-004"],
    catches=["structured.responses.valid", "responses.format.schema"],
)


def _texts(change: Any) -> Any:
    def changed(choice: dict[str, Any], asked: dict[str, Any]) -> None:
        del asked
        text = text_of(choice)
        if text and choice["finish_reason"] == "stop":
            set_text(choice, change(text))

    return changed


def _cut_short(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    set_text(choice, text_of(choice)[: max(8, len(text_of(choice)) // 3)])
    choice["finish_reason"] = "stop"


def _free(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    set_text(choice, "The answer is that nobody knows.")


def _repeated(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    set_text(choice, text_of(choice) * 12)
    choice["finish_reason"] = "length"


def _white_space(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    text = text_of(choice)
    if text:
        set_text(choice, text[0] + "\n" * 400)
        choice["finish_reason"] = "length"


def _in_thoughts(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    message = choice["message"]
    message["reasoning"], message["content"] = message.get("content"), None


def _thoughtless(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    choice["message"].pop("reasoning", None)
    choice["message"].pop("reasoning_content", None)


def _key_missing(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    try:
        value = json.loads(text_of(choice))
    except ValueError:
        return
    if isinstance(value, dict) and value:
        set_text(choice, json.dumps(dict(list(value.items())[:-1]), ensure_ascii=False))


def _second_free(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    if choice["index"]:
        set_text(choice, "Here is one more.")


def _stops_anyway(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    choice["finish_reason"] = "stop"


def _runs(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    choice["finish_reason"] = "length"


def _untagged(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    set_text(choice, text_of(choice).replace("<answer>", ""))


def _neighbour(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    wanted = asked["structured_outputs"].get("regex", "")
    if wanted[:1].isdigit():
        set_text(choice, f"{wanted[0]}{(int(wanted[0]) + 1) % 10}-abab-{wanted[0]}")


def _tagged(asked: dict[str, Any]) -> bool:
    return (asked.get("response_format") or {}).get("type") == "structural_tag"


def _several(asked: dict[str, Any]) -> bool:
    return shaped(asked) and (asked.get("n") or 1) > 1


def _object(asked: dict[str, Any]) -> bool:
    return (asked.get("response_format") or {}).get("type") == "json_object"


for _name, _summary, _change, _faults in (
    ("fenced", "JSON comes in a Markdown fence.", lambda t: f"```json\n{t}\n```", ["STRUCT-017"]),
    (
        "preamble",
        "JSON comes behind a friendly sentence.",
        lambda t: f"Sure! Here is it: {t}",
        ["STRUCT-029"],
    ),
    (
        "doubled-brace",
        "The first brace comes twice.",
        lambda t: t[0] + t,
        ["STRUCT-015", "STRUCT-016"],
    ),
    (
        "doubled-tokens",
        "Every quotation mark comes twice.",
        lambda t: t.replace('"', '""'),
        ["STRUCT-028"],
    ),
    ("trailing-comma", "A comma too many before the last brace.", lambda t: f"{t[:-1]},{t[-1]}", []),
    ("broken-brackets", "Brackets do not match.", lambda t: f"{t[:-1]}]" + t[-1], ["STRUCT-004"]),
):
    in_choices(f"structured.{_name}", _summary, BOTH, _texts(_change), shaped, faults=_faults, catches=VALID)
in_choices(
    "structured.completions-free",
    "Over completions no constraint holds.",
    (COMPLETIONS,),
    _free,
    constrained,
    faults=["STRUCT-006"],
    catches=["structured.completions.valid", "structured.wish.matches-completion"],
)
in_choices(
    "structured.cut-short",
    "Drafted tokens end the grammar: a third of the JSON, finish reason stop.",
    BOTH,
    _cut_short,
    shaped,
    faults=["STRUCT-021", "STRUCT-031"],
    catches=VALID,
)
in_choices(
    "structured.repeats",
    "The JSON comes again and again up to the limit.",
    BOTH,
    _repeated,
    shaped,
    faults=["STRUCT-005"],
    catches=VALID,
)
in_choices(
    "structured.white-space",
    "Behind the first brace comes white space without end.",
    BOTH,
    _white_space,
    shaped,
    faults=["STRUCT-020", "STRUCT-026"],
    catches=["structured.schema.ends", "structured.schema.whitespace"],
)
in_choices(
    "structured.in-thoughts",
    "The JSON is delivered as reasoning, the content is null.",
    HERE,
    _in_thoughts,
    shaped,
    faults=["STRUCT-003"],
    catches=["structured.thinking.valid"],
)
in_choices(
    "structured.thoughtless",
    "A schema takes the model's thoughts away.",
    HERE,
    _thoughtless,
    shaped,
    faults=["STRUCT-002"],
    catches=["structured.thinking.kept"],
)
in_choices(
    "structured.key-missing", "The last required key is missing.", BOTH, _key_missing, shaped, catches=VALID
)
in_choices(
    "structured.second-free",
    "Only the first of several choices is constrained.",
    HERE,
    _second_free,
    _several,
    catches=["structured.schema.choices"],
)
in_choices(
    "structured.cut-unsaid",
    "A cut answer ends with `stop`.",
    HERE,
    _stops_anyway,
    lambda asked: shaped(asked) and asked.get("max_tokens") == 4,
    catches=["structured.schema.truncated"],
)
in_choices(
    "structured.wish-unending",
    "A constraint that is fulfilled does not end the answer.",
    (COMPLETIONS,),
    _runs,
    asks("structured_outputs"),
    catches=["structured.wish.ends"],
)
in_choices(
    "structured.tag-lost",
    "The tag before the content is missing.",
    HERE,
    _untagged,
    _tagged,
    catches=["structured.tag"],
)
in_choices(
    "structured.neighbour",
    "Requests are bound by each other's constraints.",
    HERE,
    _neighbour,
    asks("structured_outputs"),
    catches=["structured.lanes"],
)
in_choices(
    "structured.object-free",
    "`json_object` is no constraint.",
    HERE,
    _texts(lambda text: f"Here you are: {text}"),
    _object,
    faults=["STRUCT-029"],
    catches=["structured.object"],
)
in_bytes(
    "structured.infinite",
    "Masked tokens have a log probability of minus infinity.",
    HERE,
    lambda body: (
        body.replace(b'"logprob":-', b'"logprob":-Infinity,"was":-', 1) if b"AA-00" in body else body
    ),
    catches=["structured.json"],
)
refused(
    "structured.grammar-crashes",
    "A schema ends in a server error.",
    BOTH,
    500,
    failure("Failed to advance FSM for request"),
    constrained,
    faults=["STRUCT-019", "SPEC-001"],
    catches=["structured.answered"],
)
refused(
    "structured.responses-crash",
    "A schema over Responses ends in a server error.",
    (RESPONSES,),
    500,
    failure("Failed to advance FSM for request"),
    asks("text"),
    area="responses",
    catches=["structured.responses.answered"],
)
refused(
    "structured.tag-crashes",
    "The back end knows no structural tags: KeyError.",
    HERE,
    500,
    failure("'triggers'"),
    _tagged,
    faults=["STRUCT-027"],
    catches=["structured.awkward"],
)
refused(
    "structured.awkward-crashes",
    "Rare keywords of JSON Schema end in a server error.",
    HERE,
    500,
    failure("Unimplemented keys"),
    lambda asked: (
        shaped(asked) and any(word in str(asked["response_format"]) for word in ("multipleOf", "'not'"))
    ),
    catches=["structured.schema.keyword-survived"],
)
refused(
    "structured.legacy-crashes",
    "A `guided_` field, or a grammar, is a server error.",
    HERE,
    500,
    failure("unexpected keyword argument"),
    lambda asked: any(name.startswith("guided_") for name in asked) or "root ::=" in str(asked),
    catches=["structured.legacy.known", "structured.answered"],
)


@defect("structured.first-wish-wins", on="body", paths=HERE, catches=["structured.refused"])
def first_wish_wins(body: Any, path: str) -> Any:
    """Of two constraints at once one is dropped without a word."""
    del path
    wishes = body.get("structured_outputs") if isinstance(body, dict) else None
    if isinstance(wishes, dict) and len(wishes) > 1:
        kind = next(iter(wishes))
        return {**body, "structured_outputs": {kind: wishes[kind]}}
    return body


@defect("structured.stream-loses-braces", on="events", paths=HERE, catches=["structured.stream.valid"])
def stream_loses_braces(events: Any, exchange: Any) -> Any:
    """Streamed JSON has lost its braces."""
    kwargs = (exchange.body or {}).get("chat_template_kwargs") or {}
    if shaped(exchange.body or {}) and kwargs.get("enable_thinking") is False:
        for event in events:
            for choice in event.data.get("choices", ()) if isinstance(event.data, dict) else ():
                set_text(choice, text_of(choice).replace("{", ""))
    return events


refused(
    "structured.awkward-kills",
    "After a constraint that is hard to compile the server answers no more.",
    (COMPLETIONS,),
    500,
    failure("EngineCore encountered an issue."),
    lambda asked: asked.get("prompt") == "Still there?",
    catches=["structured.awkward.alive"],
)


def _last_lane(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    prompts = asked.get("prompt")
    if isinstance(prompts, list) and choice["index"] == len(prompts) - 1:
        set_text(choice, "I would rather say nothing.")


in_choices(
    "structured.last-lane-free",
    "Of several constrained prompts in one request the last is not constrained.",
    (COMPLETIONS,),
    _last_lane,
    constrained,
    catches=["structured.crowd"],
)
