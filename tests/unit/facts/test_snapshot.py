"""Taking a snapshot of an installed vLLM: here a package that looks like one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.locate import PACKAGE
from tools.facts.snapshot import metrics, routes

if TYPE_CHECKING:
    from pathlib import Path

VLLM = {
    "vllm/__init__.py": '__version__ = "0.99.0+cpu"\n',
    "vllm/utils.py": "import argparse\nclass FlexibleArgumentParser(argparse.ArgumentParser): ...\n",
    "vllm/entrypoints/__init__.py": "",
    "vllm/entrypoints/openai/__init__.py": "",
    "vllm/entrypoints/openai/cli_args.py": """
import argparse, json

def human_readable_int(text): ...

def optional(convert):
    def _optional_type(text):
        return convert(text)
    return _optional_type

def make_arg_parser(parser):
    parser.add_argument("--enforce-eager", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--tensor-parallel-size", "-tp", type=int, default=1)
    parser.add_argument("--max-model-len", type=optional(human_readable_int))
    parser.add_argument("--compilation-config", type=optional(json.loads), default=object())
    parser.add_argument("--dtype", choices=["auto", None, "float16"], default="auto")
    parser.add_argument("--lora_modules", nargs="+")
    parser.add_argument("--middleware", action="append", default=[])
    parser.add_argument("--seed", type=optional(float))
    return parser
""",
    "vllm/tool_parsers.py": """
class ToolParserManager:
    @classmethod
    def list_registered(cls):
        return ["hermes", "new"]
""",
    "vllm/reasoning.py": """
class ReasoningParserManager:
    @classmethod
    def list_registered(cls):
        return ["qwen3"]
""",
}


def take(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the snapshot with this vLLM on the path."""
    path = os.pathsep.join([str(folder), str(PACKAGE.parent)])
    command = [sys.executable, "-m", "tools.facts.snapshot", "--to", str(folder / "out"), *arguments]
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a package `vllm` in it."""
    for name, text in VLLM.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def test_flags_and_parsers(installed: Path) -> None:
    """Types in the words of the facts, through vLLM's wrappers; defaults that JSON can say."""
    done = take(installed, "--date", "2027-01-01")

    file = installed / "out" / "0.99.0.snapshot.json"
    assert (done.returncode, done.stdout) == (0, f"{file}: 8 flags, 3 parsers\n")
    taken: dict[str, Any] = json.loads(file.read_text("utf-8"))
    assert (taken["version"], taken["date"]) == ("0.99.0", "2027-01-01")
    assert taken["topics"]["flags"] == {
        "complete": True,
        "entries": {
            "enforce-eager": {"type": "bool", "default": False},
            "tensor-parallel-size": {"type": "int", "default": 1},
            "max-model-len": {"type": "int", "default": None},
            "compilation-config": {"type": "json"},
            "dtype": {"type": "choice", "default": "auto", "choices": ["auto", "float16"]},
            "lora-modules": {"type": "list", "default": None},
            "middleware": {"type": "append", "default": []},
            "seed": {"type": "float", "default": None},
        },
    }
    assert list(taken["topics"]["parsers"]["entries"]) == ["tool/hermes", "tool/new", "reasoning/qwen3"]


def test_answers_of_a_server_are_added(installed: Path) -> None:
    """Paths and metrics, not complete: a server shows only what is switched on."""
    (installed / "openapi.json").write_text(json.dumps({"paths": {"/ping": {"get": {}, "post": {}}}}))
    (installed / "metrics.txt").write_text("# TYPE vllm:requests counter\nvllm:requests_total 1\n")

    take(
        installed,
        *("--openapi", str(installed / "openapi.json")),
        *("--metrics", str(installed / "metrics.txt")),
    )

    topics = json.loads((installed / "out" / "0.99.0.snapshot.json").read_text("utf-8"))["topics"]
    assert topics["routes"] == {"complete": False, "entries": {"/ping": {"methods": ["GET", "POST"]}}}
    assert topics["metrics"] == {"complete": False, "entries": {"vllm:requests_total": {"type": "counter"}}}


def test_without_vllm(tmp_path: Path) -> None:
    """One line says where it was looked for."""
    done = take(tmp_path)

    assert done.returncode == 4
    assert done.stderr == (
        "no snapshot: make_arg_parser is in none of vllm.entrypoints.launchers.cli_args, "
        "vllm.entrypoints.openai.cli_args: tell snapshot.py where this vLLM keeps it\n"
    )


def test_names_of_metrics() -> None:
    """Counters end in `_total`, their creation times are no metrics, other families are not vLLM's."""
    text = (
        "# TYPE vllm:a counter\n# TYPE vllm:a_created gauge\n# TYPE vllm:b_total counter\n"
        "# TYPE vllm:c histogram\n# TYPE http_requests counter\n"
    )

    assert metrics(text) == {
        "vllm:a_total": {"type": "counter"},
        "vllm:b_total": {"type": "counter"},
        "vllm:c": {"type": "histogram"},
    }
    assert routes({"paths": {}}) == {}
