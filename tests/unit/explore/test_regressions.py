"""What failed is written once, read again under another name of the model, and lines may be edited."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.declare.explorations import Fault
from pytest_vllm.run.regressions import MOST, file_of, read, write
from pytest_vllm.run.trials import Trial
from pytest_vllm.wire.recording import Recording, Request
from tests.unit.explore.fakes import SERVER

if TYPE_CHECKING:
    from pathlib import Path


def trial(text: str = "Hi", model: str = "m") -> Trial:
    """One request, and what followed from it."""
    asked = Request("POST", "/v1/completions", json={"model": model, "prompt": text}, headers={"X-A": "b"})
    count = Request("POST", "/tokenize", json={"prompt": text})
    rows = (Recording("whole", asked, status=500), Recording("oracle.count[0]", count, status=200))
    return Trial({"a": 1}, rows, (Fault("served.error", "whole: 500"),))


def test_a_trial_comes_back_as_it_was_asked_without_what_followed(tmp_path: Path) -> None:
    file = file_of(tmp_path, "a b/c")
    write(file, [trial()], SERVER, 7)
    (found,), wrong = read(file, SERVER)

    assert file.name == "a-b-c.regressions.jsonl"
    assert wrong == []
    assert found.requests == {"whole": trial().recordings[0].request}


def test_the_server_s_own_model_is_asked_under_its_new_name(tmp_path: Path) -> None:
    file = file_of(tmp_path, "p")
    write(file, [trial(), trial(model="adapter")], SERVER, 7)
    found, _ = read(file, replace(SERVER, model="other"))

    assert {one.requests["whole"].json["model"] for one in found} == {"other", "adapter"}


def test_a_trial_is_written_once(tmp_path: Path) -> None:
    file = file_of(tmp_path, "p")
    ids = [write(file, [trial(), trial("Ho")], SERVER, seed) for seed in (1, 2)]

    assert ids[0] == ids[1]
    assert len(file.read_text("utf-8").splitlines()) == 2


def test_lines_that_are_no_regressions_are_named_and_the_others_asked(tmp_path: Path) -> None:
    file = file_of(tmp_path, "p")
    write(file, [trial()], SERVER, 1)
    row = {
        "id": "x",
        "requests": {"whole": {"method": "GET", "path": "http://x/", "headers": {}, "json": None}},
    }
    with file.open("a", encoding="utf-8") as end:
        end.write(f"# a comment\n\nnot json\n{json.dumps(row)}\n[]\n")
    found, wrong = read(file, SERVER)

    assert len(found) == 1
    assert [line.partition(" is")[0] for line in wrong] == [f"{file.name}, line {at}" for at in (4, 5, 6)]


def test_only_the_newest_are_asked(tmp_path: Path) -> None:
    file = file_of(tmp_path, "p")
    write(file, [trial(str(at)) for at in range(MOST + 2)], SERVER, 1)
    found, wrong = read(file, SERVER)

    assert [len(found), found[0].requests["whole"].json["prompt"]] == [MOST, str(MOST + 1)]
    assert "only the newest" in wrong[0]


def test_no_file_is_no_regression(tmp_path: Path) -> None:
    assert read(file_of(tmp_path, "p"), SERVER) == ([], [])
