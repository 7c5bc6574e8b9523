"""What a response reports of its request and of itself, whole and at the end of a stream."""

from __future__ import annotations

from typing import Any

from pytest_vllm import MUST, Recording, Recordings, Server, check, listed, need, only_if, schema_faults

from .items import (
    CALLS_FROM,
    STREAMS_FROM,
    applies,
    events,
    final,
    finished,
    items,
    joined,
    kind,
    streams,
    wholes,
    words,
)

OBJECT = "openai:responses/object"
SPEC = "openai:responses-streaming"
NEEDS = ("responses", "stream")
CALLS = (*NEEDS, "tools", "tools.required")
AREA = ("responses.",)

#: Settings that a response repeats as they were asked for.
SETTINGS = ("temperature", "top_p", "max_output_tokens", "parallel_tool_calls", "tool_choice")
#: What two answers to one request need not share.
#: With `--enable-per-request-metrics` each tells its own times.
OF_ITS_OWN = ("id", "created_at", "completed_at", "output", "usage", "metadata", "metrics")
PARTS = {"output_text": "text", "reasoning_text": "text"}


@check("responses.told.settings", MUST, spec=OBJECT, needs=["responses"], exchanges=AREA)
def test_settings(vllm_recordings: Recordings) -> None:
    """A response repeats the settings that its request gave."""
    answers = [(one.key, one.request.json, one.ok) for one in wholes(vllm_recordings)]
    given = [
        (key, name, asked[name], told.get(name))
        for key, asked, told in answers
        for name in SETTINGS
        if isinstance(asked.get(name), int | float | str)
    ]
    need(given, "no request gave a setting")
    wrong = [f"{key}: {name} {asked!r} became {told!r}" for key, name, asked, told in given if asked != told]

    assert not wrong, listed(wrong)


@check("responses.told.tools", MUST, spec=OBJECT, needs=["responses"], exchanges=AREA)
def test_tools(vllm_recordings: Recordings) -> None:
    """A response repeats the tools that its request offered."""
    valid = [one for one in vllm_recordings.of("responses.") if one.request.expect == 200]
    asked = [one for one in valid if isinstance(one.request.json, dict)]
    only_if(any(one.request.json.get("tools") for one in asked), "no request with tools fits the context")
    answers = [one for one in wholes(vllm_recordings) if one.request.json.get("tools")]
    need(answers, "no answered request offered tools")
    pairs = [(one.key, _tools(one.request.json), _tools(one.ok)) for one in answers]
    wrong = [f"{key}: offered {asked}, reported {told}"[:300] for key, asked, told in pairs if asked != told]

    assert not wrong, listed(wrong)


