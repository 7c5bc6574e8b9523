"""A required call with odd values is the one that its schema allows, in one piece and in many."""

from pytest_vllm import MUST, Case, Recording, check, listed, need, only_if

from .answers import answer, errors
from .judgements import differences
from .tools import ODD, ODD_ARGUMENTS


@check(
    "tools.odd",
    MUST,
    spec="fault:vllm-project/vllm/pull/45389",
    needs=("tools.required", "stream"),
)
def test_odd(call_mode: Case, tools_odd: Recording) -> None:
    """A required call keeps brackets, quotes, scripts, numbers and flags as they are."""
    broken = errors(tools_odd) if tools_odd.request.streams else []
    need(not broken, f"it broke off: {broken[:1]}")
    said = answer(tools_odd)
    # a model may call again and again, until the limit of tokens ends the last of its calls
    only_if(said.complete or len(said.calls) > 1, "the limit of tokens came before the end of the call")
    wrong = differences(said.calls[:1], [(ODD, ODD_ARGUMENTS)])

    assert not wrong, f"{call_mode.id}: {listed(wrong)}; content {said.content[:120]!r}"
