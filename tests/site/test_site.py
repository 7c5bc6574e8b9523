"""The built site: public names, generated pages, and where a reader finds an answer."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

import pytest_vllm
from tests.site.blocks import DOCS, ROOT
from tools.site import lists

if TYPE_CHECKING:
    from pathlib import Path

#: What people ask, and the page and heading that answer it: a click each.
QUESTIONS = {
    "How do I get from a compose file to a gate?": ("tutorial.html", "make-it-a-profile"),
    "How do I install it before it is published?": ("installing.html", "from-the-repository"),
    "Is there an image of the gate?": ("installing.html", "as-an-image"),
    "How do I check profiles before a commit?": ("installing.html", "as-a-pre-commit-hook"),
    "What does a GitHub workflow look like?": ("ci.html", "github"),
    "And in GitLab?": ("ci.html", "gitlab"),
    "How does an application wait for GO in compose?": ("ci.html", "compose-a-gate-before-the-application"),
    "How do I ask every night?": ("ci.html", "systemd-every-night"),
    "How do I run it in Kubernetes?": ("ci.html", "kubernetes-a-job"),
    "What did the upgrade of vLLM change?": ("comparing.html", None),
    "Which keys does [server] have?": ("generated/keys.html", "server"),
    "What does exit status 21 mean?": ("generated/exit-statuses.html", "exit-statuses"),
    "What is --vllm-tier?": ("generated/options.html", "options-of-pytest"),
    "Which checks are there for streams?": ("generated/checks.html", None),
    "How do I accept a known fault?": ("profiles.html", "waivers"),
    "Where do secrets go?": ("profiles.html", "secrets"),
    "Why does my server not start?": ("diagnose.html", "causes"),
    "How do I write a test with the OpenAI client?": ("own-tests.html", "fixtures"),
    "How do I write an eval?": ("own-tests.html", "questions-with-known-answers"),
    "It says UNDECIDED: what now?": ("reports.html", "go-no-go-or-undecided"),
    "How do I compare two servers that run?": ("comparing.html", "two-servers-in-one-run"),
    "How do I begin with a server that fails today?": ("comparing.html", "no-worse-than-before"),
    "What stays behind after a kill?": ("ci.html", "what-is-left-behind"),
    "How do I judge a run again?": ("reports.html", "judge-again-without-a-server"),
    "How often is the gate wrong?": ("trust.html", "healthy-servers-drawn-at-random"),
    "What fields has a Recording?": ("generated/api.html", "requests-servers-and-recordings"),
}


class Page(HTMLParser):
    """The links and ids of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.ids: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what leads somewhere."""
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        if tag == "a":
            self.links.add(given.get("href") or "")
        elif tag in ("script", "img", "link", "iframe"):
            self.loaded.add(given.get("src") or given.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with every warning an error."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-b", "html"]
    done = subprocess.run([*command, str(DOCS), str(out)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_two_clicks_away(question: str, site: Path) -> None:
    """The first page links to the page, and the page's own contents to the heading."""
    name, heading = QUESTIONS[question]

    assert name in Page(site / "index.html").links
    page = Page(site / name)
    if heading:
        assert heading in page.ids
        assert f"#{heading}" in page.links


def test_every_public_name_is_documented(site: Path) -> None:
    """With a signature of its own; and every option, key and check has its page."""
    (inventory,) = site.glob("objects.inv")
    with inventory.open("rb") as file:
        from sphinx.util.inventory import InventoryFile

        found = InventoryFile.load(file, "", lambda base, path: f"{base}{path}")
    names = {name for kind, entries in found.items() if kind.startswith("py:") for name in entries}

    assert {f"pytest_vllm.{name}" for name in pytest_vllm.__all__} <= names


def test_every_page_is_reached(site: Path) -> None:
    """No page loads anything from elsewhere, and no link between pages leads nowhere."""
    pages = {str(path.relative_to(site)): Page(path) for path in site.rglob("*.html")}
    for name, page in pages.items():
        assert not [one for one in page.loaded if re.match(r"(https?:)?//", one)], name
        for link in page.links:
            target, _, anchor = link.partition("#")
            if not target.endswith(".html") or "://" in target:
                continue
            there = str(((site / name).parent / target).resolve().relative_to(site.resolve()))
            assert there in pages, f"{name} links to {link}"
            assert not anchor or anchor in pages[there].ids, f"{name} links to {link}"


def test_what_is_generated_is_not_committed() -> None:
    """The pages are made of the package at build time."""
    listed = subprocess.run(
        ["git", "ls-files", "docs/generated"], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert listed.stdout == ""


def test_exit_statuses_have_their_meaning() -> None:
    """Each status once, none without words."""
    rows = re.findall(r"^\| (\d+) \| .* \| (.+) \|$", lists.exit_statuses(), re.MULTILINE)

    assert [int(status) for status, _ in rows] == [0, 1, 2, 3, 4, 5, 20, 21]
    assert all(len(text) > 1 for _, text in rows)
