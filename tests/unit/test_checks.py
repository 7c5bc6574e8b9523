"""What makes a function a check is declared once and refused when it is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_vllm.declare.checks import MUST, collecting_observations, need, observe, only_if, undecided
from pytest_vllm.face.decorators import check
from pytest_vllm.face.options import MARK
from pytest_vllm.wire.recording import NotRun, Undecided


def declared(**changes: object) -> Any:
    given = {"id": "chat.envelope.object", "level": MUST, "spec": "openai:chat/object", **changes}

    def function() -> None:
        """The requirement as a fact.

        More words.
        """

    return check(**given)(function)  # type: ignore[arg-type]


def test_a_check_carries_its_declaration() -> None:
    (mark,) = [mark for mark in declared(needs=["chat"]).pytestmark if mark.name == MARK]
    spec = mark.args[0]

    assert (spec.id, spec.needs, spec.tier) == ("chat.envelope.object", ("chat",), "smoke")
    assert spec.fact == "The requirement as a fact."


@pytest.mark.parametrize("id_", ["chat", "Chat.object", "chat..object", "chat.object_name", "chat.-x", ""])
def test_an_id_is_dotted_lower_case(id_: str) -> None:
    with pytest.raises(ValueError, match="dotted lower-case words"):
        declared(id=id_)


def test_a_need_is_a_known_capability() -> None:
    with pytest.raises(ValueError, match="unknown capability 'chatt'"):
        declared(needs=["chatt"])


def test_a_tier_is_known() -> None:
    with pytest.raises(ValueError, match="unknown tier 'nightly'"):
        declared(tier="nightly")


def test_a_check_without_a_fact_is_refused() -> None:
    with pytest.raises(ValueError, match="no docstring"):
        check("a.b", MUST, spec="openai:x")(lambda: None)


def test_words_of_judging() -> None:
    need(1, "not reached")
    only_if("yes", "not reached")
    with pytest.raises(Undecided, match="nothing was streamed"):
        need([], "nothing was streamed")
    with pytest.raises(NotRun, match=r"from 0\.12"):
        only_if(False, "from 0.12")
    with pytest.raises(Undecided, match="why"):
        undecided("why")


def test_observations_are_kept_while_a_check_runs() -> None:
    observe("lost", 1)
    with collecting_observations() as notes:
        observe("key", "reasoning")

    assert notes == {"key": "reasoning"}
