"""Why a check may fail through no fault of its own: known faults that fit the deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.facts.faults import faults_of_check
from pytest_vllm.preflight.conditions import holds
from pytest_vllm.preflight.deployment import deployment_of

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.profile.model import Profile


def explanations(check: str, version: str, profile: Profile, rootdir: Path) -> list[str]:
    """One line for each known fault that makes such a check fail and whose conditions hold here.

    Args:
        check: its id, with a case or without.
        version: the vLLM that runs, as it told.
        profile: how it was started.
        rootdir: where the project's model and hardware files lie.

    Raises ProfileError when one of these cannot be read.
    """
    found = faults_of_check(check.partition("[")[0], version)
    if not found or profile.server.kind.simulated:
        return []
    deployment = deployment_of(profile, rootdir)
    return [
        f"known of vLLM {version}: {one.title}: {one.effect} ({one.thread}); try: {one.way_round}"
        for one in found
        if all(holds(condition, deployment) for condition in one.when)
    ]
