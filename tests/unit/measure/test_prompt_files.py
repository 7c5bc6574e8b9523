"""Files of prompts: beside the declaration of the load, then in the root; a missing one is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.measure.workload import Kind, Prompts, Workload, with_files

if TYPE_CHECKING:
    from pathlib import Path


def load(name: str) -> Workload:
    return Workload(kinds=(Kind(prompts=Prompts(file=name)), Kind("other")))


@pytest.mark.parametrize("places", [("tests", "."), (".",), ("tests",)])
def test_the_first_folder_that_has_it(tmp_path: Path, places: tuple[str, ...]) -> None:
    for place in places:
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / "mine.txt").write_text("When does it leave?\n", "utf-8")

    made = with_files(load("mine.txt"), (tmp_path / "tests", tmp_path))

    assert made.kinds[0].prompts.file == str(tmp_path / places[0] / "mine.txt")
    assert made.kinds[1].prompts.file is None


def test_a_missing_file_is_named_with_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"mine\.txt is missing") as error:
        with_files(load("mine.txt"), (tmp_path / "tests", tmp_path))

    assert f"{tmp_path / 'tests' / 'mine.txt'} nor {tmp_path / 'mine.txt'}" in str(error.value)


@pytest.mark.parametrize("text", ["", '{"question": "Why?"}\n', "{broken\n"])
def test_a_file_without_prompts_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.txt").write_text(text, "utf-8")

    with pytest.raises(ValueError, match=r"mine\.txt cannot be read"):
        with_files(load("mine.txt"), (tmp_path,))
