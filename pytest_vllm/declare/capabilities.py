"""Capabilities that a project declares beside the bundled ones: what is asked, and what the answer means."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.facts.capabilities import CAPABILITIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.wire.recording import Recording, Request
    from pytest_vllm.wire.server import Server

_NAME = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")


@dataclass(frozen=True)
class OwnCapability:
    """A capability of a project's own.

    Args:
        name: lower case, words joined by hyphens or dots.
        probe: the request that finds it out.
        present: whether an answer below 400 means that it is there; None: any does.
        expected: whether checks that need it fail where it is absent, instead of not being run.
        file: the file that declares it: an xdist controller imports that to know it.
    """

    name: str
    probe: Callable[[Server], Request]
    present: Callable[[Recording], bool] | None
    expected: bool
    file: str


OWN: dict[str, OwnCapability] = {}


def capability(
    name: str,
    *,
    probe: Callable[[Server], Request],
    present: Callable[[Recording], bool] | None = None,
    expected: bool = False,
) -> str:
    """Declare a capability of your own, for `needs=[…]` of checks; best in `conftest.py`. Returns its name.

    Every server is asked once, before anything is recorded. Broken is not absent: it is absent where the
    answer says that it is unknown or not enabled (404, 405, 501, a refusal in those words).

    Args:
        name: lower case, words joined by hyphens or dots; not a bundled one.
        probe: the request to send.
        present: whether an answer below 400 means that it is there; left out, any does.
        expected: where it is absent, checks that need it fail; otherwise they are not run.

    Raises ValueError for a name that is malformed, bundled, or declared elsewhere already.
    """
    frame = inspect.currentframe()
    file = frame.f_back.f_code.co_filename if frame and frame.f_back else ""
    if not _NAME.fullmatch(name):
        raise ValueError(f"capability {name!r}: lower-case words, such as 'our-rag'")
    if name in CAPABILITIES:
        raise ValueError(f"capability {name!r} is bundled: choose another name, such as 'our-{name}'")
    if name in OWN and OWN[name].file != file:
        raise ValueError(f"capability {name!r} is declared twice: in {OWN[name].file} and in {file}")
    OWN[name] = OwnCapability(name, probe, present, expected, file)
    return name


def every_capability() -> tuple[str, ...]:
    """The names of all capabilities: the bundled ones, then the project's own."""
    return (*CAPABILITIES, *OWN)
