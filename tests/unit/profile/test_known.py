"""Faults of vLLM itself are waived on real servers, never on the simulator, never against one's will."""

from __future__ import annotations

import re

from pytest_vllm.profile.known import known_faults, parser_faults, with_known_faults
from pytest_vllm.profile.model import ExpectPart, Profile, ServerPart


def profile(launcher: str, known: str = "waive") -> Profile:
    return Profile(
        server=ServerPart.model_validate({"launcher": launcher}),
        expect=ExpectPart.model_validate({"known-faults": known}),
    )


def test_each_names_its_upstream_thread() -> None:
    faults = known_faults()

    assert faults
    assert [fault for fault in faults if not re.fullmatch(r"vllm-project/[\w-]+#\d+", fault.issue)] == []


def test_a_real_server_is_not_blamed_for_them() -> None:
    assert with_known_faults(profile("docker")).waive == known_faults()
    assert with_known_faults(profile("attach")).waive == known_faults()


def test_the_simulator_has_none() -> None:
    assert with_known_faults(profile("sim")).waive == []


def test_a_profile_may_let_them_count() -> None:
    assert with_known_faults(profile("docker", "fail")).waive == []


def test_a_parser_has_the_faults_that_are_known_of_it() -> None:
    faults = parser_faults({"tool-call-parser": "qwen3_coder"})

    assert "scripted.answer.whole[content-after]" in {one.check for one in faults}
    assert not parser_faults({"tool-call-parser": "openai"})  # which no sweep covers
    assert not parser_faults({})


def test_a_fault_of_two_parsers_is_that_of_both() -> None:
    """With other thoughts beside it, hermes may pass, or fail for another reason."""
    faults = [
        {one.check for one in parser_faults({"tool-call-parser": "hermes", "reasoning-parser": reasoning})}
        for reasoning in ("deepseek_r1", "qwen3", None)
    ]

    assert ["scripted.thoughts.opening" in checks for checks in faults] == [True, False, False]
    assert all("scripted.cut.markup" in checks for checks in faults)


def test_faults_of_parsers_are_those_of_scripted_servers() -> None:
    args = {"tool-call-parser": "qwen3_coder"}
    plain = profile("docker").server.model_copy(update={"args": args})
    scripted = plain.model_copy(update={"scripted": True})

    for server, more in ((plain, []), (scripted, parser_faults(args))):
        changed = profile("docker").model_copy(update={"server": server})
        assert with_known_faults(changed).waive == [*known_faults(), *more]
