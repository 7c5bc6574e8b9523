"""Every rule says pass, finding, or not judged and why."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_vllm.facts.lineage import lineage
from pytest_vllm.preflight import judge
from pytest_vllm.preflight.judged import HARDWARE, MODEL, UNASKED, VERSION, counted
from pytest_vllm.preflight.rule import RULES
from pytest_vllm.profile.model import Profile
from pytest_vllm.profile.reply import Reply
from tests.unit.preflight.building import ROOT


def said(**server: Any) -> dict[str, tuple[str, tuple[str, ...]]]:
    """What every rule says of a server, by its id."""
    profile = Profile.model_validate({"server": {"launcher": "docker", "model": "org/unheard-of"} | server})
    return {one.rule: (one.said, one.missing) for one in judge(profile, ROOT)}


def test_no_rule_is_silent() -> None:
    """Each says one of three things, and those that do not judge say why."""
    spoken = said(image="vllm/vllm-openai:v0.32.0")

    assert set(spoken) == set(RULES)
    assert all(bool(missing) is (word == "not judged") for word, missing in spoken.values())
    assert MODEL in spoken["context.beyond-model"][1]
    assert HARDWARE in spoken["memory.weights"][1]


def test_a_foreign_tag_is_no_version() -> None:
    """A flag that is gone is an accusation only where the version is known."""
    args = {"swap-space": 4}

    assert said(image="registry.example/serving:v1.4.2", args=args)["flags.removed"] == (
        "not judged",
        (VERSION,),
    )
    assert said(image="vllm/vllm-openai:v0.32.0", args=args)["flags.removed"][0] == "finding"


def test_the_summary_says_what_to_add() -> None:
    """Why rules do not judge, and the option that helps."""
    profile = Profile.model_validate({"server": {"launcher": "docker", "model": "org/unheard-of", "gpus": 1}})
    text = counted(judge(profile, ROOT))

    assert "--vllm-hardware=NAME" in text
    assert "--vllm-model-config=FILE" in text


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("vllm/vllm-openai:v0.11.0", "0.11.0"),
        ("mirror.example:5000/hub/vllm/vllm-openai:v0.10.1.1-cu128@sha256:" + "0" * 64, "0.10.1.1"),
        ("rocm/vllm:rocm6.4.1_vllm_0.10.1_20250909", "0.10.1"),
        ("nvcr.io/nvidia/vllm:25.09-py3", "0.10.1.1+381074ae.nv25.09"),
        ("nvcr.io/nvidia/vllm:26.01-py3", "0.13.0"),
        ("nvcr.io/nvidia/vllm:26.03-py3", "0.17.1"),
        ("nvcr.io/nvidia/vllm:26.03.post1-py3", ""),
        ("nvcr.io/nvidia/vllm:26.99-py3", ""),
        ("vllm/vllm-omni:v0.16.0", "0.16.0"),
        ("registry.redhat.io/rhaiis/vllm-cuda-rhel9:3.0.0", "0.8.4"),
        ("763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.33.0-lmi15.0.0-cu128", ""),
        ("public.ecr.aws/deep-learning-containers/vllm:server-cuda-v1.3", ""),
        ("python:3.12", ""),
        ("quay.io/ascend/vllm-ascend:v0.11.0rc1", ""),
        ("intel/llm-scaler-vllm:1.3", ""),
        ("nvcr.io/nvidia/tritonserver:25.09-vllm-python-py3", ""),
        ("nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8.4", ""),
        ("registry.redhat.io/rhaiis/vllm-cuda-rhel9:3.2.1-1756225581", "0.10.0"),
        ("registry.redhat.io/rhaiis/vllm-cuda-rhel9:3.2.2-1765379088", ""),
        ("registry.redhat.io/rhaiis/vllm-cuda-rhel9:3.3.3", "0.13.0"),
        ("intel/vllm:0.10.2-xpu", "0.10.2"),
        ("ghcr.io/llm-d/llm-d-cuda:v0.3.0", ""),
        ("lmcache/vllm-openai:v0.3.9", ""),
        ("ubuntu:22.04", ""),
        ("registry.example/serving:v1.4.2", ""),
    ],
)
def test_whose_tag_is_a_version(image: str, version: str) -> None:
    """Only a tag that counts vLLM's releases, or names vLLM, is one."""
    assert lineage(image).version == version


def test_what_the_own_vllm_takes_overrules_what_is_known_of_releases() -> None:
    """An own build may take what the release of its number does not."""
    profile = Profile.model_validate(
        {"server": {"launcher": "docker", "image": "vllm/vllm-openai:v0.32.0", "args": {"swap-space": 4}}}
    )
    words = {
        name: {one.rule: one for one in judge(profile, ROOT, reply=reply)}
        for name, reply in {
            "not asked": None,
            "takes": Reply("vLLM 0.32.0 of here"),
            "refuses": Reply("vLLM 0.32.0 of here", "unrecognized arguments:\n--swap-space 4"),
        }.items()
    }

    assert {name: said["flags.removed"].said for name, said in words.items()} == {
        "not asked": "finding",
        "takes": "pass",
        "refuses": "finding",
    }
    assert words["not asked"]["flags.asked"].missing == (UNASKED,)
    assert words["takes"]["flags.asked"].said == "pass"
    (finding,) = words["refuses"]["flags.asked"].findings
    assert finding.text == (
        "vLLM 0.32.0 of here refuses the arguments: unrecognized arguments: --swap-space 4"
    )
