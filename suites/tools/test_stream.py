"""How a stream delivers calls, piece by piece."""

from pytest_vllm import MUST, SHOULD, Case, Recording, Recordings, check, listed, need

from .answers import call_pieces, errors
from .gathered import ended, streams
from .judgements import first_deltas, index_faults, later_deltas

SPEC = "openai:chat-streaming"
FORCED, AUTO = "tools.forced.", "tools.auto."
NEEDS = ("tools.required", "stream")
AREA = (FORCED,)
FEW = 3


@check("tools.stream.unbroken", MUST, spec="fault:vllm-project/vllm/issues/9048", needs=NEEDS, exchanges=AREA)
def test_unbroken(vllm_recordings: Recordings) -> None:
    """No stream of a forced call carries an error."""
    told = [one for one in vllm_recordings.of(FORCED) if one.request.streams and one.status == 200]
    need(told, "no stream was answered")
    wrong = [f"{one.key}: {fault}" for one in told for fault in errors(one)]

    assert not wrong, listed(wrong)


@check("tools.stream.auto-unbroken", MUST, spec=SPEC, needs=("tools", "stream"), exchanges=(AUTO,))
def test_auto_unbroken(vllm_recordings: Recordings) -> None:
    """No stream of an offered tool carries an error."""
    told = [one for one in vllm_recordings.of(AUTO) if one.request.streams and one.status == 200]
    need(told, "no stream was answered")
    wrong = [f"{one.key}: {fault}" for one in told for fault in errors(one)]

    assert not wrong, listed(wrong)


@check(
    "tools.stream.first-id", MUST, spec="fault:vllm-project/vllm/issues/18412", needs=NEEDS, exchanges=AREA
)
def test_first_id(vllm_recordings: Recordings) -> None:
    """The first delta of a call carries its id."""
    told = streams(vllm_recordings, FORCED)
    wrong = [
        f"{one.key}: {first.get('id')!r}"
        for one, _ in told
        for first in first_deltas(one)
        if not first.get("id")
    ]

    assert not wrong, listed(wrong)


@check("tools.stream.first-type", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_first_type(vllm_recordings: Recordings) -> None:
    """The first delta of a call carries the type `function`."""
    told = streams(vllm_recordings, FORCED)
    wrong = [
        f"{one.key}: {first.get('type')!r}"
        for one, _ in told
        for first in first_deltas(one)
        if first.get("type") != "function"
    ]

    assert not wrong, listed(wrong)


@check(
    "tools.stream.first-name", MUST, spec="fault:sgl-project/sglang/issues/4700", needs=NEEDS, exchanges=AREA
)
def test_first_name(vllm_recordings: Recordings) -> None:
    """The first delta of a call carries the whole name."""
    told = streams(vllm_recordings, FORCED)
    wrong = [
        f"{one.key}: {name!r}"
        for one, said in told
        for call, first in zip(said.calls, first_deltas(one), strict=False)
        if not (name := (first.get("function") or {}).get("name")) or name != call.name
    ]

    assert not wrong, listed(wrong)


@check("tools.stream.once", MUST, spec="fault:InternLM/lmdeploy/issues/3412", needs=NEEDS, exchanges=AREA)
def test_once(vllm_recordings: Recordings) -> None:
    """Later deltas of a call carry neither an empty id nor another one."""
    told = streams(vllm_recordings, FORCED)
    known = {(one.key, first.get("index")): first.get("id") for one, _ in told for first in first_deltas(one)}
    wrong = [
        f"{one.key}: {part['id']!r} after {known[one.key, part.get('index')]!r}"
        for one, _ in told
        for part in later_deltas(one)
        if part.get("id") is not None and part["id"] != known[one.key, part.get("index")]
    ]

    assert not wrong, listed(wrong)


@check("tools.stream.index", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_index(vllm_recordings: Recordings) -> None:
    """Calls of a stream are numbered 0, 1, 2 … in their order, each with one id."""
    told = streams(vllm_recordings, FORCED)
    wrong = [f"{one.key}: {fault}" for one, _ in told for fault in index_faults(one)]

    assert not wrong, listed(wrong)


@check("tools.stream.arguments", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_arguments(vllm_recordings: Recordings) -> None:
    """Arguments of a stream come as pieces of text."""
    told = streams(vllm_recordings, FORCED)
    given = [
        (one.key, part["function"]) for one, _ in told for part in call_pieces(one) if part.get("function")
    ]
    wrong = [
        f"{key}: {function['arguments']!r}"
        for key, function in given
        if not isinstance(function.get("arguments") or "", str)
    ]

    assert not wrong, listed(wrong)


@check("tools.stream.pieces", MUST, spec="fault:vllm-project/vllm/issues/30439", needs=NEEDS)
def test_pieces(forced_choice: Case, tools_forced_long_stream: Recording) -> None:
    """A long argument comes in several deltas, not in one lump."""
    said = ended(tools_forced_long_stream)
    need(said.calls and len(said.calls[0].arguments) > 200, f"{forced_choice.id}: no long argument")
    parts = [p for p in call_pieces(tools_forced_long_stream) if (p.get("function") or {}).get("arguments")]

    assert len(parts) >= FEW, f"{len(said.calls[0].arguments)} characters of arguments in {len(parts)} deltas"


@check(
    "tools.stream.auto-pieces", SHOULD, spec="fault:vllm-project/vllm/issues/30439", needs=("tools", "stream")
)
def test_auto_pieces(tools_auto_long_stream: Recording) -> None:
    """A long argument in the model's own format comes in several deltas."""
    said = ended(tools_auto_long_stream)
    need(said.calls and len(said.calls[0].arguments) > 200, "the model wrote no long argument")
    parts = [p for p in call_pieces(tools_auto_long_stream) if (p.get("function") or {}).get("arguments")]

    assert len(parts) >= FEW, f"{len(said.calls[0].arguments)} characters of arguments in {len(parts)} deltas"


@check("tools.stream.spread", SHOULD, spec="fault:vllm-project/vllm/issues/30439", needs=NEEDS)
def test_spread(forced_choice: Case, tools_forced_long_stream: Recording) -> None:
    """A long argument comes while it is written, not all at its end."""
    said = ended(tools_forced_long_stream)
    need(said.calls and len(said.calls[0].arguments) > 200, f"{forced_choice.id}: no long argument")
    events = [event for event in tools_forced_long_stream.events if '"arguments"' in event.data]
    need(len(events) >= FEW, f"{len(events)} deltas of arguments")
    whole = tools_forced_long_stream.seconds - (tools_forced_long_stream.headers_at or 0.0)
    told = events[-1].at - events[0].at

    assert told > whole / 10, f"arguments came within {told:.2f} s of {whole:.2f} s"
