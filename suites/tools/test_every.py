"""What holds for the calls of one answer holds for all calls of a run, over every route."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recordings, Server, check, listed, observe, only_if

from ..oracle.answers import CHAT, MESSAGES, RESPONSES, answer_of, answers  # noqa: TID252 - suites lie together
from ..oracle.apis import response_objects  # noqa: TID252 - suites lie together
from ..oracle.numbering import EDGES, THREE, misnumbered  # noqa: TID252 - suites lie together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording

    from ..oracle.answers import Answer  # noqa: TID252 - suites lie together

SPEC = "openai:chat/object#choices-message-tool_calls"
#: Types of tools that the caller runs, over Responses; any other is the server's own, with its own names.
OWN = ("function", "custom", None)


@check("tools.every.ids", MUST, spec=SPEC, exchanges=["*"])
def test_ids(vllm_recordings: Recordings) -> None:
    """Every call has an id, and no two calls of an answer share one."""
    plain = [one for one in vllm_recordings.of("") if _is_plain(one.key)]
    told = [(one.key, ids) for one in plain for ids in _ids(one) if ids]
    only_if(told, "no answer of this run held a call")
    observe("answers with several calls", sum(len(ids) > 1 for _, ids in told))
    wrong = [f"{key}: {ids}" for key, ids in told if len(set(ids)) < len(ids) or not all(ids)]

    assert not wrong, listed(wrong)


@check("tools.every.numbered", MUST, spec="openai:chat-streaming", needs=["stream"], exchanges=THREE)
def test_numbered(vllm_recordings: Recordings) -> None:
    """The calls of every chat stream are numbered from 0 on, each number for one."""
    wrong = misnumbered(vllm_recordings, CHAT)

    assert not wrong, wrong


@check("tools.every.offered", MUST, spec=SPEC, exchanges=["*"])
def test_offered(vllm_recordings: Recordings) -> None:
    """Nothing is called that a forced choice leaves out, nothing where none may be."""
    called = [
        (one, name)
        for one in answers(vllm_recordings)
        for choice in one.choices
        for name, _ in choice.calls
        if _closed(one) and _is_plain(one.key)
    ]
    only_if(called, "no answer of this run held a call")
    wrong = [f"{one.key}: {fault}" for one, name in called if (fault := _unasked(one, name))]

    assert not wrong, listed(wrong)


@check("tools.every.arguments", MUST, spec="fault:vllm-project/vllm/issues/16880", exchanges=["*"])
def test_arguments(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """A forced call that came to its end has an object of arguments, on any route.

    From vLLM 0.31 on a parser's structural tag leaves the arguments of a function free that is not strict:
    what JSON the model writes there is its own.
    """
    called = [
        (one, arguments)
        for one in answers(vllm_recordings)
        if forced(one.asked.get("tool_choice")) and _is_plain(one.key)
        for choice in one.choices
        if choice.finish and choice.finish[-1] not in ("length", "max_tokens", "max_output_tokens")
        for _, arguments in choice.calls
    ]
    only_if(called, "no forced call came to its end")
    free = vllm_server.at_least("0.31.0") and vllm_server.can("tools")
    wrong = [
        f"{one.key}: {arguments[:80]!r}"
        for one, arguments in called
        if not (_json(arguments) if free and not _strict(one.asked) else _object(arguments))
    ]

    assert not wrong, f"{len(wrong)} of {len(called)}: {listed(wrong)}"


def _is_plain(key: str) -> bool:
    """Whether an answer is no test of a parser's edges: those have checks, and waivers, of their own."""
    return not key.startswith(EDGES)


def forced(choice: Any) -> bool:
    """Whether a request leaves no choice but to call."""
    kind = choice.get("type") if isinstance(choice, dict) else choice
    return kind in ("required", "function", "any", "tool")


def _ids(one: Recording) -> Iterator[list[str]]:
    """The ids of the calls of an answer, choice by choice."""
    path = one.request.path.partition("?")[0]
    if path not in (CHAT, RESPONSES, MESSAGES) or not answer_of(one):
        return
    if path == CHAT:
        yield from _of_chat(one).values()
    elif path == MESSAGES:
        blocks = [block for part in one.bodies for block in _blocks(part)]
        yield [block.get("id") or "" for block in blocks if block.get("type") == "tool_use"]
    else:
        output = response_objects(one.bodies, one.request.streams)[-1].get("output") or ()
        yield [item.get("call_id") or "" for item in output if item["type"] == "function_call"]


def _of_chat(one: Recording) -> dict[int, list[str]]:
    """The ids of each choice's calls, by its index; empty ones where there are none."""
    found: dict[int, list[str]] = {}
    pieces: dict[tuple[int, int], list[str]] = {}
    for body in one.bodies:
        for choice in body["choices"]:
            calls = (choice.get("delta") or choice.get("message") or {}).get("tool_calls") or ()
            for place, call in enumerate(calls):
                at = call.get("index", place) if one.request.streams else place
                pieces.setdefault((choice["index"], at), []).append(call.get("id") or "")
    for (index, _), ids in sorted(pieces.items()):
        found.setdefault(index, []).extend(_once([id_ for id_ in ids if id_]) or [""])
    return found


def _once(ids: list[str]) -> list[str]:
    """Ids of a stream, where pieces of one call may name it again and again."""
    return [id_ for at, id_ in enumerate(ids) if at == 0 or id_ != ids[at - 1]]


def _blocks(part: dict[str, Any]) -> list[dict[str, Any]]:
    return part["content"] if isinstance(part.get("content"), list) else [part.get("content_block") or {}]


def _closed(one: Answer) -> bool:
    """Whether a request says all that may be called."""
    return all(isinstance(tool, dict) and tool.get("type") in OWN for tool in one.asked.get("tools") or ())


def _unasked(one: Answer, name: str) -> str:
    names = {(tool.get("function") or tool).get("name") for tool in one.asked.get("tools") or ()}
    choice = one.asked.get("tool_choice")
    if choice == "none" or (isinstance(choice, dict) and choice.get("type") == "none"):
        return f"{name!r} was called, and no call was allowed"
    only = (
        (choice.get("function") or choice).get("name")
        if forced(choice) and isinstance(choice, dict)
        else None
    )
    if only and name != only:
        return f"{name!r} was called, {only!r} was demanded"
    return "" if name in names or not forced(choice) else f"{name!r} was called, and was not offered"


def _object(arguments: str) -> bool:
    return _json(arguments) and isinstance(json.loads(arguments), dict)


def _json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _strict(asked: dict[str, Any]) -> bool:
    """Whether any function of a request is to be called by its schema."""
    tools = [tool for tool in asked.get("tools") or () if isinstance(tool, dict)]
    return any(tool.get("strict") or (tool.get("function") or {}).get("strict") for tool in tools)
