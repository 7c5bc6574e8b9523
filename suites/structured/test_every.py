"""A constraint binds every answer of the run that it was set for, over every route, whole or streamed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recordings, Server, check, listed, observe, only_if

from ..oracle.answers import COMPLETIONS, RESPONSES, Answer, answers  # noqa: TID252 - suites lie together
from .jsontext import schema_fault

if TYPE_CHECKING:
    from ..oracle.apis import Choice  # noqa: TID252 - suites lie together

VLLM = "vllm:features/structured_outputs/"
#: Fields beside which a constraint does not have the last word.
BESIDE = (
    "stop", "stop_token_ids", "ignore_eos", "min_tokens", "logit_bias", "allowed_token_ids", "bad_words",
    "echo", "use_beam_search", "tools", "structural_tag", "suffix", "continue_final_message",
)  # fmt: skip
#: Keywords of JSON Schema that every backend obeys.
PLAIN = {"type", "properties", "required", "enum", "items", "additionalProperties", "title", "description"}


@check("structured.every.kept", MUST, spec=VLLM, needs=["structured-output"], exchanges=["*"])
def test_kept(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """Every answer that came to its end within a constraint keeps it."""
    only_if(vllm_server.at_least("0.11.0"), "constraints had other names before 0.11.0")
    bound = [
        (one, choice, kind, rule)
        for one in answers(vllm_recordings)
        for kind, rule in [constraint(one.path, one.asked)]
        for choice in one.choices
        if kind and _ended(choice) and not _waits(one, vllm_server)
    ]
    only_if(bound, "no answer came to its end within a constraint")
    observe("answers within a constraint", len(bound))
    wrong = [
        f"{one.key}: {fault}" for one, choice, kind, rule in bound if (fault := _broken(kind, rule, choice))
    ]

    assert not wrong, f"{len(wrong)} of {len(bound)}: {listed(wrong)}"


def _waits(one: Answer, server: Server) -> bool:
    """Whether a constraint waits for the end of a reasoning that never began: checks of their own say so."""
    prompt = one.asked.get("prompt")
    begun = all(server.closed in str(text) for text in (prompt if isinstance(prompt, list) else [prompt]))
    return one.path == COMPLETIONS and server.can("reasoning") and not begun


def constraint(path: str, asked: dict[str, Any]) -> tuple[str, Any]:
    """The kind of a constraint, and its rule: words, an expression, a schema; none binds: `""`."""
    if any(asked.get(name) for name in BESIDE):
        return "", None
    own = _table(asked.get("structured_outputs"))
    shape = _table(
        _table(asked.get("text")).get("format") if path == RESPONSES else asked.get("response_format")
    )
    kind = shape.get("type")
    if kind == "json_object" or own.get("json_object"):
        return "json", None
    if kind == "json_schema":
        return "json", shape.get("schema") or _table(shape.get("json_schema")).get("schema")
    given = [(name, own[name]) for name in ("choice", "regex", "json") if own.get(name)]
    return given[0] if len(given) == 1 else ("", None)


def _table(given: Any) -> dict[str, Any]:
    """What was given, where it is a table; requests that are wrong on purpose hold anything."""
    return given if isinstance(given, dict) else {}


def _ended(choice: Choice) -> bool:
    """Whether a text came to its end by itself; what reasoning alone took all tokens says nothing."""
    ended = choice.finish in (("stop",), ("completed",), ("end_turn",))
    return ended and not choice.calls and bool(choice.content.strip())


def _broken(kind: str, rule: Any, choice: Choice) -> str:
    """How a text breaks its constraint; empty where it does not. Blanks around it may be of reasoning."""
    said = choice.content
    readings = (said,) if said == choice.text else (said, said.lstrip(), said.strip())
    text = readings[-1]
    if kind == "choice":
        return "" if any(one in rule for one in readings) else f"{text[:80]!r} is none of {len(rule)} words"
    if kind == "regex":
        fits = any(_matches(rule, one) for one in readings)
        return "" if fits else f"{text[:80]!r} does not match {rule[:40]!r}"
    schema = json.loads(rule) if isinstance(rule, str) else rule
    return schema_fault(text, schema if _plain(schema) else {})


def _matches(rule: str, text: str) -> bool:
    try:
        return re.fullmatch(rule, text, re.DOTALL) is not None
    except re.error:  # written for another engine of expressions
        return True


def _plain(schema: Any) -> bool:
    """Whether a schema holds nothing but keywords that every backend obeys."""
    if not isinstance(schema, dict) or not set(schema) <= PLAIN or not isinstance(schema.get("type"), str):
        return False
    parts = [*(schema.get("properties") or {}).values(), *([schema["items"]] if "items" in schema else [])]
    return isinstance(schema.get("additionalProperties", False), bool) and all(map(_plain, parts))
