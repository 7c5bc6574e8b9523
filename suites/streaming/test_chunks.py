"""The chunks of a stream: their shape, their identity, the order of role, text and finish."""

import json
from functools import cache

from pytest_vllm import (
    INFO,
    MUST,
    SHOULD,
    Recording,
    Recordings,
    Server,
    check,
    listed,
    need,
    only_if,
    schema_faults,
)

from .chunks import choices, chunks, finishes, indices, joined, piece, readable

CHAT = "openai:chat-streaming"
COMPLETION = "openai:completions/object"
AREA = ("streaming.",)
A_DAY = 86_400
NEEDS = ("stream",)
REASONS = ("stop", "length", "tool_calls", "function_call", "content_filter")


@cache
def graded(schema: str, chunk: str, version: str) -> list[tuple[object, str]]:
    """The faults of one chunk with their levels; three checks ask for them."""
    return [(fault.level, str(fault)) for fault in schema_faults(schema, json.loads(chunk), version)]


def faults(recordings: Recordings, level: object, version: str) -> list[str]:
    """What is wrong with the shape of chunks, each fault once."""
    found: dict[str, str] = {}
    for stream in readable(recordings):
        schema = "chat.completion.chunk" if "/chat/" in stream.request.path else "completion.chunk"
        for chunk in chunks(stream):
            for grade, fault in graded(schema, json.dumps(chunk), version):
                if grade is level:
                    found.setdefault(f"{schema} {fault}", stream.key)
    return [f"{fault} ({key})" for fault, key in found.items()]


