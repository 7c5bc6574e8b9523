"""The documents name what there is, and only that."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

import pytest_vllm
from pytest_vllm.decide.verdict import EXIT_CODES, EXIT_NO_BOOT, Verdict
from pytest_vllm.face import fixtures as own_tests
from pytest_vllm.face.options import add_options
from pytest_vllm.profile.model import GIVEN, Profile
from tests.contract.imports import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")])
README = (ROOT / "README.md").read_text("utf-8")
PROFILES = (ROOT / "docs" / "profiles.md").read_text("utf-8")
EVERYTHING = "\n".join(path.read_text("utf-8") for path in DOCUMENTS)


class OptionNames:
    """Stands where pytest's parser stands, and keeps what is registered."""

    def __init__(self) -> None:
        self.options: list[str] = []
        self.ini: list[str] = []

    def getgroup(self, *_: object) -> OptionNames:
        return self

    def addoption(self, name: str, **_: Any) -> None:
        self.options.append(name)

    def addini(self, name: str, *_: object, **__: Any) -> None:
        self.ini.append(name)


def registered() -> OptionNames:
    """The options of the plugin."""
    names = OptionNames()
    add_options(names)  # type: ignore[arg-type]
    return names


def profile_keys() -> list[str]:
    """Every key of a profile, as TOML writes it."""
    return [name for name in _keys(Profile) if name not in GIVEN]


def _keys(table: type[BaseModel]) -> list[str]:
    found = []
    for name, field in table.model_fields.items():
        found.append((field.alias or name).replace("_", "-"))
        parts = [part for part in (field.annotation, *getattr(field.annotation, "__args__", ())) if part]
        for part in parts:
            if hasattr(part, "model_fields") and part.__module__ == Profile.__module__:
                found += _keys(part)
    return found


@pytest.mark.parametrize("option", registered().options)
def test_an_option_is_documented(option: str) -> None:
    """Every option is in the README or in docs/."""
    assert re.search(rf"{option}\b", EVERYTHING)


def test_documents_name_no_other_option() -> None:
    """An option that is only in the documents is a promise nobody keeps."""
    assert set(re.findall(r"--vllm-[a-z-]*[a-z]", EVERYTHING)) <= set(registered().options)


def test_documents_name_no_other_setting() -> None:
    """The same for ini keys; fixtures and a field of vLLM's requests share their prefix."""
    known = {*registered().ini, *vars(own_tests), "vllm_xargs"}

    assert set(re.findall(r"`(vllm_[a-z_]+)`", EVERYTHING)) <= known


@pytest.mark.parametrize("fixture", [name for name in vars(own_tests) if re.fullmatch(r"vllm_[a-z_]+", name)])
def test_a_fixture_is_documented(fixture: str) -> None:
    """Every fixture for own tests is in docs/own-tests.md, except what only wires others together."""
    internal = {"vllm_session", "vllm_profile_name"}

    assert fixture in internal or f"`{fixture}`" in (ROOT / "docs" / "own-tests.md").read_text("utf-8")


@pytest.mark.parametrize(
    "path", sorted((ROOT / "fixtures" / "profiles").glob("*.toml")), ids=lambda p: p.stem
)
def test_a_profile_is_documented(path: Path) -> None:
    """Every built-in profile is in docs/profiles.md and describes itself."""
    assert f"`{path.stem}`" in PROFILES
    written = tomllib.loads(path.read_text("utf-8"))
    assert written.get("description") or written.get("extends")


@pytest.mark.parametrize("key", profile_keys())
def test_a_profile_key_is_documented(key: str) -> None:
    """Every key is in docs/profiles.md."""
    assert re.search(rf"`[^`\n]*(?<![\w-]){key}(?![\w-])[^`\n]*`", PROFILES)


@pytest.mark.parametrize("verdict", Verdict)
def test_the_readme_explains_a_verdict(verdict: Verdict) -> None:
    """Every word that a check can get has a row."""
    assert f"| {verdict} |" in README


@pytest.mark.parametrize("code", sorted({*EXIT_CODES.values(), EXIT_NO_BOOT, 2, 3, 4}))
def test_the_readme_explains_an_exit_status(code: int) -> None:
    """Every exit status has a row."""
    assert f"| {code} |" in README


def test_the_readme_opens_with_two_commands() -> None:
    """One to a verdict, one to the project's tests; CI runs exactly these."""
    verdict, tests = runpy.run_path(str(ROOT / ".ci" / "readme_command.py"))["commands"]()

    assert verdict.endswith("pytest --vllm-profile=sim")
    assert tests.endswith("pytest -n auto --dist worksteal")


def test_every_dependency_has_a_reason() -> None:
    """CONTRIBUTING says why each was chosen, and pyproject.toml names none twice."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    packages = [re.split(r"[<>=\[;~! ]", line)[0] for line in named]

    assert len(packages) == len(set(packages))
    reasons = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert [name for name in packages if f"| {name} |" not in reasons] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    """Relative links name files of the checkout."""
    targets = re.findall(r"\]\(([^)#]+)\)", document.read_text("utf-8"))

    assert [t for t in targets if "://" not in t and not (document.parent / t).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_in_documents_imports_public_names(document: Path) -> None:
    """`from pytest_vllm import …` in a document works."""
    for names in re.findall(r"from pytest_vllm import ([^\n]+)", document.read_text("utf-8")):
        assert set(re.split(r",\s*", names)) - {"…"} <= set(pytest_vllm.__all__)


def test_documents_name_only_commands_that_exist() -> None:
    """`pytest-vllm NAME` is a command of the companion."""
    shown = subprocess.run(
        [sys.executable, "-m", "pytest_vllm.cli", "--help"], capture_output=True, text=True, check=True
    ).stdout
    named = set(re.findall(r"`pytest-vllm ([a-z]+)", EVERYTHING)) | set(
        re.findall(r"^pytest-vllm ([a-z]+)", EVERYTHING, re.MULTILINE)
    )

    assert {name for name in named if not re.search(rf"\b{name}\b", shown)} == set()
