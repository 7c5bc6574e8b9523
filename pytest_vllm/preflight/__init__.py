"""Preflight: what is wrong with a deployment, told before the GPU is touched.

Rules are pure functions of a profile, facts of vLLM's versions, and facts of the host where they were asked
for. Nothing is started, nothing is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.preflight import render
from pytest_vllm.preflight.deployment import deployment_of
from pytest_vllm.preflight.judged import HARDWARE, MODEL, VERSION, Verdict, counted, findings_in, verdicts
from pytest_vllm.preflight.rule import RULES, Finding, Severity
from pytest_vllm.preflight.rules import TOPICS

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.preflight.host import Host
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.profile.reply import Reply

__all__ = [
    "RULES",
    "TOPICS",
    "Finding",
    "Severity",
    "Verdict",
    "check",
    "counted",
    "header",
    "judge",
    "lines",
]

#: Launchers that start a vLLM: what is wrong with it is worth a word at the start of a run.
SHOWN = 5


def check(profile: Profile, rootdir: Path, host: Host | None = None) -> list[Finding]:
    """What the rules find, errors first. Raises ProfileError when a file of the profile is unreadable.

    Args:
        profile: what is about to be started.
        rootdir: pytest's root directory; hardware and model files of the project lie there.
        host: facts of this machine (`inspect_host`); rules that need them do not judge without.
    """
    return findings_in(judge(profile, rootdir, host))


def judge(
    profile: Profile, rootdir: Path, host: Host | None = None, reply: Reply | None = None
) -> list[Verdict]:
    """What every rule says: pass, finding, or not judged. Arguments and errors as `check` has them.

    `reply` is what the profile's own vLLM says of its arguments, where that was asked.
    """
    return verdicts(deployment_of(profile, rootdir, host, reply))


def header(profile: Profile, rootdir: Path) -> list[str]:
    """For the header of a run: its errors, and what no rule could judge because the profile does not say."""
    said = judge(profile, rootdir)
    told = lines(findings_in(said), profile)
    blind = profile.server.kind.starts_vllm and {MODEL, HARDWARE, VERSION} & {
        why for one in said for why in one.missing
    }
    return [*told, f"{profile.name}: {counted(said)}"] if blind else told


def lines(findings: list[Finding], profile: Profile) -> list[str]:
    """At most five lines for the header of a run: its errors, for launchers that start a vLLM."""
    errors = [one for one in findings if one.severity is Severity.ERROR]
    if not errors or not profile.server.kind.starts_vllm:
        return []
    shown = render.lines(errors, profile)
    if len(shown) <= SHOWN:
        return shown
    more = f"and {len(shown) - SHOWN + 1} more errors: pytest --vllm-profile={profile.name} --vllm-preflight"
    return [*shown[: SHOWN - 1], more]
