"""Pages of what does not hold in versions of vLLM, made from kept runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.report.compare.extract import ExtractError
from tests.unit.report.compare.runs import part_of, run_of
from tools.conformance.__main__ import LOADING, areas
from tools.conformance.keep import LONGEST, Run, every, keep
from tools.conformance.keep import run_of as kept_run
from tools.conformance.pages import pages
from tools.site.links import DOCS

if TYPE_CHECKING:
    from pathlib import Path

GOOD = {f"b.{number}": "pass" for number in range(40)}
BEFORE = GOOD | {"a.one": "pass", "a.two[x]": "waived", "a.three": "undecided"}
AFTER = GOOD | {"a.one": "fail", "a.two[x]": "pass", "a.three": "pass"}


def run(version: str, results: dict[str, str], **reasons: str) -> Run:
    """A kept run of a version."""
    part = part_of(results=results, version=version)
    part["reasons"] = {name.replace("_", "."): why for name, why in reasons.items()}
    return kept_run(run_of(part))


@pytest.fixture
def made() -> dict[str, str]:
    """The pages of two versions."""
    before = run("0.2.0", BEFORE, a_three="this process was held up for 3 s: no response came")
    return dict(pages([before, run("0.3.0", AFTER, a_one="said <b>no</b> | here")]))


def test_a_page_for_all_one_for_each_version_and_one_for_each_two(made: dict[str, str]) -> None:
    assert sorted(made) == [
        "conformance.md",
        "conformance/0.2.0-to-0.3.0.md",
        "conformance/0.2.0.md",
        "conformance/0.3.0.md",
    ]


def test_every_fault_with_what_it_is_in_each_version(made: dict[str, str]) -> None:
    index = made["conformance.md"]

    assert "| `a.one` | holds | fails |" in index
    assert "| `a.two[x]` | fails, known | holds |" in index
    assert "a.three" not in index, "what was not judged is not a fault"
    assert "[0.2.0 to 0.3.0](conformance/0.2.0-to-0.3.0.md): 1 breaks clients, 0 of behaviour" in index


def test_it_says_how_it_was_made(made: dict[str, str]) -> None:
    index = made["conformance.md"]

    assert "Much of" not in "".join(made.values())
    assert "areas: a, b." in index
    assert "CPU builds" in index
    assert "2026-11-29" in made["conformance/0.3.0.md"]


def test_a_version_says_what_was_seen_and_what_was_not_judged(made: dict[str, str]) -> None:
    assert "| `a.one` | fails | said \\<b\\>no\\</b\\> \\| here |" in made["conformance/0.3.0.md"]
    assert "## Not judged: 1" in made["conformance/0.2.0.md"]


def test_neighbours_say_what_breaks(made: dict[str, str]) -> None:
    notes = made["conformance/0.2.0-to-0.3.0.md"]

    assert notes.startswith("# From vLLM 0.2.0 to 0.3.0")
    assert "a.one" in notes


def test_a_spoilt_run_publishes_no_failure_that_is_not_known() -> None:
    """An answer that came too late on a busy machine may look like one that is wrong."""
    spoilt = run("0.2.0", {"a.one": "fail", "a.two": "undecided", "a.known": "waived"})
    made = dict(pages([spoilt, run("0.3.0", {"a.one": "pass", "a.two": "pass", "a.known": "waived"})]))

    assert "**Much of 0.2.0 was not judged**: 2 of its 3 checks" in made["conformance.md"]
    assert "Much of 0.3.0" not in made["conformance.md"]
    assert "Much of 0.2.0" in made["conformance/0.2.0-to-0.3.0.md"]
    assert "a.one" not in made["conformance.md"]
    assert "| `a.known` | fails, known | fails, known |" in made["conformance.md"]
    assert "## Not judged: 2" in made["conformance/0.2.0.md"]
    assert "a.one" not in made["conformance/0.2.0-to-0.3.0.md"]


def test_what_is_kept_is_the_extract_with_short_reasons(tmp_path: Path) -> None:
    folder, runs = tmp_path / "run", tmp_path / "runs"
    folder.mkdir()
    (folder / "extract.json").write_text(json.dumps(run_of(part_of(results=AFTER, version="0.3.0+cpu"))))
    row = {"profile": "p", "check": "a.one", "verdict": "fail", "reason": "x" * 999}
    (folder / "report.json").write_text(json.dumps({"results": [row]}))

    assert keep(folder, runs) == runs / "0.3.0.json"
    assert [(one.version, one.reasons) for one in every(runs)] == [("0.3.0", {"a.one": "x" * LONGEST})]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (run_of(part_of(simulated=True)), "of the simulator"),
        (run_of({"answer": "DID NOT BOOT", "why": "x"}), "did not start"),
        ({**run_of(part_of()), "profiles": {}}, "of 0 profiles"),
    ],
)
def test_what_says_nothing_about_a_version_is_refused(document: dict[str, Any], why: str) -> None:
    with pytest.raises(ExtractError, match=why):
        kept_run(document)


def test_loads_are_not_asked_for() -> None:
    """A shared machine cannot publish speeds."""
    asked = {one.partition("=")[2] for one in areas()}

    assert "chat" in asked
    assert not asked & set(LOADING)
    assert areas(["usage", "chat"]) == ["--vllm-check=chat", "--vllm-check=usage"]


def test_the_published_pages_are_those_of_the_kept_runs() -> None:
    """`python -m tools.conformance pages` writes them."""
    made = dict(pages(every()))
    published = {
        str(path.relative_to(DOCS)): path.read_text("utf-8")
        for path in [DOCS / "conformance.md", *(DOCS / "conformance").glob("*.md")]
    }

    assert published == made
