"""Who may import what, read from the source: the architecture as a test instead of as prose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pytest_vllm
from tests.contract.imports import ROOT, Import, imports_of, modules
from tests.contract.layers import ALONE, BETWEEN_SUITES, EDGES, LAYERS, LAZY, MAY_STILL, PARTS, THIRD_PARTY

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = modules("pytest_vllm")
#: Clients' scripts are programs of other environments, and no suites.
SCRIPTS = ("suites", "clients", "scripts")
SUITES = [path for path in modules("suites") if path.parts[:3] != SCRIPTS]
TOOLS = modules("tools")
TABLES = "tests/contract/layers.py"


def module_name(path: Path) -> str:
    """`pytest_vllm/wire/sse.py` -> `wire.sse`."""
    parts = path.with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "__init__"


def layer_of(module: str) -> str:
    """The folder (or loose module) that a module belongs to."""
    return module.split(".", maxsplit=1)[0]


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
    layer = layer_of(module)
    _, allowed = LAYERS[layer]
    wrong = []
    for one in found:
        target = ours(one)
        if target is not None and not covered(target, (layer, *allowed)):
            wrong.append(f"{one.line}: {one.module}: {layer} may not import it ({TABLES})")
        if target is not None and module in ALONE and not covered(target, MAY_STILL.get(module, ())):
            wrong.append(f"{one.line}: {one.module}: {module} stands alone ({TABLES})")
        for package, places in THIRD_PARTY.items():
            if one.within(package) and not one.types_only and not covered(module, places):
                wrong.append(f"{one.line}: {one.module} outside {', '.join(places)} ({TABLES})")
        if one.within(*LAZY) and not one.types_only and not one.lazy:
            wrong.append(f"{one.line}: {one.module} at import time; import it inside a function")
    return wrong


def edges() -> set[tuple[str, str]]:
    """Which folder imports which, types included; suites and tools among them."""
    found = set()
    known = set(LAYERS)
    for paths, name in ((PACKAGE, ""), (SUITES, "suites"), (TOOLS, "tools")):
        for path in paths:
            source = name or layer_of(module_name(path))
            for one in read(path):
                target = ours(one)
                if target is not None:
                    layer = layer_of(target)
                    found.add((source, layer if layer in known else "__init__"))
    return {(source, target) for source, target in found if source != target}


def circles(arrows: set[tuple[str, str]]) -> set[str]:
    """The parts that lie on a circle: those that are left when parts without arrows out are taken away."""
    left = set(arrows)
    while True:
        sources = {source for source, _ in left}
        kept = {(source, target) for source, target in left if target in sources}
        if kept == left:
            return {source for source, _ in left}
        left = kept


@pytest.mark.parametrize("path", PACKAGE, ids=str)
def test_a_module_imports_only_what_its_folder_may(path: Path) -> None:
    """The tables hold for every module of the package, for names in type hints too."""
    assert against_the_rules(module_name(path), read(path)) == []


def test_no_folders_import_each_other_in_a_circle() -> None:
    """Neither by the tables nor by what is written, type-only imports included."""
    assert circles({(one, other) for one, (_, allowed) in LAYERS.items() for other in allowed}) == set()
    assert circles(edges()) == set()


def test_the_house_stays_small() -> None:
    """Few parts at the upper levels, few arrows between them: a reader can hold them all."""
    assert len({*LAYERS, "suites", "tools"}) <= PARTS
    assert len(edges()) <= EDGES


@pytest.mark.parametrize("path", [path for path in modules("suites") if path.parts[:3] == SCRIPTS], ids=str)
def test_a_clients_script_imports_nothing_of_ours(path: Path) -> None:
    """It runs where a client is installed and pytest-vllm may not be."""
    assert [one.module for one in read(path) if one.within("pytest_vllm", "suites", "pytest")] == []


@pytest.mark.parametrize("path", SUITES, ids=str)
def test_suites_import_the_public_names_alone(path: Path) -> None:
    """A suite is written the way a person's own is: public names, the standard library, jsonschema."""
    public = {f"pytest_vllm.{name}" for name in pytest_vllm.__all__}
    area = ".".join(path.parts[:-1])
    wrong = [
        f"{one.line}: {one.module}"
        for one in read(path)
        if (one.within("pytest_vllm") and one.module not in public)
        or (one.within("suites") and not one.within(area, *BETWEEN_SUITES.get(area, ())))
        or one.within("pytest", "httpx", "openai", "docker")
    ]

    assert wrong == []


def test_nothing_that_is_shipped_imports_the_tools() -> None:
    """`tools/` stays in the checkout."""
    assert [str(path) for path in (*PACKAGE, *SUITES) if any(one.within("tools") for one in read(path))] == []


def test_every_entry_of_the_tables_names_a_module() -> None:
    """A rule for a module that is gone protects nothing."""
    known = {module_name(path) for path in PACKAGE}
    allowed = {name for _, names in LAYERS.values() for name in names}
    named = {*LAYERS, *allowed, *ALONE, *(name for places in THIRD_PARTY.values() for name in places)}

    assert {name for name in named if name not in known} == set()
    assert {layer_of(name) for name in known} == set(LAYERS)


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        ("decide.verdict", "import pytest", True),
        ("decide.verdict", "from pytest_vllm import wire", True),
        ("decide.verdict", "def f():\n    from pytest_vllm.wire.sse import Event", True),
        ("decide.baseline", "from pytest_vllm.decide.verdict import Verdict", False),
        ("decide.verdict", "from pytest_vllm.decide.waivers import covers", True),
        ("sim.api.chat", "if TYPE_CHECKING:\n    from pytest_vllm.wire.sse import Event", True),
        ("sim.api.chat", "from pytest_vllm.facts import flags", False),
        ("sim.api.chat", "from ...wire import sse", True),
        ("launch.process", "if TYPE_CHECKING:\n    from pytest_vllm.report.record import Run", True),
        ("launch.process", "from pytest_vllm.profile.model import Profile", False),
        ("launch.docker", "import docker", True),
        ("launch.docker", "def f():\n    import docker.errors", False),
        ("launch.process", "def f():\n    import docker", True),
        ("run.gate", "import pytest", True),
        ("face.hooks", "import pytest", False),
        ("measure.swarm.crew", "def f():\n    import locust", True),
        ("measure.swarm.worker", "import gevent", False),
        ("report.json", "from pytest_vllm.run.gate import Gate", True),
    ],
)
def test_the_tables_can_refuse(module: str, source: str, wrong: bool) -> None:
    """Each kind of forbidden import is seen, wherever it stands in the file."""
    package = f"pytest_vllm.{module.rpartition('.')[0]}".rstrip(".")

    assert bool(against_the_rules(module, imports_of(source, package))) is wrong


@pytest.mark.parametrize(
    ("arrows", "found"),
    [
        ({("a", "b"), ("b", "c")}, set()),
        ({("a", "b"), ("b", "a")}, {"a", "b"}),
        ({("a", "b"), ("b", "c"), ("c", "b")}, {"a", "b", "c"}),
    ],
)
def test_circles_are_seen(arrows: set[tuple[str, str]], found: set[str]) -> None:
    """Whatever lies on a circle, or only leads into one, is named."""
    assert circles(arrows) == found
