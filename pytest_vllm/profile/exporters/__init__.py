"""A profile as other tools write deployments down; what comes out can be imported again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pytest_vllm.profile.errors import ProfileError
from pytest_vllm.profile.exporters import line, manifest, unit
from pytest_vllm.profile.exporters.words import Export
from pytest_vllm.profile.words import unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.profile.model import Profile

__all__ = ["KINDS", "Export", "exported"]

#: Kind -> what writes it.
KINDS: dict[str, Callable[[Profile], Export]] = {
    "compose": manifest.compose,
    "docker-run": partial(line.run, engine="docker"),
    "podman-run": partial(line.run, engine="podman"),
    "systemd": unit.unit,
    "k8s": manifest.kubernetes,
    "serve": line.serve,
}


def exported(profile: Profile, kind: str) -> Export:
    """A deployment as text of a kind. Raises ProfileError for another kind, and for a missing image."""
    if kind not in KINDS:
        raise ProfileError(unknown("kind", kind, list(KINDS)))
    return KINDS[kind](profile)
