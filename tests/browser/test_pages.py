"""The pages in a real browser: wide, on a phone, in the dark and on paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.report import compared_page, html, overview, past_page
from pytest_vllm.report.compare.comparison import compare
from pytest_vllm.report.compare.history import changed, columns
from tests.browser.chromium import PHONE, WIDE
from tests.golden import five, sample_runs
from tests.golden.sample_parts import passes, record, run_of, server
from tests.unit.report.compare import runs
from tests.unit.report.compare.test_past_page import TABLE
from tests.unit.report.documents import document

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.chromium import Chromium

#: Of a page that says GO after every check: kilobytes, elements.
LARGEST, MOST_NODES = 200, 2000
#: As many as a gate of the bundled suites decides.
AREAS, EACH = 34, 46
#: What lies outside of a window of that width and cannot be scrolled to there.
OUTSIDE = """
[...document.querySelectorAll("body *")].filter(one => {
  const box = one.getBoundingClientRect();
  return box.width > 0 && box.right > innerWidth + 1 && !one.closest("pre, .wide:has(svg)");
}).map(one => `${one.tagName} ${one.textContent.slice(0, 40)}`).slice(0, 5)
"""
BARRIERS = "axe.run(document).then(found => found.violations.map(one => `${one.id}: ${one.nodes[0].html}`))"
UNFOLD = "for (const one of document.querySelectorAll('details')) one.open = true"
FOLDED = "document.querySelectorAll('details.check:not([open])').length"


def go() -> str:
    """A GO of as many checks as the bundled suites have."""
    every = [one for place in range(AREAS) for one in passes(f"area{place:02}", EACH)]
    return html.render(document(record({"sim": run_of(server())}, every)))


def compared() -> str:
    """Two runs between which much differs, in long words."""
    before = runs.part_of(flags={"dtype": "auto"}, capabilities=["tools", "auth", "metrics"])
    after = runs.part_of(flags={"dtype": "half"}, capabilities=[], max_model_len=1024)
    return compared_page.page(compare(runs.run_of(before), runs.run_of(after), ("p", "p")))


def every_run() -> str:
    """Runs of two profiles: one is GO, one said much, one did not start."""
    row = {"run": "20261130-153229-d9d7", "started": "2026-11-30T15:32:29+00:00", "seconds": 974.2}
    spark = {**row, "tier": "gate", "profile": "spark-fp8", "version": "0.32.0", "simulated": False}
    spark["model"] = "RedHatAI/Qwen3-30B-A3B-Instruct-2507-FP8"
    good = {**spark, "answer": "GO", "why": "1208 checks decided, none failed"}
    bad = {**spark, "answer": "NO-GO", "why": "11 MUST checks failed", "tier": "partial"}
    dead = {**spark, "answer": "DID NOT BOOT", "why": "the GPU's memory is taken", "version": ""}
    return overview.page(Path(), [good, bad, dead, {**good, "profile": "sim", "simulated": True}])


PAGES: dict[str, Callable[[], str]] = {
    "go": go,
    "no-go-cause": lambda: html.render(document(five.broken("tools.arguments-end-early"))),
    "no-go-speed": lambda: html.render(document(sample_runs.no_go())),
    "undecided": lambda: html.render(document(sample_runs.undecided())),
    "two-profiles": lambda: html.render(document(sample_runs.two_profiles())),
    "did-not-boot": lambda: html.render(document(sample_runs.did_not_boot())),
    "waivers": lambda: html.render(document(sample_runs.waivers())),
    "compared": compared,
    "runs": every_run,
    "history": lambda: past_page.page("chat", TABLE, columns(TABLE), changed(TABLE)),
}


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Each page as a file."""
    path = tmp_path / f"{request.param}.html"
    path.write_text(PAGES[request.param](), "utf-8")
    return path


@pytest.mark.parametrize("look", ["wide", "phone", "dark"])
def test_a_page_holds_no_barrier_and_hides_nothing(
    page: Path, look: str, chromium: Chromium, axe: str, pictures: Path
) -> None:
    chromium.open(page, PHONE if look == "phone" else WIDE, dark=look == "dark")
    (pictures / f"{page.stem}-{look}.png").write_bytes(chromium.picture())
    chromium.run(f"{UNFOLD}; {axe}; 0")

    assert chromium.run(OUTSIDE) == []
    assert chromium.run(BARRIERS) == []


def test_a_page_is_printed_with_its_evidence(page: Path, chromium: Chromium, pictures: Path) -> None:
    """Paper cannot be clicked; on the screen everything is folded again afterwards."""
    chromium.open(page)
    before = chromium.run(FOLDED)
    chromium.run(f"window.folded = []; addEventListener('beforeprint', () => folded.push({FOLDED})); 0")
    (pictures / f"{page.stem}.pdf").write_bytes(chromium.paper())

    assert chromium.run("folded") == [0]
    assert chromium.run(FOLDED) == before


def test_the_link_of_a_cause_opens_its_evidence(tmp_path: Path, chromium: Chromium) -> None:
    path = tmp_path / "page.html"
    path.write_text(PAGES["no-go-cause"](), "utf-8")
    chromium.open(path)
    link = "document.querySelector('.causes a')"
    target = f"document.querySelector({link}.hash)"
    assert chromium.run(f"{target}.open") is False
    chromium.run(f"{link}.click()")

    assert chromium.run(f"new Promise(done => setTimeout(() => done({target}.open)))") is True


def test_a_go_is_small(chromium: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "go.html"
    path.write_text(go(), "utf-8")
    chromium.open(path)

    assert path.stat().st_size < LARGEST * 1000
    assert chromium.run("document.getElementsByTagName('*').length") < MOST_NODES
