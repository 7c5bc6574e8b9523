"""A scripted profile is given a model and a processor before it starts, and its scripts a markup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.profile.model import Profile, ServerPart, Waiver
from pytest_vllm.profile.parsers import with_parsers
from pytest_vllm.scripted.grammar import Call, Script
from pytest_vllm.scripted.stage import INSIDE, PROCESSOR, staged
from pytest_vllm.scripted.writing import Writer

if TYPE_CHECKING:
    from pathlib import Path

PARSERS = {"tool-call-parser": "hermes", "reasoning-parser": "deepseek_r1"}


def profile(launcher: str, *, scripted: bool = True, **args: Any) -> Profile:
    given = {"launcher": launcher, "scripted": scripted, "model": "m", "version": "0.32.0"}
    return Profile(server=ServerPart.model_validate({**given, "args": {**PARSERS, **args}}))


def test_a_process_finds_model_and_processor_in_the_folder(tmp_path: Path) -> None:
    server = staged(profile("process"), tmp_path / "stage").server

    assert server.model == str(tmp_path / "stage" / "model")
    assert server.env["PYTHONPATH"] == str(tmp_path / "stage")
    assert server.args["logits-processors"] == [PROCESSOR]
    module, _, name = PROCESSOR.partition(":")
    assert f"class {name}" in (tmp_path / "stage" / f"{module}.py").read_text("utf-8")
    assert (tmp_path / "stage" / "model" / "model.safetensors").is_file()


@pytest.mark.parametrize("launcher", ["docker", "podman"])
def test_a_container_finds_them_mounted_read_only(launcher: str, tmp_path: Path) -> None:
    server = staged(profile(launcher), tmp_path / "stage").server

    assert server.volumes == [f"{tmp_path / 'stage'}:{INSIDE}:ro"]
    assert (server.model, server.env["PYTHONPATH"]) == (f"{INSIDE}/model", INSIDE)


def test_the_template_is_told_what_the_parsers_need(tmp_path: Path) -> None:
    thinking: dict[str, Any] = {"reasoning-parser": "deepseek_v3"}
    server = staged(profile("process", **thinking), tmp_path / "stage").server

    assert server.args["default-chat-template-kwargs"] == '{"thinking": true}'
    assert "default-chat-template-kwargs" not in staged(profile("process"), tmp_path / "other").server.args


def test_the_simulator_is_only_told_of_the_processor(tmp_path: Path) -> None:
    server = staged(profile("sim"), tmp_path / "stage").server

    assert (server.model, server.args["logits-processors"]) == ("m", [PROCESSOR])
    assert not (tmp_path / "stage").exists()


@pytest.mark.parametrize("one", [profile("docker", scripted=False), profile("attach")])
def test_other_profiles_stay_as_they_are(one: Profile, tmp_path: Path) -> None:
    assert staged(one, tmp_path / "stage") is one


def test_other_parsers_take_the_place_of_the_profiles() -> None:
    args = with_parsers(profile("docker"), "qwen3_coder", "qwen3").server.args

    assert (args["tool-call-parser"], args["reasoning-parser"]) == ("qwen3_coder", "qwen3")
    assert args["enable-auto-tool-choice"] is True
    assert "reasoning-parser" not in with_parsers(profile("docker"), None, "none").server.args


def test_the_faults_of_one_parser_are_not_waived_for_another() -> None:
    known = Waiver.model_validate(
        {"check": "a.b", "reason": "r", "issue": "o/r#1", "versions": ">=0", "until": "2030-01-01"}
    )
    one = profile("docker").model_copy(update={"waive": [known]})

    assert with_parsers(one, None, None).waive == [known]
    assert with_parsers(one, "qwen3_coder", None).waive == []
    named = with_parsers(one, "hermes", "deepseek_r1")
    assert with_parsers(named, "hermes", "deepseek_r1").waive == named.waive
    kept = named.model_copy(update={"waive": [known]})
    assert with_parsers(kept, "hermes", "deepseek_r1").waive == [known]
    assert with_parsers(kept, "hermes", "none").waive == []


@pytest.mark.parametrize(
    ("tool", "reasoning", "near"),
    [("hermess", None, "did you mean 'hermes'"), (None, "deepseek_r2", "did you mean 'deepseek_r1'")],
)
def test_a_parser_that_the_version_lacks_is_refused(tool: str, reasoning: str, near: str) -> None:
    with pytest.raises(ValueError, match=near):
        with_parsers(profile("docker"), tool, reasoning)


def test_a_server_that_runs_already_has_its_parsers() -> None:
    with pytest.raises(ValueError, match="runs already"):
        with_parsers(profile("attach"), "hermes", None)


def test_a_script_is_written_in_the_markup_of_both_parsers() -> None:
    writer = Writer.of(PARSERS)
    text = writer.write(Script("Hm.", "Sure.", (Call("ping", {"a": "é"}),), "Done."))

    assert [
        text.index(part) for part in ("<think>", "Hm.", "</think>", "Sure.", "<tool_call>", "é", "Done.")
    ] == sorted(
        text.index(part) for part in ("<think>", "Hm.", "</think>", "Sure.", "<tool_call>", "é", "Done.")
    )
    assert {"<think>", "</think>", "<tool_call>", "</tool_call>"} <= set(writer.markers)


def test_pieces_are_letters_and_whole_markers() -> None:
    writer = Writer.of(PARSERS)

    assert writer.pieces("a<think>é b</think>") == ["a", "<think>", "é", " ", "b", "</think>"]
    assert "".join(writer.pieces(writer.write(Script("x", "y", ())))) == writer.write(Script("x", "y", ()))


def test_without_a_reasoning_parser_there_are_no_thoughts() -> None:
    assert Writer.of({"tool-call-parser": "hermes"}).write(Script("Hm.", "Sure.", ())) == "Sure."


@pytest.mark.parametrize("launcher", ["sim", "process"])
@pytest.mark.parametrize(("parser", "why"), [("openai", "Harmony"), ("nobodys", "no grammar says")])
def test_a_parser_that_cannot_be_scripted_says_why(
    launcher: str, parser: str, why: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"tool-call-parser": parser}
    one = profile(launcher, **given)

    with pytest.raises(LookupError, match=why):
        staged(one, tmp_path / "stage")
    assert not (tmp_path / "stage").exists()
