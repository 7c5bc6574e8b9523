"""The profile's own vLLM is asked about its arguments: here a small one, as releases lay theirs out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.launch import question as module
from pytest_vllm.launch.question import HIDDEN, question, read, words_for
from pytest_vllm.profile.load import load

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.profile.reply import Reply

PROFILE = """\
description = "asked"
[server]
launcher = "process"
version = "99.0.0"
model = "org/model"
command = ["{python}", "-m", "vllm.entrypoints.openai.api_server"]
api-key = {{ from-env = "NOT_SET_HERE" }}
[server.args]
{args}
"""
PARSER = """\
import argparse
def make_arg_parser(parser):
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--max-num-seqs", type=int)
    parser.add_argument("--tool-call-parser")
    parser.add_argument("--chat-template")
    parser.add_argument("--tomorrows-flag", action="store_true")
    return parser
def validate_parsed_serve_args(args):
    if args.chat_template:
        open(args.chat_template).close()
"""
SERVER = """\
print("INFO of a program that talks while it is imported")
def validate_api_server_args(args):
    if args.tool_call_parser not in (None, "hermes"):
        raise KeyError(f"invalid tool call parser: {args.tool_call_parser}")
"""
LAYOUTS = {
    "now": ("vllm/utils/argparse_utils.py", "vllm/entrypoints/launchers/{}.py", ("cli_args", "launcher")),
    "before": ("vllm/utils/__init__.py", "vllm/entrypoints/openai/{}.py", ("cli_args", "api_server")),
}


@pytest.fixture(params=LAYOUTS)
def vllm(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `vllm` 99.0.0 with its parser where one release or another holds it."""
    utils, rest, (parser, server) = LAYOUTS[request.param]
    texts = {
        "vllm/__init__.py": '__version__ = "99.0.0"\n',
        utils: "from argparse import ArgumentParser as FlexibleArgumentParser\n",
        rest.format(parser): PARSER,
        rest.format(server): SERVER,
    }
    for place, text in texts.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def answer(folder: Path, args: str, python: str = sys.executable) -> Reply:
    """What is answered about these `[server.args]`."""
    file = folder / "asked.toml"
    file.write_text(PROFILE.format(python=python, args=args), "utf-8")
    found = question(load(str(file), folder, expand=False))
    assert found is not None
    return found


def test_what_it_takes_is_taken(vllm: Path) -> None:
    """Also a flag that no release in the facts has, and the name of the release is its own."""
    said = answer(vllm, 'tomorrows-flag = true\nmax-num-seqs = 8\ntool-call-parser = "hermes"')

    assert said.taken
    assert said.line.startswith("vLLM 99.0.0 of ")
    assert said.line.endswith("was asked, and takes the arguments")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("enable-lora = true", "unrecognized arguments: --enable-lora"),
        ('max-num-seqs = "many"', "argument --max-num-seqs: invalid int value: 'many'"),
        ('tool-call-parser = "hermess"', "invalid tool call parser: hermess"),
    ],
)
def test_what_it_refuses_is_refused_in_its_own_words(vllm: Path, args: str, words: str) -> None:
    assert answer(vllm, args).refused == words


def test_a_file_of_another_machine_is_no_refusal(vllm: Path) -> None:
    """Whether the chat template lies there, this machine cannot know."""
    said = answer(vllm, 'chat-template = "/not/here.jinja"')

    assert (said.refused, said.taken) == ("", False)
    assert "/not/here.jinja" in said.unasked


def test_a_python_without_vllm_is_said_to_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)

    assert answer(tmp_path, "").unasked == "ModuleNotFoundError: No module named 'vllm'"


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    said = answer(tmp_path, "", python="/no/such/python3")

    assert (
        said.unasked
        == "no Python of a vLLM is found behind /no/such/python3 -m vllm.entrypoints.openai.api_server"
    )


def test_the_interpreter_of_a_script_is_found_by_its_first_line(tmp_path: Path) -> None:
    script = tmp_path / "vllm"
    script.write_text(f"#!{sys.executable}\n", "utf-8")
    script.chmod(0o755)

    assert module._python((str(script), "serve")) == sys.executable


def test_no_secret_is_in_the_words(tmp_path: Path) -> None:
    file = tmp_path / "asked.toml"
    file.write_text(PROFILE.format(python="python3", args='api-key = { from-env = "NOT_SET_HERE" }'), "utf-8")

    words = words_for(load(str(file), tmp_path, expand=False))

    assert words == ["org/model", "--api-key", HIDDEN]


def test_a_profile_that_starts_no_vllm_is_not_asked(tmp_path: Path) -> None:
    assert question(load("sim", tmp_path)) is None


@pytest.mark.parametrize("printed", ["", "[]", '{"version": "1"}', "Segmentation fault"])
def test_what_is_no_answer_is_told_by_the_last_complaint(printed: str) -> None:
    assert read(printed, "exec: python3: not found\n", "an:image").unasked == "exec: python3: not found"
