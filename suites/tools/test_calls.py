"""What holds for every call, whoever asked for it."""

import re

from pytest_vllm import MUST, Recordings, Server, check, listed, need, only_if

from .gathered import answered, with_calls
from .judgements import object_fault, schema_fault
from .requests import declared
from .tools import schemas

SPEC = "openai:chat/object"
FORCED = "tools.forced."
NEEDS = ("tools.required",)
AREA = (FORCED,)
KIMI = re.compile(r"functions\.[\w.-]+:\d+")


@check("tools.calls.object", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_object(vllm_recordings: Recordings) -> None:
    """The arguments of a call that was not cut are a JSON object."""
    told = with_calls(vllm_recordings, FORCED)
    wrong = [
        f"{said.key}: {fault}" for _, said in told for call in said.calls if (fault := object_fault(call))
    ]

    assert not wrong, listed(wrong)


@check("tools.calls.valid", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_valid(vllm_recordings: Recordings) -> None:
    """The arguments of a forced strict call are valid for the schema of its tool."""
    told = [(schemas(declared(one)), said) for one, said in with_calls(vllm_recordings, FORCED)]
    need(any(call.name in known for known, said in told for call in said.calls), "no call names a tool")
    wrong = [
        f"{said.key}: {fault}"
        for known, said in told
        for call in said.calls
        if (fault := schema_fault(call, known))
    ]

    assert not wrong, listed(wrong)


@check("tools.calls.declared", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_declared(vllm_recordings: Recordings) -> None:
    """A call names a tool that the request offered."""
    told = [(schemas(declared(one)), said) for one, said in with_calls(vllm_recordings, FORCED)]
    wrong = [
        f"{said.key}: {call.name!r}" for known, said in told for call in said.calls if call.name not in known
    ]

    assert not wrong, listed(wrong)


@check("tools.calls.id", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_id(vllm_recordings: Recordings) -> None:
    """Every call has an id, a text that is not empty."""
    told = with_calls(vllm_recordings, FORCED)
    wrong = [
        f"{said.key}: {call.id!r}"
        for _, said in told
        for call in said.calls
        if not (call.id and isinstance(call.id, str))
    ]

    assert not wrong, listed(wrong)


@check("tools.calls.type", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_type(vllm_recordings: Recordings) -> None:
    """Every call has the type `function`."""
    told = with_calls(vllm_recordings, FORCED)
    wrong = [
        f"{said.key}: {call.type!r}" for _, said in told for call in said.calls if call.type != "function"
    ]

    assert not wrong, listed(wrong)


@check(
    "tools.calls.ids-unique", MUST, spec="fault:vllm-project/vllm/issues/46344", needs=NEEDS, exchanges=AREA
)
def test_ids_unique(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """No two calls have the same id, within an answer or across answers."""
    only_if(not kimi(vllm_server), "ids of Kimi's calls count within a conversation")
    ids = [call.id for _, said in with_calls(vllm_recordings, FORCED) for call in said.calls if call.id]
    need(len(ids) > 1, "fewer than two calls have an id")
    twice = sorted({one for one in ids if ids.count(one) > 1})

    assert not twice, f"{len(ids)} calls, {len(twice)} ids given more than once: {twice[:3]}"


@check("tools.calls.id-form", MUST, spec="fault:vllm-project/vllm/issues/46344", needs=NEEDS, exchanges=AREA)
def test_id_form(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Ids of Kimi's calls read `functions.NAME:NUMBER`, which its template needs back."""
    only_if(kimi(vllm_server), "other models take any id")
    ids = [(said.key, call.id) for _, said in with_calls(vllm_recordings, FORCED) for call in said.calls]
    wrong = [f"{key}: {id_!r}" for key, id_ in ids if not KIMI.fullmatch(str(id_))]

    assert not wrong, listed(wrong)


def kimi(server: Server) -> bool:
    """Whether the server is known to parse Kimi K2's calls."""
    return str(server.args.get("tool-call-parser", "")).startswith("kimi_k2")


@check("tools.finish.empty", MUST, spec="fault:vllm-project/vllm/issues/53255", needs=NEEDS, exchanges=AREA)
def test_finish_empty(vllm_recordings: Recordings) -> None:
    """An answer that finishes with `tool_calls` holds calls."""
    told = answered(vllm_recordings, FORCED)
    need(any(said.finish == "tool_calls" for _, said in told), "no answer finishes with tool_calls")
    wrong = [said.key for _, said in told if said.finish == "tool_calls" and not said.calls]

    assert not wrong, f"finish_reason is tool_calls, but there is no call: {listed(wrong)}"
