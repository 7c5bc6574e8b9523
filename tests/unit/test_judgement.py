"""A failing check says which known fault fits its deployment, and still fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.decide.verdict import Level, Result, Verdict
from pytest_vllm.declare.checks import CheckSpec
from pytest_vllm.declare.exchanges import EXCHANGES, ExchangeSpec
from pytest_vllm.face.judgement import judge
from pytest_vllm.profile.model import Profile
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.store import RecordingStore
from tests.contract.imports import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SPEC = CheckSpec("tools.calls.valid", Level.MUST, "openai:chat")
SERVER: dict[str, Any] = {
    "launcher": "docker",
    "image": "vllm/vllm-openai:v0.22.0",
    "model": "org/model",
    "args": {"tool-call-parser": "qwen3_coder", "stream-interval": 4},
}


def judged(*, wrong: bool, version: str = "0.22.0", spec: CheckSpec = SPEC, store: Any = None) -> Result:
    """The result of a check that is called on such a server."""

    def called() -> None:
        assert not wrong, "the arguments are no JSON"

    item: Any = SimpleNamespace(
        nodeid="suites/tools/test_calls.py::test_valid",
        reportinfo=lambda: ("test_calls.py", 0, ""),
        config=SimpleNamespace(rootpath=ROOT),
    )
    profile = Profile.model_validate({"server": SERVER})
    state: Any = SimpleNamespace(profile=profile, server=SimpleNamespace(version=version), store=store)
    return judge(item, spec, pytest.CallInfo.from_call(called, "call"), state, {})


def test_a_failure_names_the_fault() -> None:
    """Behind its own words, with the thread and the way round."""
    result = judged(wrong=True)
    own, known = result.reason.splitlines()[0], result.reason.splitlines()[-1]

    assert result.verdict is Verdict.FAIL
    assert "the arguments are no JSON" in own
    assert known.startswith("known of vLLM 0.22.0: ")
    assert known.endswith("issues/45256); try: stream-interval = 1")


def test_others_say_nothing_of_it() -> None:
    """A pass, and a failure of a version that does not have the fault."""
    assert judged(wrong=False).verdict is Verdict.PASS
    assert "known of" not in judged(wrong=True, version="0.24.0").reason


@pytest.mark.parametrize(
    ("failure", "wrong", "verdict"),
    [
        (Failure.HELD, False, Verdict.UNDECIDED),
        (Failure.STOPPED, False, Verdict.UNDECIDED),
        (Failure.GIVEN_UP, False, Verdict.UNDECIDED),
        (Failure.HELD, True, Verdict.FAIL),
        (Failure.STOPPED, True, Verdict.UNDECIDED),
        (Failure.GIVEN_UP, True, Verdict.UNDECIDED),
        (Failure.UNFIT, False, Verdict.PASS),
        (None, False, Verdict.PASS),
    ],
)
def test_a_check_has_not_passed_on_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Failure | None, *, wrong: bool, verdict: Verdict
) -> None:
    """What could not be recorded is open; what failed on the rest of a living server has failed."""
    declared = ExchangeSpec("x.asked", lambda: Request("GET", "/health"))
    monkeypatch.setitem(EXCHANGES, declared.id, declared)
    store = RecordingStore(tmp_path)
    store.save(Recording(declared.id, Request("GET", "/health"), error="held up", failure=failure))
    spec = CheckSpec("x.y", Level.MUST, "openai:chat", exchanges=(declared.id,))

    result = judged(wrong=wrong, spec=spec, store=store)

    assert result.verdict is verdict
    assert (result.reason == "held up") is (verdict is Verdict.UNDECIDED)
