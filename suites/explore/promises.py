"""What a request promises itself: choices, limits, stop strings, candidates, constraints, usage, calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Fault, schema_faults

from ..oracle.answers import CHAT, COMPLETIONS, MESSAGES, RESPONSES  # noqa: TID252 - suites lie together
from ..oracle.counting import texts_of  # noqa: TID252 - suites lie together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_vllm import Recording, Server

    from ..oracle.answers import Answer  # noqa: TID252 - suites lie together

    Asked = dict[str, Any]

SHAPES = {
    CHAT: "chat.completion",
    COMPLETIONS: "completion",
    RESPONSES: "response",
    MESSAGES: "message",
}
LIMITS = ("max_tokens", "max_output_tokens")
#: Constraint -> what keeps it.
KEPT = {"json": re.compile('"heron"'), "regex": re.compile("[0-9]{2}"), "choice": re.compile("heron|crane")}


def promised(one: Recording, answer: Answer, server: Server) -> list[Fault]:
    """What an answer holds back of what was asked for."""
    found = [Fault(f"promise.{rule}", f"{one.key}: {said}") for rule, of in RULES for said in of(answer)]
    if not answer.streams:
        shape = schema_faults(SHAPES[answer.path], one.json, server.version)
        found += [Fault("promise.shape", f"{one.key}: {fault}") for fault in shape if fault.level is MUST][:1]
    return found


def _many(answer: Answer) -> int:
    prompts = len(texts_of(answer.asked.get("prompt")) or [""]) if answer.path == COMPLETIONS else 1
    return int(answer.asked.get("n") or 1) * prompts


def _choices(answer: Answer) -> Iterator[str]:
    if len(answer.choices) != _many(answer):
        yield f"{len(answer.choices)} choices of {_many(answer)}"


def _limit(answer: Answer) -> Iterator[str]:
    limit = next((answer.asked[name] for name in LIMITS if name in answer.asked), None)
    if answer.usage is None or limit is None:
        return
    most, least = limit * _many(answer), (answer.asked.get("min_tokens") or 0) * _many(answer)
    if not least <= answer.usage[1] <= most:
        yield f"{answer.usage[1]} tokens, between {least} and {most} were asked for"
    free = not any(answer.asked.get(name) for name in ("stop", "stop_token_ids", "structured_outputs"))
    if answer.asked.get("ignore_eos") and free and answer.usage[1] != most:
        yield f"{answer.usage[1]} tokens, and nothing but the limit of {most} could end it"


def _stops(answer: Answer) -> Iterator[str]:
    asked = answer.asked
    stops = asked.get("stop") or asked.get("stop_sequences") or []
    stops = [stops] if isinstance(stops, str) else stops
    if asked.get("include_stop_str_in_output") or asked.get("min_tokens") or asked.get("tools"):
        return
    for choice in answer.choices:
        held = [stop for stop in stops if stop in choice.text]
        if held:
            yield f"the stop string {held[0]!r} stands in {choice.text[-80:]!r}"


def _candidates(answer: Answer) -> Iterator[str]:
    number = answer.asked.get("top_logprobs")
    if answer.path != CHAT or not number or not answer.asked.get("logprobs"):
        return
    wrong = [tops for choice in answer.choices for _, tops in choice.tokens if len(tops) > number]
    if wrong:
        yield f"{len(wrong[0])} candidates of a token, {number} were asked for"
    if not any(choice.tokens for choice in answer.choices) and answer.text:
        yield "no log probabilities"


def _bound(answer: Answer) -> Iterator[str]:
    for name in answer.asked.get("structured_outputs") or {}:
        for choice in answer.choices:
            if choice.finish == ("stop",) and not KEPT[name].fullmatch(choice.text.strip()):
                yield f"{name} is not kept: {choice.text[:80]!r}"


def _billed(answer: Answer) -> Iterator[str]:
    asked = answer.asked
    wants = not answer.streams or answer.path not in (CHAT, COMPLETIONS) or asked.get("stream_options")
    if wants and answer.usage is None:
        yield "no usage"


def _calls(answer: Answer) -> Iterator[str]:
    names = {(tool.get("function") or tool).get("name") for tool in answer.asked.get("tools") or ()}
    calls = [name for choice in answer.choices for name, _ in choice.calls]
    if calls and answer.asked.get("tool_choice") == "none":
        yield f"{calls[0]!r} was called, and no call was allowed"
    elif calls and not names:
        yield f"{calls[0]!r} was called, and no tool was offered"


RULES: tuple[tuple[str, Callable[[Answer], Iterator[str]]], ...] = (
    ("choices", _choices),
    ("limit", _limit),
    ("stop", _stops),
    ("candidates", _candidates),
    ("constraint", _bound),
    ("usage", _billed),
    ("calls", _calls),
)
