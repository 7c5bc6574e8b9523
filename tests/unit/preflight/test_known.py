"""Every row of the table of known faults fires, and is silent when its version or one condition is another.

The deployments are made from the rows, so a new row is tried without a new test.
"""

from __future__ import annotations

from typing import Any

import pytest

from pytest_vllm.facts import Version, versions
from pytest_vllm.facts.capabilities import CAPABILITIES
from pytest_vllm.facts.faults import Condition, Fault, faults
from pytest_vllm.preflight.conditions import fits
from pytest_vllm.preflight.deployment import Deployment
from pytest_vllm.preflight.host import Host
from pytest_vllm.preflight.judged import MODEL, Verdict, verdicts
from pytest_vllm.preflight.rule import RULES
from pytest_vllm.profile.hardware import load_hardware
from pytest_vllm.profile.model import Profile
from pytest_vllm.profile.modelfile import load_model
from tests.unit.preflight.building import ROOT

FAULTS = faults()
FLIPS = [(fault, one) for fault in FAULTS for one in fault.when]


def like(wanted: Any) -> str:
    """A text that a pattern takes."""
    return str(wanted[0] if isinstance(wanted, list) else wanted).replace("*", "")


def met(one: Condition) -> Any:
    """A value that fulfils a condition; None leaves it unset."""
    if one.wanted in ("not on", "not off", "unset"):
        return None
    if one.bound:
        operator, number = one.bound
        return number + {">": 1, ">=": 0, "<": -1, "<=": 0}[operator]
    return (
        "anything"
        if one.wanted == "set"
        else like(one.wanted)
        if not isinstance(one.wanted, bool | int)
        else one.wanted
    )


def missed(one: Condition) -> Any:
    """A value that does not."""
    if isinstance(one.wanted, bool):
        return not one.wanted
    if one.wanted in ("not on", "not off"):
        return one.wanted == "not on"
    if one.wanted in ("set", "unset"):
        return None if one.wanted == "set" else "1"
    if one.bound:
        operator, number = one.bound
        return number + {">": 0, ">=": -1, "<": 0, "<=": 1}[operator]
    return one.wanted + 1 if isinstance(one.wanted, int) else "something-else"


def deployed(fault: Fault, version: str, flipped: Condition | None = None) -> Deployment:
    """What the row describes in a version, but for one condition."""
    given = {one.name: (missed if one is flipped else met)(one) for one in fault.when}
    args: dict[str, Any] = {}
    env: dict[str, str] = {}
    speculation: dict[str, Any] = {}
    for one in fault.when:
        value = given[one.name]
        if value is None:
            continue
        if one.subject == "args" and len(one.path) > 1:
            args[one.path[0]] = {one.path[1]: value}
        elif one.subject == "args":
            args[one.path[0]] = _typed(one, value)
        elif one.subject == "env":
            env[one.path[0]] = "1" if value is True else "0" if value is False else str(value)
        elif one.subject == "speculation":
            speculation[one.path[0] if one.path else "model"] = value
    if speculation:
        args["speculative-config"] = speculation
    expected = given.get("expect")
    profile = Profile.model_validate(
        {
            "server": {
                "launcher": "docker", "version": version,
                "image": f"vllm/{given.get('image.name', 'vllm-openai')}:v{version}",
                "model": given.get("model.name", "org/model"), "args": args, "env": env,
            },
            "expect": {"capabilities": [expected if expected in CAPABILITIES else "chat"]},
        }
    )  # fmt: skip
    model = load_model("qwen3-32b-fp8", ROOT).model_copy(
        update={
            "repo": profile.server.model, "title": profile.server.model,
            "hybrid": given.get("model.hybrid", False), "experts": 0,
            "image_side": 28 if given.get("model.vision") else 0,
            "quantization": given.get("model.quantization", "none"),
        }
    )  # fmt: skip
    hardware = load_hardware("h100", ROOT).model_copy(
        update={
            "compute_capability": _capability(given.get("hardware.capability", "9.0")),
            "unified": given.get("hardware.unified", False),
        }
    )
    return Deployment(profile, hardware, model, None, Host())


def _typed(one: Condition, value: Any) -> Any:
    listed = one.path[0] in ("lora-target-modules", "logits-processors")
    return [value] if listed else value


def _capability(value: str) -> str:
    return "7.5" if value == "something-else" else value


def spoken(fault: Fault, deployment: Deployment) -> list[str]:
    """What the row's rule says."""
    return [one.text for one in RULES[f"known.{fault.id}"].findings(deployment)]


def judged(fault: Fault, deployment: Deployment) -> Verdict:
    """What the engine makes of the row's rule."""
    return next(one for one in verdicts(deployment) if one.rule == f"known.{fault.id}")


def inside(fault: Fault) -> str:
    """The first version that has it."""
    return fault.versions.partition(",")[0].removeprefix(">=")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.id)
def test_it_is_found(fault: Fault) -> None:
    """With what happens, the thread and the way round, in one line."""
    (text,) = spoken(fault, deployed(fault, inside(fault)))

    assert fault.effect in text
    assert fault.thread in text
    assert text.endswith(f"fix: {fault.way_round}")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.id)
def test_versions_beside_are_left_alone(fault: Fault) -> None:
    """The one before its first and the one behind its last."""
    first = Version(inside(fault))
    before = [one for one in versions() if Version(one) < first][-1:]
    beside = [*before, fault.versions.rpartition("<")[2]]

    assert [spoken(fault, deployed(fault, one)) for one in beside] == [[] for _ in beside]


@pytest.mark.parametrize(("fault", "flipped"), FLIPS, ids=[f"{fault.id}-{one.name}" for fault, one in FLIPS])
def test_a_neighbour_is_left_alone(fault: Fault, flipped: Condition) -> None:
    """The same but for one condition."""
    assert spoken(fault, deployed(fault, inside(fault), flipped)) == []


def test_an_unknown_model_is_not_judged() -> None:
    """Where all else holds, the rule says what it misses; where the flag is not set, it passes."""
    fault = next(one for one in FAULTS if one.id == "hybrid-cache-short")
    known = deployed(fault, "0.19.0")
    blind = Deployment(known.profile, known.hardware, None, None, known.host)
    other = deployed(fault, "0.19.0", fault.when[0])

    assert judged(fault, blind).missing == (MODEL,)
    assert judged(fault, Deployment(other.profile)).said == "pass"


@pytest.mark.parametrize(
    ("wanted", "given", "says"),
    [
        (True, "true", True),
        (True, None, False),
        (False, None, False),
        (False, False, True),
        ("not off", None, True),
        ("not off", False, False),
        ("not on", True, False),
        ("unset", None, True),
        (">1", "2", True),
        (">1", None, False),
        (">1", "32k", True),
        (1, 1, True),
        (1, "auto", False),
        (["a*", "b"], "ABC", True),
        (["a*", "b"], "bc", False),
        ("a", ["x", "A"], True),
    ],
)
def test_what_fits(wanted: Any, given: Any, says: bool) -> None:
    """Each kind of value, met and missed."""
    assert fits(Condition("args", ("x",), wanted), given) is says
