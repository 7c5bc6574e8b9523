"""Launchers by name. Each lies in the module of its name, which is imported when it is used."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING

from pytest_vllm.facts.launchers import LAUNCHERS

if TYPE_CHECKING:
    from pytest_vllm.launch.protocol import Launcher


def launcher_for(name: str) -> Launcher:
    """The launcher of that name. Raises ValueError with the nearest name."""
    if name not in LAUNCHERS:
        near = difflib.get_close_matches(name, LAUNCHERS, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ValueError(f"there is no launcher {name!r}; {hint}there are {', '.join(LAUNCHERS)}")
    module = import_module(f"pytest_vllm.launch.{name}")
    launcher: Launcher = getattr(module, f"{name.capitalize()}Launcher")()
    return launcher
