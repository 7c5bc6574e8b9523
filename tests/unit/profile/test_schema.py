"""The JSON Schema of profiles, profiles written as TOML, and the tables in the fixtures' README files."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pytest_vllm.locate import data_dir
from pytest_vllm.profile.derived import figures_of
from pytest_vllm.profile.errors import keys_of
from pytest_vllm.profile.hardware import Hardware
from pytest_vllm.profile.load import load, names
from pytest_vllm.profile.modelfile import ModelFile
from pytest_vllm.profile.schema import schema_text
from pytest_vllm.profile.write import to_toml

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

    from tests.unit.profile.conftest import Project

PROFILES = data_dir("fixtures") / "profiles"
SCHEMA: dict[str, Any] = json.loads(schema_text())
BUILT_IN = sorted(path.stem for path in PROFILES.glob("*.toml"))


def test_the_committed_schema_is_current() -> None:
    """Editors see what the loader takes."""
    committed = (PROFILES / "profile.schema.json").read_text("utf-8")

    assert committed == schema_text(), "pytest-vllm schema > fixtures/profiles/profile.schema.json"


def test_the_schema_is_one() -> None:
    """It holds to its own draft."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_profiles_fit_the_schema(name: str) -> None:
    """What the loader takes, the schema takes."""
    profile = tomllib.loads((PROFILES / f"{name}.toml").read_text("utf-8"))

    jsonschema.validate(json.loads(json.dumps(profile, default=str)), SCHEMA)


@pytest.mark.parametrize(
    "wrong",
    [
        "hardwear = 'gb10'",
        "[server]\nlauncher = 'dokcer'",
        "[limits]\nttft = 5",
        "[expect]\ncapabilities = ['strem']",
        "[limits.regression]\ntftf = '5 %'",
        "[server.args]\nenforce-eager = 'yes'",
        "[[waive]]\ncheck = 'a.b'",
    ],
)
def test_the_schema_refuses(wrong: str) -> None:
    """Mistakes show in the editor already."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(json.dumps(tomllib.loads(wrong))), SCHEMA)


def test_every_key_and_flag_is_described() -> None:
    """An editor shows a text for each."""
    silent = [
        f"{name}.{key}"
        for name, table in SCHEMA["$defs"].items()
        for key, body in table.get("properties", {}).items()
        if "description" not in body
    ]
    flags = SCHEMA["$defs"]["ServerPart"]["properties"]["args"]["properties"]

    assert silent == []
    assert flags["enable-reasoning"]["description"].startswith(
        "since vLLM 0.7.3; deprecated since 0.9.0.1; removed in 0.10.0; instead: --reasoning-parser"
    )


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_written_profile_is_read_back(name: str, tmp_path: Path) -> None:
    """`pytest-vllm show` prints a profile that works."""
    profile = load(name, tmp_path, expand=False)
    file = tmp_path / f"{name}.toml"
    file.write_text(to_toml(profile, figures_of(profile, tmp_path)), "utf-8")

    read = load(str(file), tmp_path, expand=False)

    assert read == profile.model_copy(update={"source": file})


def test_everything_is_written(project: Project) -> None:
    """Lists of tables, odd keys, long lists, tables as JSON, dates and units survive."""
    project.write(
        """
defects = ["a.b"]
[server]
image = "x"
env = { "ODD" = "quote \\" and \\\\ and ü" }
volumes = ["/a/very/long/path/to/somewhere:/a", "/another/very/long/path/to/somewhere:/b", "/c:/d"]
[server.args]
speculative-config = { method = "ngram", nested = { list = [1, "two", true] } }
lora-modules = ["a=/x", "b=/y"]
[limits]
gpu-memory = { max = "40 GB" }
kv-cache = { min = "80 % of ceiling" }
ttft = { min = "1ms", max = "1m30s", at = "2k prompt" }
prefix-hit-rate = { min = "90 %" }
[[waive]]
check = "a.b[case one]"
reason = "r"
issue = "https://example.com/1"
versions = ">=0.27"
until = 2027-03-31
[deployment]
kind = "systemd"
service = { User = "vllm", Environment = ["A=1", "B=2"] }
proxy = { rate-per-s = 20, burst = 40, read-timeout = "300s" }
"""
    )
    profile = project.load()
    file = project.write(to_toml(profile), "written")

    assert project.load("written") == profile.model_copy(update={"name": "written", "source": file})


def test_names_of_the_built_in_profiles(tmp_path: Path) -> None:
    """The folder holds nothing that is no profile."""
    assert [name.name for name in names(tmp_path)] == BUILT_IN


@pytest.mark.parametrize(("folder", "model"), [("hardware", Hardware), ("models", ModelFile)])
def test_every_key_is_in_the_readme(folder: str, model: type[BaseModel]) -> None:
    """Whoever writes a file of their own finds each key explained, and no others."""
    text = (data_dir("fixtures") / folder / "README.md").read_text("utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]

    assert sorted(re.findall(r"`([^`]+)`", " ".join(rows))) == sorted(keys_of(model))
