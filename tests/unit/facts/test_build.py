"""Making the facts anew, and extending them by one version."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts.timeline import DATA, versions
from tools.facts.build import main
from tools.facts.extend import extend

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ORDER = ["0.1.0", "0.2.0", "0.3.0"]


def record(folder: Path) -> Path:
    """A whole record of three versions of very little."""
    flag = {
        "added": "<=0.1.0",
        "type": [["0.1.0", "choice"], ["0.3.0", "str"]],
        "default": "auto",
        "choices": None,
        "choices_changes": [["0.2.0", {"+": ["b"], "-": []}], ["0.3.0", {"+": [], "-": ["a", "b"]}]],
        "group": "",
    }
    gone = {"added": "0.2.0", "removed": "0.3.0", "last_seen": "0.2.0", "type": "bool", "default": False}
    content: dict[str, dict[str, Any]] = {
        "versions": {"versions": {version: {"date": f"2026-01-0{n}"} for n, version in enumerate(ORDER, 1)}},
        "flags": {"flags": {"--dtype": flag, "--gone": gone}},
        "parsers": {
            "parsers": {"tool": {"x": {"added": "0.2.0", "doc_models": ["b"], "recipe_models_9": ["a"]}}}
        },
        "metrics": {"metrics": {}, "notes": {}, "cache_config_info_fields": {}},
        "routes": {"routes": {}, "api_key_guarded_prefixes": [["0.1.0", ["/v1"]]]},
        "fields": {"classes": {"Old": {"added": "0.2.0", "fields": {"f": {"type": "int"}}}}, "notes": {}},
        "logs": {
            "lines": {"l": {"regex": "x", "fact": "y", "versions": [["0.1.0", "0.1.0"], ["0.3.0", ""]]}}
        },
        "startup_errors": {"errors": {"e": {"match": ["x"], "versions": [["0.2.0", "0.2.0"]]}}},
    }
    folder.mkdir()
    for name, body in content.items():
        (folder / f"{name}.json").write_text(json.dumps(body))
    return folder


def entries(folder: Path, topic: str) -> dict[str, Any]:
    """The entries of a written fact file."""
    found: dict[str, Any] = json.loads((folder / f"{topic}.json").read_text("utf-8"))["entries"]
    return found


def test_a_whole_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything is written in the form that timeline.py reads."""
    target = tmp_path / "data"

    assert main(["--from", str(record(tmp_path / "record")), "--to", str(target)]) == 0

    assert capsys.readouterr().out == f"{target}: 10 topics, newest version 0.3.0\n"
    assert entries(target, "flags") == {
        "dtype": {
            "type": {"@": [["0.1.0", "choice"], ["0.3.0", "str"]]},
            "default": "auto",
            "choices": {"@": [["0.1.0", ["a"]], ["0.2.0", ["a", "b"]], ["0.3.0", []]]},
        },
        "gone": {"added": "0.2.0", "removed": "0.3.0", "type": "bool", "default": False},
    }
    assert entries(target, "parsers") == {"tool/x": {"added": "0.2.0", "models": ["a", "b"]}}
    assert entries(target, "fields") == {"Old.f": {"added": "0.2.0", "type": "int"}}
    assert entries(target, "logs") == {"l": {"regex": "x", "fact": "y", "absent": [["0.2.0", "0.3.0"]]}}
    assert entries(target, "startup-errors") == {"e": {"match": ["x"], "added": "0.2.0", "removed": "0.3.0"}}


def test_a_snapshot_extends_the_shipped_facts(tmp_path: Path) -> None:
    """A newer version adds, ends and changes entries, and nothing else."""
    target, source = tmp_path / "data", tmp_path / "snapshots"
    shutil.copytree(DATA, target)
    source.mkdir()
    seen = {
        "max-model-len": {"type": "int"},
        "port": {"type": "int", "default": 9000},
        "disable-async-output-proc": {"type": "bool"},
        "brand-new": {"type": "bool"},
    }
    snapshot = {
        "version": "0.99.0",
        "date": "2027-01-01",
        "topics": {"flags": {"complete": True, "entries": seen}},
    }
    (source / "0.99.0.snapshot.json").write_text(json.dumps(snapshot))
    before = entries(DATA, "flags")

    assert main(["--from", str(source), "--to", str(target)]) == 0

    after = entries(target, "flags")
    assert list(entries(target, "versions"))[-1] == "0.99.0"
    assert after["max-model-len"] == before["max-model-len"]
    assert after["port"]["default"] == {"@": [["0.6.4.post1", 8000], ["0.99.0", 9000]]}
    assert after["brand-new"] == {"added": "0.99.0", "type": "bool"}
    assert after["disable-async-output-proc"]["absent"] == [
        [before["disable-async-output-proc"]["removed"], "0.99.0"]
    ]
    assert after["enforce-eager"]["removed"] == "0.99.0"
    assert after["enable-reasoning"] == before["enable-reasoning"]
    assert (target / "routes.json").read_text("utf-8") == (DATA / "routes.json").read_text("utf-8")


def test_an_incomplete_snapshot_only_adds() -> None:
    """A running server does not show every metric: what is not seen is not gone."""
    topics: dict[str, dict[str, Any]] = {
        "versions": {"entries": {"0.1.0": {}}},
        "metrics": {"entries": {"a": {"type": "gauge"}}},
    }
    seen = {"complete": False, "entries": {"b": {"type": "counter"}}}

    after = extend(topics, [{"version": "0.2.0", "date": "2027-01-01", "topics": {"metrics": seen}}])

    assert after["metrics"]["entries"] == {"a": {"type": "gauge"}, "b": {"added": "0.2.0", "type": "counter"}}
    assert topics["metrics"]["entries"] == {"a": {"type": "gauge"}}


def test_only_newer_versions_extend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A snapshot of a known version is refused in one line."""
    snapshot = {"version": "0.32.0", "date": "2026-10-18", "topics": {}}
    (tmp_path / "0.32.0.snapshot.json").write_text(json.dumps(snapshot))

    assert main(["--from", str(tmp_path), "--to", str(DATA)]) == 4

    assert capsys.readouterr().err == (
        f"{tmp_path}: snapshot of 0.32.0: the facts already reach {versions()[-1]}, "
        "only newer versions can be added\n"
    )


def test_a_folder_of_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without facts is refused in one line."""
    assert main(["--from", str(tmp_path)]) == 4

    assert "no record of vLLM's versions and no snapshot of one" in capsys.readouterr().err
