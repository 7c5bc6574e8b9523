"""Who may import what, read from the source: the architecture as a test instead of as prose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pytest_vllm
from tests.contract.imports import ROOT, Import, imports_of, modules

if TYPE_CHECKING:
    from pathlib import Path

#: Module (or folder) -> what of ours it may import at run time. The longest match holds.
#: A type that is only named (`if TYPE_CHECKING`) binds nothing and may come from anywhere, except in ALONE.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "verdict": (),
    "specs": (),
    "locate": (),
    "images": (),
    "metrics": (),
    "baseline": ("verdict",),
    "waivers": ("verdict",),
    "answers": ("wire.sse", "wire.recording", "schemas", "verdict"),
    "facts": ("facts", "locate"),
    "target": ("facts", "wire.recording"),
    "wire.sse": (),
    "wire": ("wire",),
    "measure.statistics": (),
    "measure": ("measure", "metrics", "wire", "target"),
    "schemas": ("schemas", "locate", "verdict"),
    "profile": ("profile", "facts", "locate", "target"),
    "profile.importers.running": ("profile", "launch.docker", "launch.podman", "launch.protocol"),
    "preflight": ("preflight", "profile", "facts", "locate"),
    "launch": ("launch", "profile", "facts", "locate"),
    "report": (
        "report",
        "verdict",
        "baseline",
        "runrecord",
        "specs",
        "locate",
        "wire.redact",
        "wire.sse",
        "wire.recording",
        "wire.store",
        "wire.curl",
        "profile.model",
    ),
    "sim": ("sim", "facts", "locate"),
    "scripted": ("scripted", "locate"),
    "scripted.findings_waived": ("scripted", "locate", "profile.parsers"),
    "scripted.waiving": ("scripted", "locate", "profile", "verdict", "waivers"),
}

#: Modules whose types count too: they share nothing with the rest, not even a name.
ALONE = ("verdict", "baseline", "metrics", "wire.sse", "measure.statistics", "sim")

#: Processes of their own: both patch the standard library of whoever imports them, or could.
LOCUST = ("measure.swarm.master", "measure.swarm.stream", "measure.swarm.worker")

#: Third-party package -> the modules that may import it at all.
THIRD_PARTY: dict[str, tuple[str, ...]] = {
    "docker": ("launch.docker", "launch.podman"),
    "openai": ("own_tests", "schemas.build"),
    "typer": ("cli",),
    "prometheus_client": ("metrics",),
    "jsonschema": ("schemas", "report"),
    "psutil": ("launch",),
    "pydantic": ("profile",),
    "yaml": ("profile.importers", "profile.exporters"),
    "locust": LOCUST,
    "gevent": LOCUST,
}

#: Packages that are only ever imported inside a function: `pytest --help` must not pay for them.
LAZY = ("docker", "openai")

#: The pytest face. Everything else runs without pytest.
PYTEST_FACE = (
    "plugin",
    "gateplugin",
    "options",
    "collect",
    "selection",
    "planning",
    "checks",
    "exchanges",
    "measurements",
    "session",
    "judge",
    "closing",
    "own_tests",
    "remembered",
    "workers",
    "remembered",
    "static",
)

PACKAGE = modules("pytest_vllm")
SUITES = modules("suites")


def module_name(path: Path) -> str:
    """`pytest_vllm/wire/sse.py` -> `wire.sse`."""
    parts = path.with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def rule_for(module: str) -> tuple[str, ...] | None:
    """The longest entry of MAY_IMPORT that covers a module; None when the module is free."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if (rule := MAY_IMPORT.get(".".join(parts[:length]))) is not None:
            return rule
    return None


def covered(module: str, names: tuple[str, ...]) -> bool:
    """Whether a module is one of these or lies in one of them."""
    return any(module == name or module.startswith(f"{name}.") for name in names)


