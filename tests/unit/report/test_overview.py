"""The page that leads to every run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.report import overview

if TYPE_CHECKING:
    from pathlib import Path


def extract(run: str, answer: str = "GO", **more: Any) -> dict[str, Any]:
    identity = {"version": "0.32.0", "model": "qwen3-30b", "simulated": False}
    part = {"answer": answer, "why": "1567 checks decided, none failed", "identity": identity, **more}
    about = {"id": run, "started": "2026-11-30T15:32:29+00:00", "seconds": 57.9, "tier": "gate"}
    return {"run": {**about, "partial": False}, "profiles": {"spark": part}}


def test_every_run_is_listed_the_newest_first_with_a_link_where_it_lies(tmp_path: Path) -> None:
    """A run whose folder was removed stays, without its link."""
    (tmp_path / "runs" / "two").mkdir(parents=True)
    overview.add(tmp_path, extract("one", "NO-GO"))
    text = overview.add(tmp_path, extract("two")).read_text("utf-8")

    assert "<h1>2 runs</h1>" in text
    assert text.index("GO</strong>") < text.index("NO-GO</strong>")
    assert 'href="runs/two/report.html"' in text
    assert "runs/one/report.html" not in text


def test_a_run_that_is_written_again_is_one_row(tmp_path: Path) -> None:
    """A gate that is resumed does not stand there twice."""
    overview.add(tmp_path, extract("one"))

    assert "<h1>1 run</h1>" in overview.add(tmp_path, extract("one")).read_text("utf-8")


def test_a_server_that_did_not_boot_has_a_row_without_version(tmp_path: Path) -> None:
    """Its extract says nothing of a server."""
    text = overview.add(tmp_path, extract("one", "DID NOT BOOT", identity={})).read_text("utf-8")

    assert 'class="DID-NOT-BOOT"' in text


def test_a_broken_line_costs_itself_only(tmp_path: Path) -> None:
    """Somebody's editor, or a full disk, cut the file."""
    overview.add(tmp_path, extract("one"))
    with (tmp_path / overview.LINES).open("a") as lines:
        lines.write('{"run": "t\n[]\n')

    assert "<h1>2 runs</h1>" in overview.add(tmp_path, extract("two")).read_text("utf-8")


def test_the_page_does_not_grow_for_ever(tmp_path: Path) -> None:
    """The oldest lines go."""
    for place in range(overview.MOST // 250 + 1):
        many = extract(f"run-{place}")
        many["profiles"] = {f"p{n}": many["profiles"]["spark"] for n in range(250)}
        overview.add(tmp_path, many)

    assert len((tmp_path / overview.LINES).read_text("utf-8").splitlines()) == overview.MOST
