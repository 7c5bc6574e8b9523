"""The reference of every public name of `pytest_vllm`, for autodoc."""

from __future__ import annotations

import pytest_vllm

#: Where a name lives -> the heading it stands under, in the order of the page.
GROUPS = {
    "face": "Declaring",
    "declare": "Judging, and what is judged",
    "wire": "Requests, servers and recordings",
    "measure": "Measuring",
    "decide": "Verdicts and baselines",
    "profile": "Profiles and what they allow",
    "preflight": "Profiles and what they allow",
    "run": "What a run saw",
    "launch": "What a run saw",
    "schemas": "Judging, and what is judged",
    "scripted": "The scripted engine",
    "locate": "Files and versions",
}
#: What public names take or give back and nobody needs to import. A build names one that is missing here.
REACHED = (
    "decide.verdict.Level",
    "declare.evals.Floor",
    "facts.launchers.LauncherKind",
    "preflight.roofline.Place",
    "preflight.roofline.Standing",
    "profile.caches.CacheLayers",
    "profile.capacity.Pool",
    "profile.capacity.Serving",
    "profile.limits.Limits",
    "profile.model.BootPart",
    "profile.model.DeploymentPart",
    "profile.model.ExpectPart",
    "profile.model.MeasurePart",
    "profile.model.RecordPart",
    "profile.model.ServerPart",
    "profile.model.Waiver",
    "profile.units.Load",
    "schemas.SchemaFault",
    "wire.failure.Failure",
    "wire.metrics.Sample",
)
TEXT = """\
API
===

.. py:module:: pytest_vllm

Everything that a suite, bundled or your own, may import: ``from pytest_vllm import …``. Times are seconds,
sizes bytes, speeds tokens per second, shares fractions, unless a name or its text says otherwise.
"""


def group(name: str) -> str:
    """The heading that a public name stands under. KeyError on a folder that has none."""
    return GROUPS[home(name).split(".")[1]]


def home(name: str) -> str:
    """The module that a public name lives in."""
    folder = pytest_vllm._HOMES.get(name, "declare.checks")  # noqa: SLF001 - the table of homes is not public
    return f"pytest_vllm.{folder}"


def page() -> str:
    """The page, in reStructuredText."""
    parts = [TEXT]
    for heading in dict.fromkeys(GROUPS.values()):
        parts += [heading, "-" * len(heading), ""]
        parts += [_entry(name) for name in pytest_vllm.__all__ if group(name) == heading]
    heading = "Types of what they take and give back"
    parts += [heading, "-" * len(heading), "", "A profile's tables have their keys in :doc:`keys`.", ""]
    parts += [_reached(name) for name in REACHED]
    return "\n".join(parts)


def _reached(name: str) -> str:
    members = "" if name.startswith(("profile.model.", "profile.limits.")) else "   :members:\n"
    return f".. autoclass:: pytest_vllm.{name}\n{members}"


def _entry(name: str) -> str:
    found = getattr(pytest_vllm, name)
    if isinstance(found, type):
        return f".. autoclass:: pytest_vllm.{name}\n   :members:\n"
    if callable(found):
        return f".. autofunction:: pytest_vllm.{name}\n"
    kind = type(found).__name__
    value = "" if name == "__version__" else f"\n   :value: {found!s}"
    text = (
        "The version of pytest-vllm that is installed."
        if name == "__version__"
        else f"A :py:class:`{kind}`."
        if kind in pytest_vllm.__all__
        else f"A {kind.lower()} of checks."
    )
    return f".. py:data:: {name}\n   :type: {kind}{value}\n\n   {text}\n"