def read(path: Path) -> list[Import]:
    """The imports of a file of the checkout."""
    package = ".".join(path.parts[:-1])
    return imports_of((ROOT / path).read_text("utf-8"), package)


def ours(found: Import) -> str | None:
    """The module within pytest_vllm that an import names; None for others."""
    return found.module.removeprefix("pytest_vllm.") if found.within("pytest_vllm") else None


def against_the_rules(module: str, found: list[Import]) -> list[str]:
    """What a module imports and may not, as `line: name`."""
    rule = rule_for(module)
    alone = covered(module, ALONE)
    wrong = []
    for one in found:
        target, binds = ours(one), not one.types_only
        if target is not None and rule is not None and (alone or binds) and not covered(target, rule):
            wrong.append(f"{one.line}: {one.module}")
        if one.within("pytest", "_pytest") and not one.types_only and not covered(module, PYTEST_FACE):
            wrong.append(f"{one.line}: {one.module} outside the pytest face")
        for package, places in THIRD_PARTY.items():
            if one.within(package) and not one.types_only and not covered(module, places):
                wrong.append(f"{one.line}: {one.module} outside {', '.join(places)}")
        if one.within(*LAZY) and not one.types_only and not one.lazy and module != "schemas.build":
            wrong.append(f"{one.line}: {one.module} at import time; import it inside a function")
    return wrong


@pytest.mark.parametrize("path", PACKAGE, ids=str)
def test_a_module_imports_only_what_its_layer_may(path: Path) -> None:
    """The tables above hold for every module of the package."""
    assert against_the_rules(module_name(path), read(path)) == []


@pytest.mark.parametrize("path", SUITES, ids=str)
def test_suites_import_the_public_names_alone(path: Path) -> None:
    """A suite is written the way a person's own is: public names, the standard library, jsonschema."""
    public = {f"pytest_vllm.{name}" for name in pytest_vllm.__all__}
    area = ".".join(path.parts[:-1])
    wrong = [
        f"{one.line}: {one.module}"
        for one in read(path)
        if (one.within("pytest_vllm") and one.module not in public)
        or (one.within("suites") and not one.within(area))
        or one.within("pytest", "httpx", "openai", "docker")
    ]

    assert wrong == []


def test_every_entry_of_the_tables_names_a_module() -> None:
    """A rule for a module that is gone protects nothing."""
    known = {module_name(path) for path in PACKAGE}
    named = {*MAY_IMPORT, *ALONE, *PYTEST_FACE, *(name for places in THIRD_PARTY.values() for name in places)}

    assert {name for name in named if name not in known} == set()


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        ("verdict", "import pytest", True),
        ("verdict", "from pytest_vllm import wire", True),
        ("verdict", "def f():\n    from pytest_vllm.wire.sse import Event", True),
        ("baseline", "from pytest_vllm.verdict import Verdict", False),
        ("sim.api.chat", "if TYPE_CHECKING:\n    from pytest_vllm.wire.sse import Event", True),
        ("sim.api.chat", "from pytest_vllm.facts import flags", False),
        ("sim.api.chat", "from ...wire import sse", True),
        ("launch.process", "if TYPE_CHECKING:\n    from pytest_vllm.runrecord import Run", False),
        ("launch.process", "from pytest_vllm.runrecord import Run", True),
        ("launch.docker", "import docker", True),
        ("launch.docker", "def f():\n    import docker.errors", False),
        ("launch.process", "def f():\n    import docker", True),
        ("measure.swarm.crew", "def f():\n    import locust", True),
        ("measure.swarm.worker", "import gevent", False),
        ("report.json", "from pytest_vllm.wire.client import Client", True),
    ],
)
def test_the_tables_can_refuse(module: str, source: str, wrong: bool) -> None:
    """Each kind of forbidden import is seen, wherever it stands in the file."""
    package = f"pytest_vllm.{module.rpartition('.')[0]}".rstrip(".")

    assert bool(against_the_rules(module, imports_of(source, package))) is wrong
