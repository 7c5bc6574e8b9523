"""Builds profiles and hosts for the tests of the rules."""

from __future__ import annotations

import copy
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.preflight import check
from pytest_vllm.preflight.host import Gpu, Host, Tenant
from pytest_vllm.profile.model import Profile

if TYPE_CHECKING:
    from pytest_vllm.preflight.rule import Finding

CASES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("cases.toml").read_text("utf-8"))
ROOT = Path(__file__).parent / "project"


@dataclass(frozen=True)
class MadeUpHost(Host):
    """A host whose folders are as the test says."""

    answers: tuple[tuple[str, Any], ...] = ()

    def cached(self, folder: str, repo: str) -> bool | None:  # noqa: ARG002 - the real one's
        """As the test says; unknown otherwise."""
        return dict(self.answers).get("cached")

    def writable(self, folder: str) -> bool | None:  # noqa: ARG002 - the same
        """As the test says; unknown otherwise."""
        return dict(self.answers).get("writable")

    def free_disk(self, folder: str) -> int | None:  # noqa: ARG002 - the same
        """As the test says; unknown otherwise."""
        return dict(self.answers).get("disk")


def host_of(given: dict[str, Any]) -> Host:
    """A host from a row's `host` table."""
    gpus = [
        Gpu(one["name"], one["total"], one["free"], tuple(one["capability"]) if "capability" in one else None)
        for one in given.get("gpus", ())
    ]
    engines = tuple(given["engines"]) if "engines" in given else None
    return MadeUpHost(
        tuple(gpus),
        given.get("driver", ""),
        given.get("available"),
        given.get("memory"),
        engines,
        tuple(Tenant(**one) for one in given.get("tenants", ())),
        tuple(given.get("taken_ports", ())),
        accelerators=tuple(given["accelerators"]) if "accelerators" in given else None,
        answers=tuple((name, given[name]) for name in ("cached", "writable", "disk") if name in given),
    )


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Tables merge, everything else is replaced; JSON flags are replaced whole."""
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def without(raw: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    """The same without these keys."""
    left = copy.deepcopy(raw)
    for key in keys:
        *parents, last = key.split(".")
        table = left
        for parent in parents:
            table = table[parent]
        del table[last]
    return left


def found(overlay: str = "", missing: list[str] | None = None) -> list[Finding]:
    """What preflight finds in the good profile with this laid over it."""
    over = tomllib.loads(overlay)
    host = over.pop("host", None)
    raw = merged(without(CASES["base"], missing or []), over)
    profile = Profile.model_validate(raw)
    return check(profile, ROOT, host_of(host) if host is not None else None)


def rules_of(findings: list[Finding]) -> set[str]:
    """The rules that spoke."""
    return {one.rule for one in findings}
