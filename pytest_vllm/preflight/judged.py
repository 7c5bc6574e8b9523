"""What every rule says of a deployment: pass, finding, or not judged and for want of what.

Rules declare nothing: the deployment notes what a rule asked for and did not get. A rule that found nothing
and missed something has not passed, so none can be silent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts import flags, versions
from pytest_vllm.facts.lineage import lineage
from pytest_vllm.preflight.deployment import Deployment
from pytest_vllm.preflight.rule import RULES, rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.preflight.rule import Finding, Rule

MODEL, HARDWARE, VERSION, HOST = "model unknown", "hardware unknown", "version unknown", "machine not asked"
UNASKED = "vLLM not asked"
ELSEWHERE = "this machine is another"
START = "its start unknown"
#: What to add so that rules can judge, by what they miss.
REMEDIES = {
    MODEL: 'model = "FILE" in the profile, or --vllm-model-config=FILE',
    HARDWARE: "--vllm-hardware=NAME",
    VERSION: 'version = "X.Y.Z" in [server]',
    HOST: "--host (pytest-vllm preflight), on the machine that it is for",
    START: "volumes, gpus and ports in the profile, or import what starts the image",
    UNASKED: "--ask, where its image or its Python is",
}
#: What to do where nothing can be added.
ELSEWHERE_THEN = "run it where the server is to start"
#: Rules about what vLLM's argument parser takes: where that parser itself takes it, it knows better.
OVERRULED = {
    "flags.choice",
    "flags.decimal-suffix",
    "flags.negation",
    "flags.not-yet",
    "flags.number",
    "flags.removed",
    "flags.unknown",
    "parsers.reasoning-unknown",
    "parsers.tool-unknown",
}
#: What a Dockerfile leaves to whoever starts its image, so that nothing of it is missing there.
_OF_THE_START = ("server.volumes", "server.gpus", "server.ipc", "server.shm", "server.model", "deployment.")
_VERSION_READS = {"release", "within", "at_least", "version"}


class Watched(Deployment):
    """A deployment that notes what is asked of it and not known."""

    def __getattribute__(self, name: str) -> Any:
        """The attribute, noted where it stands for a thing that nobody told."""
        found = object.__getattribute__(self, name)
        missed: set[str] | None = object.__getattribute__(self, "__dict__").get("missed")
        if missed is None:
            return found
        if name == "model" and found is None:
            missed.add(MODEL)
        elif name == "hardware" and found is None:
            missed.add(HARDWARE)
        elif name in ("here", "host") and found is None:
            missed.add(HOST if object.__getattribute__(self, "host") is None else ELSEWHERE)
        elif name == "reply" and (found is None or found.unasked):
            missed.add(UNASKED)
        elif name in _VERSION_READS and not object.__getattribute__(self, "__dict__")["told"]:
            missed.add(VERSION)
        return found

    @property
    def version_known(self) -> bool:
        """As the deployment says; asking whether it is known needs no version."""
        return bool(self.__dict__["told"])

    def value(self, flag: str) -> Any:
        """A flag's value; a default that versions disagree on needs the version."""
        missed = self.__dict__["missed"]
        before = set(missed)
        found = super().value(flag)
        if VERSION not in before and (self.has(flag) or _same_everywhere(flag)):
            missed.discard(VERSION)
        return found


@cache
def _same_everywhere(flag: str) -> bool:
    known = [flags(version).get(flag) for version in versions()]
    return len({repr(one.default) for one in known if one is not None}) <= 1


@dataclass(frozen=True)
class Verdict:
    """What one rule says.

    Args:
        rule: its id.
        findings: what it found.
        missing: what it asked for in vain, where it found nothing or what it found would be a guess.
    """

    rule: str
    findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """`finding`, `pass` or `not judged`."""
        return "finding" if self.findings else "not judged" if self.missing else "pass"


def verdicts(deployment: Deployment) -> list[Verdict]:
    """What every rule says, one each, in the order of their ids."""
    return [_verdict(one, deployment) for _, one in sorted(RULES.items())]


def _verdict(rule: Rule, deployment: Deployment) -> Verdict:
    reply = deployment.reply
    if reply is not None and reply.taken and rule.name in OVERRULED:
        return Verdict(rule.name)
    watched = Watched(**{one.name: getattr(deployment, one.name) for one in fields(deployment)})
    server = deployment.profile.server
    missed: set[str] = set()
    foreign = deployment.in_container and bool(server.image) and not lineage(server.image).known
    watched.__dict__.update(told=deployment.version_known, missed=missed)
    if rule.versions and not deployment.version_known:
        # whether it applies is open: what it would find without asking for the version decides
        would = any(True for _ in rule.function(watched))
        if not would or foreign or not rule.applies(deployment):
            return Verdict(rule.name, missing=(VERSION,) if would else tuple(sorted(missed)))
    every = tuple(rule.findings(watched))
    found = tuple(one for one in every if not _left_to_the_start(deployment, one))
    if every and not found:
        return Verdict(rule.name, missing=(START,))
    if found and not (foreign and VERSION in missed):
        return Verdict(rule.name, found)
    return Verdict(rule.name, missing=(VERSION,) if found else tuple(sorted(missed)))


def _left_to_the_start(deployment: Deployment, found: Finding) -> bool:
    """Whether a finding is about what is given when an image is started, of a file that only describes it."""
    if deployment.profile.deployment.kind != "dockerfile":
        return False
    return found.key.startswith(_OF_THE_START) or found.rule.startswith("cache.")


def findings_in(said: Sequence[Verdict]) -> list[Finding]:
    """All findings, errors first."""
    return sorted((found for one in said for found in one.findings), key=rank)


def _remedy(why: str) -> str:
    return ELSEWHERE_THEN if why == ELSEWHERE else f"add {REMEDIES[why]}"


def counted(said: Sequence[Verdict]) -> str:
    """`no finding in 121 rules; 62 not judged: model unknown (48) - add …`; the reasons overlap."""
    number = Counter(one.said for one in said)
    text = f"no finding in {number['pass']} rules"
    if number["not judged"]:
        reasons = Counter(reason for one in said if one.said == "not judged" for reason in one.missing)
        told = ", ".join(f"{why} ({many}): {_remedy(why)}" for why, many in reasons.most_common())
        text += f"; {number['not judged']} not judged: {told}"
    return text
