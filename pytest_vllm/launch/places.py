"""Where a server runs: the next steps are those of that place, Docker's for Docker only."""

from __future__ import annotations

import re
import tomllib
from contextlib import contextmanager
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.launch.protocol import BootError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Lines at the begin and at the end of a log that are asked.
_MOST = 2_000
_KUBERNETES = re.compile(
    r"^\[pod/|\bkubelet\b|CrashLoopBackOff|ErrImagePull|\bkubernetes\.io\b"
    r"|^\S+ (?:stdout|stderr) [FP] |failed (?:liveness|startup) probe"
)
_PODMAN = re.compile(r"\bpodman\b|\bconmon\b|\blibpod\b|^(?:Error: )?crun: ")
_UNIT = re.compile(r"\bsystemd\[\d+\]: \S*\.service: ")
_ENGINE = re.compile(r"\b(?:docker|containerd|nerdctl|container)\b", re.IGNORECASE)


class Place(StrEnum):
    """Where a server runs."""

    DOCKER = "docker"
    PODMAN = "podman"
    KUBERNETES = "kubernetes"
    PROCESS = "process"
    UNKNOWN = ""


def place_of(lines: Sequence[str]) -> Place:
    """Where the server of a log ran, when its lines, as they were carried, leave no doubt."""
    asked = [*lines[:_MOST], *lines[_MOST:][-_MOST:]]
    if any(_KUBERNETES.search(line) for line in asked):
        return Place.KUBERNETES
    if any(_PODMAN.search(line) for line in asked):
        return Place.PODMAN
    if any(_UNIT.search(line) for line in asked) and not any(_ENGINE.search(line) for line in asked):
        return Place.PROCESS
    return Place.UNKNOWN


def fitting(steps: Sequence[str], place: Place) -> tuple[str, ...]:
    """The steps as they are done there; unchanged where none would be left, or the place is not known."""
    if place is Place.UNKNOWN:
        return tuple(steps)
    fit = dict.fromkeys(one for step in steps if (one := _there(step, place)))
    return tuple(fit) or tuple(steps)


def suited(error: BootError, launcher: str) -> BootError:
    """The same error, its steps those of its launcher."""
    error.try_ = fitting(error.try_, place_named(launcher))
    return error


@contextmanager
def suiting(launcher: str) -> Iterator[None]:
    """Let the error of a start name the steps of its launcher."""
    try:
        yield
    except BootError as error:
        suited(error, launcher)
        raise


def place_named(launcher: str) -> Place:
    """The place where a launcher starts servers."""
    return Place(launcher) if launcher in {*Place} else Place.UNKNOWN


def _there(step: str, place: Place) -> str:
    for pattern, instead in _rows():
        if pattern.search(step):
            words = instead.get(place, step)
            return (
                step.replace("inside the container", "where the server runs") if words == "{step}" else words
            )
    return step


@cache
def _rows() -> tuple[tuple[re.Pattern[str], dict[str, str]], ...]:
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return tuple((re.compile(row.pop("step")), row) for row in table["row"])