@check("stream.chunk.schema", MUST, spec=CHAT, needs=NEEDS, exchanges=AREA)
def test_schema(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Every chunk has the fields and types that clients rely on."""
    need(any(map(chunks, readable(vllm_recordings))), "no stream held a readable chunk")
    wrong = faults(vllm_recordings, MUST, vllm_server.version)

    assert not wrong, listed(wrong)


@check("stream.chunk.schema-fully", SHOULD, spec=CHAT, needs=NEEDS, exchanges=AREA)
def test_schema_fully(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Every chunk has the fields that OpenAI always sends."""
    need(any(map(chunks, readable(vllm_recordings))), "no stream held a readable chunk")
    wrong = faults(vllm_recordings, SHOULD, vllm_server.version)

    assert not wrong, listed(wrong)


@check("stream.chunk.known-fields", INFO, spec=CHAT, needs=NEEDS, exchanges=AREA)
def test_known_fields(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """No chunk has a field that neither OpenAI nor this vLLM version is known to send."""
    need(any(map(chunks, readable(vllm_recordings))), "no stream held a readable chunk")
    wrong = faults(vllm_recordings, INFO, vllm_server.version)

    assert not wrong, listed(wrong)


def differing(recordings: Recordings, field: str) -> list[str]:
    """Streams whose chunks do not agree on a field."""
    values = {r.key: {str(chunk.get(field)) for chunk in chunks(r)} for r in readable(recordings)}
    need(any(values.values()), "no stream held a readable chunk")
    return [f"{key}: {sorted(found)[:3]}" for key, found in values.items() if len(found) > 1]


@check("stream.chunk.one-id", MUST, spec=CHAT, needs=NEEDS, exchanges=AREA)
def test_one_id(vllm_recordings: Recordings) -> None:
    """All chunks of a stream carry the same `id`."""
    wrong = differing(vllm_recordings, "id")

    assert not wrong, listed(wrong)


@check("stream.chunk.one-created", MUST, spec=CHAT, needs=NEEDS, exchanges=AREA)
def test_one_created(vllm_recordings: Recordings) -> None:
    """All chunks of a stream carry the same `created`."""
    wrong = differing(vllm_recordings, "created")

    assert not wrong, listed(wrong)


@check("stream.chunk.dated", MUST, spec=CHAT, needs=NEEDS, exchanges=AREA)
def test_dated(vllm_recordings: Recordings) -> None:
    """`created` is the time of the request, in seconds since 1970, a day more or less."""
    told = [(r, chunk.get("created")) for r in readable(vllm_recordings) for chunk in chunks(r)[:1]]
    found = [(r, date) for r, date in told if isinstance(date, int)]
    need(found, "no chunk was dated")
    wrong = [f"{r.key}: {date}, asked at {r.sent:.0f}" for r, date in found if abs(date - r.sent) >= A_DAY]

    assert not wrong, listed(wrong)


@check("stream.chunk.model", MUST, spec=CHAT, needs=NEEDS, exchanges=AREA)
def test_model(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Every chunk names the model that was asked for, or another name of it."""
    named = [(r.key, chunk.get("model")) for r in readable(vllm_recordings) for chunk in chunks(r)]
    need(named, "no stream held a readable chunk")
    names = {vllm_server.model, *vllm_server.models}
    wrong = dict.fromkeys(f"{key}: {model!r}" for key, model in named if model not in names)

    assert not wrong, f"asked for {vllm_server.model!r}; {listed(wrong)}"


@check("stream.choices.indices", MUST, spec=CHAT, needs=NEEDS)
def test_indices(streaming_two: Recording, streaming_batch: Recording) -> None:
    """Two choices, or two prompts, stream under the indices 0 and 1."""
    found = {"n=2": indices(streaming_two), "two prompts": indices(streaming_batch)}
    need(any(found.values()), "the streams held no choice")
    wrong = [f"{asked}: {got}" for asked, got in found.items() if got and got != [0, 1]]

    assert not wrong, listed(wrong)


@check("stream.choices.all-speak", MUST, spec=CHAT, needs=NEEDS)
def test_all_speak(streaming_two: Recording, streaming_batch: Recording) -> None:
    """Every choice of a stream has text of its own."""
    both = [(r, index) for r in (streaming_two, streaming_batch) for index in indices(r)]
    need(both, "the streams held no choice")
    mute = [f"{r.key} choice {index}" for r, index in both if not joined(r, index)]

    assert not mute, f"no text in {listed(mute)}"


def spoken(recordings: Recordings) -> list[tuple[Recording, int]]:
    """Every choice of every readable stream."""
    found = [(r, index) for r in readable(recordings) for index in indices(r)]
    need(found, "no stream held a choice")
    return found


@check("stream.role.first", MUST, spec=CHAT, needs=("stream", "chat"), exchanges=AREA)
def test_role_first(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """The first delta says that the assistant speaks, or whom the operator named."""
    chats = [(r, index) for r, index in spoken(vllm_recordings) if "/chat/" in r.request.path]
    need(chats, "no chat stream held a choice")
    firsts = [(r, index, choices(r, index)[0].get("delta", {}).get("role")) for r, index in chats]
    right = vllm_server.role or firsts[0][2] or "assistant"
    wrong = [f"{r.key} choice {index}: {role!r}" for r, index, role in firsts if role != right]

    assert not wrong, f"role of the first delta: {listed(wrong)}"


@check(
    "stream.role.once",
    MUST,
    spec="fault:BerriAI/litellm/issues/9986",
    needs=("stream", "chat"),
    exchanges=AREA,
)
def test_role_once(vllm_recordings: Recordings) -> None:
    """No later delta repeats the role: clients join them."""
    chats = [(r, index) for r, index in spoken(vllm_recordings) if "/chat/" in r.request.path]
    need(chats, "no chat stream held a choice")
    later = [(r, index, choices(r, index)[1:]) for r, index in chats]
    wrong = [f"{r.key} choice {i}" for r, i, rest in later if any(c["delta"].get("role") for c in rest)]

    assert not wrong, f"the role came again in {listed(wrong)}"


@check("stream.finish.once", MUST, spec="fault:sgl-project/sglang/issues/8417", needs=NEEDS, exchanges=AREA)
def test_finish_once(vllm_recordings: Recordings) -> None:
    """Each choice of a stream finishes exactly once."""
    ends = [(r, index, finishes(r, index)) for r, index in spoken(vllm_recordings)]
    wrong = [f"{r.key} choice {index}: {reasons}" for r, index, reasons in ends if len(reasons) != 1]

    assert not wrong, f"finish reasons of {listed(wrong)}"


@check("stream.finish.last", MUST, spec=CHAT, needs=NEEDS, exchanges=AREA)
def test_finish_last(vllm_recordings: Recordings) -> None:
    """The finish reason comes in the last chunk of its choice."""
    both = [(r, index, choices(r, index)) for r, index in spoken(vllm_recordings)]
    ended = [(r, i, said) for r, i, said in both if any(choice.get("finish_reason") for choice in said)]
    need(ended, "no choice finished")
    wrong = [f"{r.key} choice {index}" for r, index, said in ended if not said[-1].get("finish_reason")]

    assert not wrong, f"chunks follow the finish of {listed(wrong)}"


@check("stream.finish.key", MUST, spec=CHAT, needs=NEEDS, exchanges=AREA)
def test_finish_key(vllm_recordings: Recordings) -> None:
    """Every chunk's choice has the key `finish_reason`, null until the last."""
    both = [(r, choice) for r, index in spoken(vllm_recordings) for choice in choices(r, index)]
    wrong = dict.fromkeys(r.key for r, choice in both if "finish_reason" not in choice)

    assert not wrong, f"no finish_reason in chunks of {listed(wrong)}"


@check("stream.finish.known", MUST, spec="fault:sgl-project/sglang/issues/3912", needs=NEEDS, exchanges=AREA)
def test_finish_known(vllm_recordings: Recordings) -> None:
    """A finish reason is null or one of OpenAI's."""
    both = [(r, choice) for r, index in spoken(vllm_recordings) for choice in choices(r, index)]
    reasons = [(r, choice["finish_reason"]) for r, choice in both if choice.get("finish_reason") is not None]
    wrong = dict.fromkeys(f"{r.key}: {reason!r}" for r, reason in reasons if reason not in REASONS)

    assert not wrong, listed(wrong)


@check("stream.finish.length", MUST, spec=CHAT, needs=NEEDS)
def test_finish_length(streaming_completion: Recording, streaming_one_token: Recording) -> None:
    """A stream that reaches `max_tokens` finishes with `length`."""
    ends = {r.key: finishes(r) for r in (streaming_completion, streaming_one_token)}
    need(any(ends.values()), "no choice finished")
    wrong = [f"{key}: {reasons}" for key, reasons in ends.items() if reasons and set(reasons) != {"length"}]

    assert not wrong, listed(wrong)


@check(
    "stream.no-empty-tool-calls", MUST, spec="fault:BerriAI/litellm/issues/29286", needs=NEEDS, exchanges=AREA
)
def test_no_empty_tool_calls(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """No delta carries an empty list of tool calls: clients expect calls then."""
    only_if(vllm_server.at_least("0.24.0"), "before 0.24 vLLM sends empty lists of tool calls")
    both = [(r, choice) for r, index in spoken(vllm_recordings) for choice in choices(r, index)]
    wrong = dict.fromkeys(r.key for r, choice in both if choice.get("delta", {}).get("tool_calls") == [])

    assert not wrong, f"tool_calls: [] in {listed(wrong)}"


@check("stream.no-empty-flood", SHOULD, spec="fault:vllm-project/vllm/issues/13087", needs=NEEDS)
def test_no_empty_flood(streaming_completion: Recording) -> None:
    """Of the chunks between the first and the last, most carry text."""
    between = choices(streaming_completion)[1:-1]
    need(joined(streaming_completion).isascii(), "the text has characters of several tokens")
    need(len(between) > 2, f"only {len(between)} chunks between the first and the last")
    empty = sum(not piece(choice) for choice in between)

    assert empty * 2 < len(between), f"{empty} of {len(between)} chunks are empty"
