"""Links as a reader of the checkout follows them, turned into links between pages of the site."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

#: Files of the checkout that have a page of the site: which one, from docs/ on.
PAGES = {
    "README.md": "generated/readme.md",
    "ARCHITECTURE.md": "generated/architecture.md",
    "CONTRIBUTING.md": "generated/contributing.md",
    "CHANGELOG.md": "generated/changelog.md",
    "suites/CATALOGUE.md": "generated/checks.md",
    "docs/example": "generated/example.md",
    "pytest_vllm/sim/README.md": "generated/simulator.md",
    "pytest_vllm/facts/generated/README.md": "generated/facts.md",
}
LINK = re.compile(r"\[([^][]*)\]\(([^()#\s]*)(#[^()\s]*)?\)")


def for_site(text: str, source: str, page: str) -> str:
    """Markdown of a file of the checkout, with links that work on the site.

    Args:
        text: the Markdown.
        source: where it lies in the checkout, such as `docs/ci.md`.
        page: where it lies below docs/ when the site is built, such as `ci.md`.

    A link to a file without a page becomes the file's name. Raises ValueError on a link to nothing.
    """

    def one(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        if not target or "://" in target or target.startswith("mailto:"):
            return found[0]
        path = os.path.normpath(PurePosixPath(source).parent / target)
        if not (ROOT / path).exists():
            raise ValueError(f"{source} links to {target}, which is not in the checkout: mend the link")
        there = PAGES.get(path) or (path.removeprefix("docs/") if _is_page(path) else None)
        if there is None:
            return words if path in words else f"{words} (`{path}`)"
        return f"[{words}]({os.path.relpath(there, PurePosixPath(page).parent)}{anchor})"

    fenced = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else LINK.sub(one, part) for part in fenced)


def _is_page(path: str) -> bool:
    return path.startswith("docs/") and path.endswith(".md")
