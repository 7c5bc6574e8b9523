"""Faults of public reports that show only where a request meets their condition: read with the tokens."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import asked, deltas, messages, turns, whole_calls
from pytest_vllm.sim.defects.choose import failure, refused
from pytest_vllm.sim.defects.edit import choices, set_text, text_of
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MESSAGES, RESPONSES, only

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange, Reply
    from pytest_vllm.sim.generation import Output

Json = dict[str, Any]
STORED = "VLLM_ENABLE_RESPONSES_API_STORE=1"
#: What this process's server remembers of instructions, by the id of the response; one server per process.
_instructions: dict[str, Any] = {}


@defect(
    "completions.stop-last-of-two",
    on="output",
    faults=["vllm-project/vllm#46113"],
    catches=["completions.stop.twice"],
)
def stop_last_of_two(output: Output, body: Json) -> Output:
    """A token that holds the stop string several times is cut at the last of them."""
    from pytest_vllm.sim.tokens.tokenizer import load  # noqa: PLC0415 - a vocabulary is read

    stop = output.stop_reason
    if isinstance(stop, str) and not body.get("include_stop_str_in_output"):
        token = load().decode(output.ids[-1:])
        output.pieces[-1] += token[: token.rindex(stop)] if token.count(stop) > 1 else ""
    return output


@defect(
    "completions.stop-token-shown",
    on="output",
    faults=["vllm-project/vllm#55483"],
    catches=["completions.stop.token-hidden"],
)
def stop_token_shown(output: Output, body: Json) -> Output:
    """The text of a stop token that was asked for by its id stays in the answer."""
    from pytest_vllm.sim.tokens.tokenizer import load  # noqa: PLC0415 - a vocabulary is read

    if output.stop_reason in (body.get("stop_token_ids") or ()):
        output.pieces[-1] += load().decode(output.ids[-1:])
    return output


def _flags(node: Any) -> Any:
    if isinstance(node, bool):
        return str(node).lower()
    return {key: _flags(value) for key, value in node.items()} if isinstance(node, dict) else node


@defect(
    "tools.flags-become-text",
    on="json",
    paths=(CHAT,),
    faults=["vllm-project/vllm#41122"],
    catches=["oracle.calls.written"],
)
def flags_become_text(body: Any, exchange: Exchange) -> Any:
    """True and false in a call of the model's own accord come as texts."""
    free = asked(exchange, "tool_choice") in (None, "auto")
    for call in whole_calls(body) if free else ():
        arguments = json.loads(call["function"]["arguments"])
        call["function"]["arguments"] = json.dumps(_flags(arguments), ensure_ascii=False)
    return body


@defect(
    "oracle.blanks-grow",
    on="json",
    paths=(CHAT,),
    faults=["vllm-project/vllm#28804"],
    catches=["oracle.text.written"],
)
def blanks_grow(body: Any, exchange: Exchange) -> Any:
    """An answer begins with a blank for each call that was made before."""
    calls = sum(1 for turn in turns(exchange.body) if turn.get("tool_calls"))
    for _, message in messages(body) if calls > 1 else ():
        message["content"] = message.get("content") and " " * calls + message["content"]
    return body


@defect(
    "completions.bad-words-ignored",
    on="body",
    paths=(COMPLETIONS,),
    faults=["vllm-project/vllm#31908"],
    catches=["completions.bad-words"],
)
def bad_words_ignored(body: Any, path: str) -> Any:
    """Bad words bind another request of the batch."""
    del path
    return {**body, "bad_words": []} if isinstance(body, dict) and body.get("bad_words") else body


@defect(
    "messages.thinking-begins-as-text",
    on="events",
    paths=(MESSAGES,),
    faults=["vllm-project/vllm#50594"],
    catches=["messages.stream.thinking"],
)
def thinking_begins_as_text(events: list[Event], exchange: Exchange) -> list[Event]:
    """Streamed over Messages, reasoning is text between its marks."""
    del exchange
    for event in events:
        data = event.data if isinstance(event.data, dict) else {}
        if (data.get("content_block") or {}).get("type") == "thinking":
            data["content_block"] = {"type": "text", "text": ""}
        if (data.get("delta") or {}).get("type") == "thinking_delta":
            data["delta"] = {"type": "text_delta", "text": data["delta"]["thinking"]}
    return [event for event in events if "signature_delta" not in str(event.data)]


@defect(
    "reasoning.leaks-after-result",
    on="events",
    paths=(CHAT,),
    faults=["vllm-project/vllm#39885"],
    catches=["reasoning.after-result"],
)
def leaks_after_result(events: list[Event], exchange: Exchange) -> list[Event]:
    """After a tool's result the reasoning of a stream comes as text."""
    if any(turn.get("role") == "tool" for turn in turns(exchange.body)):
        for _, _, delta in deltas(events):
            if delta.get("reasoning"):
                delta["content"] = delta.pop("reasoning")
    return events


