"""The grammars, proven against vLLM's own parsers: what a model writes by them comes back as it was meant.

The image's vLLM, or those of the Pythons that `PYTEST_VLLM_PYTHONS` lists, separated as PATH is. No server is
started.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from pytest_vllm.facts import parsers
from tools.sweep.alone_sweep import sweep_alone
from tools.sweep.findings import explained, findings
from tools.sweep.rows import Row, pairs
from tools.sweep.sweep import version_in

pytestmark = [pytest.mark.real, pytest.mark.docker]

PYTHONS = [one for one in os.environ.get("PYTEST_VLLM_PYTHONS", "").split(os.pathsep) if one]
#: One call, two, one without arguments, text, thoughts.
PLAIN = ("single", "parallel", "no-arguments", "text-only", "thought-lines")
#: The image's Python, as one of this machine: it sees the checkout and the folder for temporary files.
INSIDE = """#!/bin/sh
exec docker run --rm -i --network none -v {checkout}:{checkout}:ro -v {temporary}:{temporary}:ro \\
    -e VLLM_LOGGING_LEVEL=ERROR -e HF_HUB_OFFLINE=1 --entrypoint python3 {image} "$@"
"""


@pytest.fixture(scope="module", params=PYTHONS or ["image"])
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has vLLM: those that are listed, else the image's."""
    if PYTHONS:
        return str(request.param)
    path = tmp_path_factory.mktemp("inside") / "python"
    image = request.getfixturevalue("image")
    checkout, temporary = Path(__file__).parents[2], tempfile.gettempdir()
    path.write_text(INSIDE.format(checkout=checkout, temporary=temporary, image=image), "utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="module")
def rows(python: str) -> list[Row]:
    """What comes of the plain cases, for every parser that this vLLM has."""
    version = version_in(python)
    known = {kind: parsers(kind, version) for kind in ("tool", "reasoning")}
    had = [
        pair
        for pair in pairs()
        if (not pair.tool or pair.tool in known["tool"])
        and (not pair.reasoning or pair.reasoning in known["reasoning"])
    ]
    return list(sweep_alone(python, version, had, PLAIN))


def test_every_parser_can_be_made(rows: list[Row]) -> None:
    """The markers of a grammar are the tokens that its parser asks for."""
    assert {row.pair.name: row.broken for row in rows if row.broken} == {}
    assert len(rows) >= 40


def test_plain_answers_come_back_whole(rows: list[Row]) -> None:
    """Whole answers are read right by every parser: it is the grammar that is proven here.

    An exception is the parser's own, and a finding.
    """
    known = {finding.says for finding in findings() if finding.says}
    wrong = {
        f"{row.pair.name} {key}": row.evidence[key]
        for row in rows
        for key, outcome in row.outcomes.items()
        if key.startswith("whole[") and outcome == "failed"
        if not (row.evidence[key].startswith("error ") and any(says in row.evidence[key] for says in known))
    }
    assert wrong == {}


def test_plain_streams_come_back_but_for_what_was_found(rows: list[Row]) -> None:
    """What goes wrong in a stream is a finding: somebody has looked into it."""
    _, rest = explained(rows, findings())

    assert {f"{row.pair.name} {key}": row.evidence[key] for row, key in rest.failures} == {}
