"""All defects by name, and how one is declared."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.hooks import POINTS, Hooks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Points at which a defect can also be applied to a recording, without a server.
REWRITES = ("json", "events", "reply", "head", "metrics")


@dataclass(frozen=True)
class Defect:
    """A named, deterministic fault.

    Args:
        name: dotted, lower case.
        area: the area that the first failing check must name.
        summary: what the server does wrong, one line.
        on: hook points and the functions there.
        faults: ids of public faults that it stands for.
        versions: the vLLM versions that show it, in words; empty for any.
        catches: check ids that are expected to fail.
        needs: serve arguments without which it can't show, as a command line.
    """

    name: str
    area: str
    summary: str
    on: tuple[tuple[str, Callable[..., Any]], ...]
    faults: tuple[str, ...] = ()
    versions: str = ""
    catches: tuple[str, ...] = ()
    needs: str = ""

    @property
    def rewrites(self) -> bool:
        """Whether it only rewrites answers, so that it can be applied to recordings."""
        return all(point in REWRITES for point, _ in self.on)


DEFECTS: dict[str, Defect] = {}


def defect(
    name: str,
    *,
    area: str,
    on: str,
    faults: Sequence[str] = (),
    versions: str = "",
    catches: Sequence[str] = (),
    needs: str = "",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a defect: the decorated function is hooked in at `on`; its docstring is the summary."""
    if on not in POINTS:
        raise ValueError(f"defect {name}: no hook point {on!r}, there are {', '.join(POINTS)}")

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        summary = (function.__doc__ or "").strip().split("\n")[0]
        add(Defect(name, area, summary, ((on, function),), tuple(faults), versions, tuple(catches), needs))
        return function

    return declare


def add(made: Defect) -> None:
    """Take a defect into the registry. Raises ValueError for a name that is taken or a missing summary."""
    if made.name in DEFECTS:
        raise ValueError(f"defect {made.name} is declared twice")
    if not made.summary:
        raise ValueError(f"defect {made.name} says in no docstring what the server does wrong")
    DEFECTS[made.name] = made


def all_defects() -> dict[str, Defect]:
    """Every defect, from all modules of `areas`."""
    from pytest_vllm.sim.defects import areas  # noqa: PLC0415 - areas declare through this module

    for module in pkgutil.iter_modules(areas.__path__):
        importlib.import_module(f"{areas.__name__}.{module.name}")
    return dict(sorted(DEFECTS.items()))


def find(name: str) -> Defect:
    """A defect by name. Raises ValueError with the nearest names."""
    known = all_defects()
    if name not in known:
        near = difflib.get_close_matches(name, known, 3)
        hint = f": did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(f"there is no defect {name!r}{hint}")
    return known[name]


def hooks_of(names: Sequence[str], seed: int = 0) -> Hooks:
    """The hooks of some defects together. Raises ValueError for an unknown name."""
    del seed
    hooks = Hooks()
    for name in names:
        for point, function in find(name).on:
            hooks.add(point, function)
    return hooks
