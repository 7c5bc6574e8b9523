"""A failing check names the known fault that fits its deployment."""

from __future__ import annotations

from typing import Any

from pytest_vllm.preflight.explanations import explanations
from pytest_vllm.profile.model import Profile
from tests.unit.preflight.building import ROOT

THREAD = "https://github.com/vllm-project/vllm/issues/45256"


def told(check: str, version: str, **server: Any) -> list[str]:
    """The lines for a check of a server with qwen3_coder."""
    args = {"tool-call-parser": "qwen3_coder", "stream-interval": 4}
    given = {"launcher": "docker", "image": "vllm/vllm-openai:v0.22.0", "model": "org/model", "args": args}
    return explanations(check, version, Profile.model_validate({"server": given | server}), ROOT)


def test_the_fault_that_fits_is_named() -> None:
    """For the check that it makes fail, with or without a case."""
    for check in ("tools.calls.valid", "tools.calls.valid[weather]"):
        (line,) = told(check, "0.22.0")
        assert THREAD in line
        assert line.endswith("try: stream-interval = 1")


def test_what_does_not_fit_is_not_named() -> None:
    """Another check, another version, another configuration, a simulator."""
    assert told("health.answered", "0.22.0") == []
    assert told("tools.calls.valid", "0.24.0") == []
    assert told("tools.calls.valid", "0.22.0", args={"tool-call-parser": "qwen3_coder"}) == []
    assert told("tools.calls.valid", "0.22.0", launcher="sim", image=None) == []
