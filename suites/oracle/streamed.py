"""What was only ever asked for in one piece: the requests that ask for it once more, as a stream.

A field counts where its effect shows, and a stream of it where the same was asked in one piece, too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .answers import CHAT, COMPLETIONS, MESSAGES, ODD, RESPONSES, answer_of
from .likeness import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_vllm import Recording, Server

    from .answers import Answer

Asked = dict[str, Any]


def _given(name: str) -> Callable[[Asked], bool]:
    return lambda asked: bool(asked.get(name))


def _few(name: str) -> Callable[[Asked], bool]:
    """Whether a field steers between the few tokens that are left, so that its effect cannot be missed."""
    return lambda asked: bool(asked.get(name)) and 0 < len(asked.get("allowed_token_ids") or ()) <= FEW


def _off(name: str) -> Callable[[Asked], bool]:
    return lambda asked: asked.get(name) is False


def _drawn(name: str) -> Callable[[Asked], bool]:
    """Whether a field leaves nothing to draw although the temperature would."""
    return lambda asked: (
        bool(asked.get("temperature")) and not asked.get("echo") and BEST[name](asked.get(name))
    )


#: What leaves the likeliest token alone to be drawn.
BEST: dict[str, Callable[[Any], bool]] = {
    "top_k": lambda value: bool(value == 1),
    "top_p": lambda value: isinstance(value, int | float) and 0 < value <= 1e-5,
    "min_p": lambda value: bool(value == 1),
}
FEW = 2
#: Field -> whether its effect shows in the answer to a request, in the text, the ids or the tokens billed.
SHOWS: dict[str, Callable[[Asked], bool]] = {
    **{name: _drawn(name) for name in BEST},
    **{
        name: _few(name)
        for name in (
            "allowed_token_ids", "bad_words", "logit_bias", "frequency_penalty", "presence_penalty",
            "repetition_penalty", "min_tokens", "stop_token_ids", "repetition_detection",
        )
    },
    **{
        name: _given(name)
        for name in (
            "chat_template", "chat_template_kwargs", "continue_final_message", "documents", "echo",
            "instructions", "output_config", "reasoning", "reasoning_effort",
            "response_format", "structured_outputs", "system", "text", "thinking_token_budget", "tool_choice",
        )
    },
    **{
        name: _off(name)
        for name in (
            "add_generation_prompt", "add_special_tokens", "include_reasoning", "parallel_tool_calls",
            "skip_special_tokens",
        )
    },
    "truncate_prompt_tokens": lambda asked: (asked.get("truncate_prompt_tokens") or 0) > 0,
}  # fmt: skip
#: What vLLM answers in one piece alone, or keeps for later requests.
WHOLE = ("use_beam_search", "prompt_logprobs", "background", "kv_transfer_params", "previous_response_id")
#: Fields of which one value asks for another thing than the next.
KINDS = ("tool_choice", "response_format", "structured_outputs", "chat_template_kwargs", "text")
#: Over these routes tools are streamed with events of their own, which have their own checks.
ITEMS = (RESPONSES, MESSAGES)
#: What is made for a crowd: a canary's prompts are its own, and a mixed crowd's fields may change nothing.
OTHERS = ("canary.", "crowd.")
#: Tokens at most of an answer and of a prompt that is asked for again, and requests at most.
TOKENS, PROMPT, MOST = 48, 600, 40
CANDIDATES = 5


def twins(server: Server, recorded: Sequence[Recording]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Route and body of a stream for each field that is set on its route in whole answers alone.

    The cheapest request that sets most of them goes first. A stream lists its candidates where the server
    can, so that a near-tie is known for what it is, and its ids.
    """
    said = [answer for one in recorded if (answer := answer_of(one))]
    whole = sorted((one for one in said if _repeatable(one)), key=_cost)
    asked = {_spelt(one) for one in said if not one.streams}
    streamed = {trait for one in said if one.streams and _spelt(one) in asked for trait in traits(one)}
    shown = [(one, traits(one)) for one in whole]
    missing = {trait for _, found in shown for trait in found} - streamed
    for _ in range(MOST if shown else 0):
        best, found = max(shown, key=lambda row: len(missing & row[1]))
        if not missing & found:
            return
        missing -= found
        yield best.path, {**best.asked, **_told(server, best)}


def traits(one: Answer) -> set[tuple[str, str, str]]:
    """Route, field and kind of all whose effect shows in an answer, and what its conversation holds."""
    asked: Asked = plain(one.asked) | {"temperature": one.asked.get("temperature")}
    asked |= {name: one.asked[name] for name in BEST if name in one.asked}
    return {
        (one.path, name, kind)
        for name, shows in SHOWS.items()
        if shows(asked)
        for kind in (_kinds(asked[name]) if name in KINDS else [""])
    } | {(one.path, "messages", kind) for kind in _talks(asked.get("messages"))}


def _talks(turns: Any) -> set[str]:
    """What a conversation holds beside one question in words."""
    if not isinstance(turns, list):
        return set()
    words = {str(turn.get("role")) for turn in turns if not isinstance(turn.get("content"), list)} - {"user"}
    return words | ({"parts"} if any(isinstance(turn.get("content"), list) for turn in turns) else set())


def _spelt(one: Answer) -> str:
    return json.dumps([one.path, plain(one.asked)], sort_keys=True)


def _kinds(value: Any) -> list[str]:
    if not isinstance(value, dict):
        return [str(value)]
    return [str(value["type"])] if isinstance(value.get("type"), str) else [*map(str, value)]


def _repeatable(one: Answer) -> bool:
    """Whether a whole answer is one that may be asked for again: a short one, to a usual request."""
    asked = one.asked
    short = one.usage is not None and one.usage[1] <= TOKENS and one.usage[0] <= PROMPT
    items = one.path in ITEMS and bool(asked.get("tools"))
    # where a template takes contents in parts, vLLM ends a stream that echoes (vllm-project/vllm#48338)
    items |= one.path == CHAT and bool(asked.get("echo"))
    hollow = any(asked.get(name) for name in WHOLE) or 0 in (asked.get("max_tokens"), asked.get("n"))
    return short and not one.streams and not items and not hollow and not one.key.startswith((*ODD, *OTHERS))


def _cost(one: Answer) -> tuple[bool, int, str]:
    """Greedy requests first: of those it is known what they say."""
    return one.asked.get("temperature") != 0, one.usage[0] + one.usage[1] if one.usage else 0, one.key


def _told(server: Server, one: Answer) -> dict[str, Any]:
    """What makes a stream of it, and makes that tell more than its text."""
    more: dict[str, Any] = {"stream": True}
    if one.path not in (CHAT, COMPLETIONS):
        return more
    more["stream_options"] = {"include_usage": True}
    if server.can("logprobs") and not (one.asked.get("tools") or one.asked.get("echo")):
        chats = one.path == CHAT
        asked = {"logprobs": True, "top_logprobs": CANDIDATES} if chats else {"logprobs": CANDIDATES}
        more |= {} if one.asked.get("logprob_token_ids") else asked
    # with the ids of an echoed prompt vLLM leaves its text away
    return more if one.asked.get("echo") else more | server.taken(one.path, return_token_ids=True)