@defect(
    "ranking.limit-shrinks",
    on="json",
    paths=("/rerank",),
    profile="sim-rerank",
    faults=["Tencent/WeKnora#2160"],
    catches=["ranking.unlimited"],
)
def limit_shrinks(body: Any, exchange: Exchange) -> Any:
    """With a limit for tokens every relevance is near zero."""
    for row in (body.get("results") or ()) if asked(exchange, "truncate_prompt_tokens") else ():
        row["relevance_score"] /= 100
    return body


def _remembered(body: Any, exchange: Exchange) -> Any:
    if isinstance(body, dict) and body.get("id"):
        _instructions[body["id"]] = asked(exchange, "instructions")
    return body


def _carried(body: Any, path: str) -> Any:
    old = _instructions.get(body.get("previous_response_id") or "") if isinstance(body, dict) else None
    return {**body, "instructions": old} if old and path == RESPONSES else body


@defect(
    "responses.none-ignored",
    on="body",
    paths=(RESPONSES,),
    faults=["vllm-project/vllm#33966"],
    catches=["responses.call.none"],
)
def none_ignored(body: Any, path: str) -> Any:
    """The tool choice none does not keep the model from a call."""
    del path
    forbidden = isinstance(body, dict) and body.get("tool_choice") == "none"
    return {**body, "tool_choice": "auto"} if forbidden else body


add(
    "responses.instructions-carried",
    "Instructions of the response before stay in the prompt.",
    {"json": only((RESPONSES,), _remembered), "body": _carried},
    faults=["vllm-project/vllm#37697"],
    environ=[STORED],
    catches=["responses.state.instructions"],
)


@defect("answers.gzipped", on="reply", paths=(CHAT,), area="health", catches=["answers.plain"])
def gzipped(reply: Reply, exchange: Exchange) -> Reply:
    """Whole answers of a chat are compressed, though nobody takes that."""
    del exchange
    reply.body = gzip.compress(reply.body, mtime=0)
    reply.headers = [*reply.headers, ("content-encoding", "gzip")]
    return reply


@defect(
    "streaming.stop-holds-back",
    on="events",
    paths=(COMPLETIONS,),
    faults=["vllm-project/vllm#8468"],
    catches=["stream.stop.unmatched"],
)
def stop_holds_back(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream with a stop string that never came lacks the last letters of its text."""
    longest = max(map(len, asked(exchange, "stop") or [""]))
    spoken = [choice for _, choice in choices(events) if text_of(choice)]
    came = any(choice.get("stop_reason") for _, choice in choices(events))
    if longest > len("".join(map(text_of, spoken))) and not came:
        set_text(spoken[-1], "")
    return events


@defect(
    "tools.first-words-lost",
    on="events",
    paths=(CHAT,),
    faults=["vllm-project/vllm#30866"],
    catches=["tools.unused.begin"],
)
def first_words_lost(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream that offers tools and calls none lacks its first piece of text."""
    said = [delta for _, _, delta in deltas(events) if delta.get("content")]
    free = asked(exchange, "tools") and asked(exchange, "tool_choice") in (None, "auto")
    if free and said and not any(delta.get("tool_calls") for _, _, delta in deltas(events)):
        said[0]["content"] = None
    return events


refused(
    "logprobs.echo-ids-break",
    "An echo with log probabilities and ids ends in a server error.",
    (COMPLETIONS,),
    500,
    failure("4226"),
    lambda given: given.get("echo") and given.get("logprobs") is not None and given.get("return_token_ids"),
    faults=["vllm-project/vllm#44106"],
    catches=["logprobs.answered"],
)


@defect(
    "transcription.duration-in-words",
    on="json",
    paths=("/v1/audio",),
    profile="sim-transcribe",
    faults=["vllm-project/vllm#49068"],
    catches=["transcription.times.number"],
)
def duration_in_words(body: Any, exchange: Exchange) -> Any:
    """The duration of a recording is a text."""
    del exchange
    if isinstance(body, dict) and "duration" in body:
        body["duration"] = str(body["duration"])
    return body


@defect(
    "completions.bad-words-first", on="body", paths=(COMPLETIONS,), catches=["completions.bad-words.each"]
)
def bad_words_first(body: Any, path: str) -> Any:
    """Of several bad words the first alone is kept from being drawn."""
    del path
    words = body.get("bad_words") if isinstance(body, dict) else None
    return {**body, "bad_words": words[:1]} if words else body
