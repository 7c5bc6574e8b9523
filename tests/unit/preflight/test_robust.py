"""Rules meet profiles that nobody foresaw: whatever stands there, they answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from pydantic_core import PydanticCustomError

from pytest_vllm.facts import flags, versions
from pytest_vllm.preflight import RULES, check, lines
from pytest_vllm.preflight.deployment import deployment_of
from pytest_vllm.preflight.render import as_json
from pytest_vllm.profile.errors import ProfileError
from pytest_vllm.profile.flags import checked_args
from pytest_vllm.profile.model import Profile
from tests.unit.preflight.building import ROOT

NAMES = sorted({name for version in ("0.6.4", "0.10.0", "0.32.0") for name in flags(version)})
LEAVES = some.one_of(
    some.booleans(),
    some.integers(-2, 10**12),
    some.floats(allow_nan=False, allow_infinity=False),
    some.sampled_from(["", "auto", "32k", "1.5K", "fp8", "awq", "*", "/", "ngram", "qwen3", "-1"]),
)
VALUES = some.recursive(
    LEAVES,
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(
            some.sampled_from(["method", "model", "num_speculative_tokens", "backend", "a-b"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=4,
)
#: Flags that rules read: random ones seldom hit them.
READ = [
    *(
        "speculative-config",
        "max-num-seqs",
        "max-num-batched-tokens",
        "max-model-len",
        "tensor-parallel-size",
    ),
    *("gpu-memory-utilization", "lora-modules", "quantization", "structured-outputs-config", "host", "port"),
    *(
        "allowed-origins",
        "override-generation-config",
        "kv-cache-dtype",
        "kv-cache-memory-bytes",
        "block-size",
    ),
    *("kv-transfer-config", "attention-config", "download-dir", "tool-call-parser", "max-loras", "config"),
]


def accepted(name: str, value: Any) -> bool:
    """Whether a profile may say this: a switch is no number, a number no table."""
    try:
        checked_args({name: value})
    except PydanticCustomError:
        return False
    return True


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    args=some.dictionaries(some.sampled_from(NAMES) | some.sampled_from(READ), VALUES, max_size=6),
    version=some.sampled_from(["", "0.99.0", "0.10.1.1+381074ae.nv25.09", *versions()]),
    hardware=some.sampled_from(["gb10", "h100", "cpu", "mi300x", "sim", None]),
    model=some.sampled_from(["qwen3-32b", "qwen35-35b-a3b-fp8", "qwq-32b-awq", "llama32-3b", None]),
    image=some.sampled_from(
        ["vllm/vllm-openai:latest", "a@sha256:0", "x", "r.io:5000/y", "nvcr.io/nvidia/vllm:1", None]
    ),
)
def test_rules_answer_whatever_stands_there(
    args: dict[str, Any], version: str, hardware: str | None, model: str | None, image: str | None
) -> None:
    """No rule raises, and everything that is found can be shown."""
    kept = {name: value for name, value in args.items() if accepted(name, value)}
    server = {"args": kept, "image": image, "version": version or None, "model": "a/b"}
    profile = Profile.model_validate({"name": "odd", "hardware": hardware, "model": model, "server": server})
    found = check(profile, ROOT)

    assert len(as_json(found, profile)) == len(found)
    assert len(lines(found, profile)) <= 5


def test_a_model_file_that_is_not_there_is_said() -> None:
    """A profile that names one is refused, not passed."""
    with pytest.raises(ProfileError):
        deployment_of(Profile(name="x", model="no-such"), ROOT)


def test_rules_are_registered_once() -> None:
    """Ids have a topic and words."""
    assert all(name.count(".") == 1 and name == name.lower() for name in RULES)
