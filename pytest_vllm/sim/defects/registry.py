"""All defects by name, and how one is declared."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.hooks import POINTS, Hooks
from pytest_vllm.sim.defects.scope import fresh, only

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: Points at which a defect can also be applied to a recording, without a server.
REWRITES = ("json", "reply", "head", "events", "chunk", "metrics")


@dataclass(frozen=True)
class Defect:
    """A named, deterministic fault.

    Args:
        name: dotted, lower case, `area.what-is-wrong`.
        area: the area that the first failing check must name.
        summary: what the server does wrong, one line.
        on: functions by hook point.
        faults: ids of public faults that it stands for.
        versions: the vLLM versions that showed it, in words; empty for any.
        catches: check ids that are expected to fail.
        needs: serve arguments without which it can't show, as on the command line.
        environ: environment without which it can't show.
        profile: the bundled profile on which it shows.
    """

    name: str
    area: str
    summary: str
    on: Mapping[str, Callable[..., Any]]
    faults: tuple[str, ...] = ()
    versions: str = ""
    catches: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    environ: tuple[str, ...] = ()
    profile: str = "sim"

    @property
    def rewrites(self) -> bool:
        """Whether it only rewrites answers, so that it can be applied to recordings."""
        return all(point in REWRITES for point in self.on)


DEFECTS: dict[str, Defect] = {}


def defect(
    name: str, *, on: str, paths: Sequence[str] = (), **facts: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Declare a defect: the decorated function is hooked in at `on`, its docstring is the summary.

    Args:
        name: see Defect, as for `facts`; the area is the name's first part unless given.
        on: one of hooks.POINTS.
        paths: only answers to requests whose path begins so, for points that know the exchange.
        facts: area, faults, versions, catches, needs, environ, profile.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        summary = (function.__doc__ or "").strip().split("\n")[0]
        add(name, summary, {on: only(paths, function) if paths else function}, **facts)
        return function

    return declare


def add(name: str, summary: str, on: Mapping[str, Callable[..., Any]], **facts: Any) -> Defect:
    """Take a defect into the registry, with one function or several.

    Raises ValueError for a name that is taken, a missing summary or an unknown hook point.
    """
    for point in on:
        if point not in POINTS:
            raise ValueError(f"defect {name}: no hook point {point!r}, there are {', '.join(POINTS)}")
    if name in DEFECTS:
        raise ValueError(f"defect {name} is declared twice")
    if not summary:
        raise ValueError(f"defect {name} does not say what the server does wrong")
    known: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()
    }
    area = str(known.pop("area", name.split(".", 1)[0]))
    made = Defect(name, area, summary, dict(on), **known)
    DEFECTS[name] = made
    return made


@cache
def all_defects() -> dict[str, Defect]:
    """Every defect by name, from all modules of `areas`."""
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


def hooks_of(names: Sequence[str]) -> Hooks:
    """The hooks of some defects together, in the order named. Raises ValueError for an unknown name."""
    hooks = Hooks()
    for name in names:
        for point, function in find(name).on.items():
            hooks.add(point, fresh(function))
    return hooks


def needed(names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Serve arguments and environment that some defects need to show."""
    found = [find(name) for name in names]
    words = [word for one in found for word in one.needs]
    pairs = [pair.partition("=") for one in found for pair in one.environ]
    return words, {name: value for name, _, value in pairs}


def listing() -> list[dict[str, Any]]:
    """All defects as plain data, for people and for `--json`."""
    return [
        {
            "name": one.name,
            "area": one.area,
            "summary": one.summary,
            "faults": list(one.faults),
            "versions": one.versions,
            "catches": list(one.catches),
            "needs": list(one.needs),
            "environ": list(one.environ),
            "profile": one.profile,
            "points": sorted(one.on),
            "rewrites": one.rewrites,
        }
        for one in all_defects().values()
    ]


__all__ = ["DEFECTS", "Defect", "add", "all_defects", "defect", "find", "hooks_of", "listing", "needed"]