@check("responses.stream.schema", MUST, spec=OBJECT, needs=NEEDS, exchanges=AREA)
def test_stream_schema(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """The response that ends a stream has the fields and types of a whole one."""
    applies(vllm_server, STREAMS_FROM, "streams responses")
    found = {one.key: final(one) for one in streams(vllm_recordings)}
    need(any(found.values()), "no stream ended with a response")
    wrong = [
        f"{key}: {fault}"
        for key, response in found.items()
        for fault in schema_faults("response", response, vllm_server.version)
        if response and fault.level is MUST
    ]

    assert not wrong, listed(wrong)


@check("responses.stream.same-settings", MUST, spec=SPEC, needs=NEEDS)
def test_same_settings(vllm_server: Server, responses_again: Recording, responses_stream: Recording) -> None:
    """The response that ends a stream reports the settings that a whole one reports."""
    applies(vllm_server, STREAMS_FROM, "streams responses")
    need(final(responses_stream), "the stream ended without a response")
    whole, streamed = responses_again.ok, final(responses_stream)
    names = [name for name in sorted({*whole, *streamed}) if name not in OF_ITS_OWN]
    wrong = [
        f"{name}: streamed {streamed.get(name)!r}, whole {whole.get(name)!r}"
        for name in names
        if streamed.get(name) != whole.get(name)
    ]

    assert not wrong, listed(wrong)


@check("responses.stream.same-items", MUST, spec=SPEC, needs=NEEDS)
def test_same_items(vllm_server: Server, responses_again: Recording, responses_stream: Recording) -> None:
    """The items that a stream ends with are built like those of a whole response."""
    applies(vllm_server, STREAMS_FROM, "streams responses")
    need(final(responses_stream), "the stream ended without a response")
    need(words(final(responses_stream)) == words(responses_again.ok), "the two answers say different things")
    streamed, whole = _built(items(final(responses_stream))), _built(items(responses_again.ok))
    for one, other in zip(streamed, whole, strict=False):
        if one.get("type") == "reasoning" and None in (one.get("status"), other.get("status")):
            one["status"] = other["status"] = None  # a whole response need not say that its reasoning is over

    assert streamed == whole, f"streamed {streamed}, whole {whole}"


@check("responses.stream.items-close", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_items_close(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """An item is closed as the response at the end of its stream holds it."""
    applies(vllm_server, STREAMS_FROM, "streams responses")
    pairs = [
        (one.key, item, items(final(one))[index])
        for one in streams(vllm_recordings)
        for index, item in finished(one).items()
        if 0 <= index < len(items(final(one)))
    ]
    need(pairs, "no stream closed an item")
    wrong = [
        f"{key}: {name} {closed.get(name)!r:.60} became {last.get(name)!r:.60}"
        for key, closed, last in pairs
        for name in sorted({*closed, *last} - {"id", "status"})  # other checks compare those
        if (closed.get(name) or None) != (last.get(name) or None)  # an empty list says as much as null
    ]

    assert not wrong, listed(wrong)


@check("responses.stream.parts-close", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_parts_close(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """A part that is closed holds its type and all the text that came for it."""
    applies(vllm_server, STREAMS_FROM, "streams responses")
    closed = [
        (one, event)
        for one in streams(vllm_recordings)
        for event in events(one)
        if kind(event) == "response.content_part.done"
    ]
    cut = all(final(one).get("status") == "incomplete" for one in streams(vllm_recordings) if final(one))
    only_if(closed or not cut, "the context is too short: every stream was cut before a part was closed")
    need(closed, "no stream closed a part")
    wrong = [f"{one.key}: {fault}" for one, event in closed if (fault := _part_fault(one, event))]

    assert not wrong, listed(wrong)


@check("responses.stream.call-named", MUST, spec=SPEC, needs=CALLS, exchanges=AREA)
def test_call_named(
    vllm_server: Server, vllm_recordings: Recordings, responses_call_stream: Recording
) -> None:
    """The event that completes a call's arguments names the function of an item."""
    del responses_call_stream  # the one that makes a call for certain: no room for it, no judgement
    applies(vllm_server, CALLS_FROM, "makes items of tool calls")
    ends = [
        (one, event)
        for one in streams(vllm_recordings)
        for event in events(one)
        if kind(event) == "response.function_call_arguments.done" and "name" in event
    ]
    need(ends, "no stream completed a named call")
    called = [(one.key, event["name"], [item.get("name") for item in _calls(one)]) for one, event in ends]
    wrong = [f"{key}: {name!r}, the items call {known}" for key, name, known in called if name not in known]

    assert not wrong, listed(wrong)


def _calls(stream: Recording) -> list[dict[str, Any]]:
    return items(final(stream), "function_call")


def _tools(body: dict[str, Any]) -> list[tuple[Any, Any, Any]]:
    tools = body.get("tools")
    rows = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return [(tool.get("type"), tool.get("name"), tool.get("parameters")) for tool in rows]


def _built(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Items without what differs between two answers: ids, and texts that other checks compare."""
    return [
        {
            name: [[*sorted(part), part.get("type")] for part in value if isinstance(part, dict)]
            if name == "content" and isinstance(value, list)
            else value
            for name, value in row.items()
            if name not in ("id", "call_id")
        }
        for row in rows
    ]


def _part_fault(stream: Recording, event: dict[str, Any]) -> str:
    part, index = event.get("part"), event.get("output_index")
    if not isinstance(part, dict) or part.get("type") not in PARTS:
        return f"a closed part is {part!r}"[:160]
    if not isinstance(event.get("content_index"), int) or event["content_index"] < 0:
        return f"a part stands at content_index {event.get('content_index')!r}"
    told, came = part.get(PARTS[part["type"]]), joined(stream, index) if isinstance(index, int) else None
    return "" if told == came else f"the closed part says {told!r:.80}, its pieces {came!r:.80}"
