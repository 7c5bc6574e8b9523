"""A real vLLM is asked about a profile's arguments, in its image, without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.launch.question import question
from pytest_vllm.profile.load import load
from tests.real.server import containers

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.docker]


@pytest.mark.parametrize(
    ("args", "refused"),
    [
        ("", ""),
        ('enable-auto-tool-choice = true\ntool-call-parser = "hermess"', "invalid tool call parser: hermess"),
    ],
)
def test_its_own_parser_answers(image: str, tmp_path: Path, args: str, refused: str) -> None:
    """The profile's arguments are taken, a wrong one is refused, and no container is left."""
    before = containers()
    (tmp_path / "asked.toml").write_text(f'extends = "cpu-smollm2"\n[server.args]\n{args}\n', "utf-8")
    answer = question(load(str(tmp_path / "asked.toml"), tmp_path))

    assert answer is not None
    assert answer.whom == f"vLLM 0.32.0 of {image}"
    assert answer.refused.startswith(refused)
    assert bool(answer.refused) is bool(refused)
    assert containers() <= before
