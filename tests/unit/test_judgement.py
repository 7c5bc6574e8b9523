"""A failing check says which known fault fits its deployment, and still fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_vllm.decide.verdict import Level, Result, Verdict
from pytest_vllm.declare.checks import CheckSpec
from pytest_vllm.face.judgement import judge
from pytest_vllm.profile.model import Profile
from tests.contract.imports import ROOT

SPEC = CheckSpec("tools.calls.valid", Level.MUST, "openai:chat")
SERVER: dict[str, Any] = {
    "launcher": "docker",
    "image": "vllm/vllm-openai:v0.22.0",
    "model": "org/model",
    "args": {"tool-call-parser": "qwen3_coder", "stream-interval": 4},
}


def judged(*, wrong: bool, version: str = "0.22.0") -> Result:
    """The result of a check that is called on such a server."""

    def called() -> None:
        assert not wrong, "the arguments are no JSON"

    item: Any = SimpleNamespace(
        nodeid="suites/tools/test_calls.py::test_valid",
        reportinfo=lambda: ("test_calls.py", 0, ""),
        config=SimpleNamespace(rootpath=ROOT),
    )
    profile = Profile.model_validate({"server": SERVER})
    state: Any = SimpleNamespace(profile=profile, server=SimpleNamespace(version=version))
    return judge(item, SPEC, pytest.CallInfo.from_call(called, "call"), state, {})


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
