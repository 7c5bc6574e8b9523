"""The HTML report: one page that loads nothing and runs only its own script."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from markupsafe import escape

from pytest_vllm.report import html
from tests.golden.sample_runs import RUNS, go, no_go, undecided
from tests.unit.report.documents import document, hostile

if TYPE_CHECKING:
    from pytest_vllm.report.record import RunRecord


class Page(HTMLParser):
    """Tags, attributes and text of a page, and where its tags do not nest."""

    VOID = frozenset({"meta", "input", "br"})

    def __init__(self, text: str) -> None:
        """Read it."""
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the tag."""
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag that closes itself, as SVG has them."""
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """The innermost open tag is the one that closes."""
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every tag of that name."""
        return [attributes for name, attributes in self.tags if name == tag]


def page(record: RunRecord) -> Page:
    return Page(html.render(document(record)))


def test_the_first_screen_of_an_undecided_run_says_what_was_not_decided_and_why() -> None:
    head = html.render(document(undecided())).partition("</header>")[0]

    for row in document(undecided())["results"]:
        if row["verdict"] == "undecided":
            assert row["check"] in head
            assert str(escape(row["reason"])) in head


@pytest.mark.parametrize("name", RUNS)
def test_a_page_is_well_formed_and_loads_nothing(name: str) -> None:
    """Every opened tag is closed, ids are unique, and nothing is fetched from anywhere."""
    read = page(RUNS[name]())
    loading = [
        tag for tag, attributes in read.tags if "src" in attributes or tag in ("link", "iframe", "img")
    ]
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]

    assert loading == []
    assert (read.wrong, read.open) == ([], [])
    assert len(ids) == len(set(ids))
    assert not re.search(r"url\(|@import", html.render(document(RUNS[name]())))


def test_the_policy_names_the_pages_own_style_and_script() -> None:
    """The hashes in the policy are those of what stands in the page: it works, and nothing else runs."""
    text = html.render(document(no_go()))
    policy = page(no_go()).all("meta")[1]["content"] or ""

    for tag in ("style", "script"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert body
        digest = base64.b64encode(hashlib.sha256(body[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert not any("style" in attributes or "onclick" in attributes for _, attributes in page(no_go()).tags)


def test_what_a_server_said_is_text_in_a_page() -> None:
    """Markup from outside makes no tag."""
    read = page(hostile())

    assert len(read.all("script")) == 1
    assert read.all("img") == []
    assert "<img src=x onerror=alert(1)>" in read.text
    assert "\x1b" not in read.text


def test_a_page_answers_first_and_shows_the_evidence() -> None:
    """The answer is the heading; request, excerpt, log, rerun and curl are there."""
    read = page(no_go())
    first = read.text.index("NO-GO", read.text.index("pytest-vllm, "))

    for part in (
        "3 MUST checks failed",
        "tools.stream.arguments-join",
        "> POST /v1/chat/completions",
        'delta.tool_calls[0].function.arguments "unit"',
        "partial JSON could not be parsed",
        "--vllm-check=tools.stream.arguments-join",
        "echo POST http://127.0.0.1:49153",
    ):
        assert first < read.text.index(part), part


def test_a_page_says_simulated_in_title_and_text() -> None:
    """Whoever sees only the tab's title knows too."""
    text = html.render(document(go()))

    assert "<title>GO sim (simulated)</title>" in text
    assert "No vLLM and no GPU was involved." in text
    assert "imulated: the" not in html.render(document(no_go()))


def test_worst_checks_come_first() -> None:
    """Failures before what could not be decided; passes are folded."""
    badges = [row["data-verdict"] for row in page(undecided()).all("details") if "data-verdict" in row]

    assert badges == ["undecided", "undecided"]


def test_passes_are_folded_by_suite_and_named() -> None:
    """What passed is listed by id and has no block of its own: a page of a thousand passes opens at once."""
    text = html.render(document(go()))

    assert "<summary>chat, 18</summary>" in text
    assert [button["data-verdict"] for button in page(no_go()).all("button")] == ["fail"]


def test_the_first_screen_names_the_causes_before_the_table() -> None:
    """Each cause stands before the table of suites, with a link to its evidence that leads somewhere."""
    text = html.render(document(no_go()))

    before, _, after = text.partition("<main>")
    assert "2 conformance" not in before
    links = re.findall(r'<a href="#(c\d+)">evidence</a>', before)
    assert len(links) == 3
    assert all(f'id="{link}"' in after for link in links)


def test_a_page_of_a_thousand_passes_is_small() -> None:
    """Under 200 kB and 2,000 elements."""
    row = document(go())["results"][0]
    many = {
        **document(go()),
        "results": [{**row, "check": f"chat.envelope.fact-number-{n}"} for n in range(1200)],
    }
    text = html.render(many)

    assert len(text.encode()) < 200_000
    assert len(re.findall(r"<[a-z]", text)) < 2_000
