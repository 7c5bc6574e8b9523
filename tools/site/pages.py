"""All generated pages, written below docs/generated/ before Sphinx reads the sources: never committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.site import api, lists
from tools.site.links import DOCS, PAGES, ROOT, for_site

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = DOCS / "generated"
EXAMPLE = """\
# A complete folder

A profile, checks and tests with fixtures. [How it is run](../own-tests.md).

"""


def write() -> None:
    """Write what changed, and remove what is not made any more."""
    kept = set()
    for name, text in pages():
        path = FOLDER / name
        kept.add(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
    for path in FOLDER.rglob("*.*"):
        if path not in kept:
            path.unlink()


def pages() -> Iterator[tuple[str, str]]:
    """(path below docs/generated/, text) of every page."""
    for name, text in lists.checks():
        yield f"{name}.md", text
    yield "options.md", lists.options()
    yield "commands.md", lists.commands()
    yield "keys.md", lists.keys()
    yield "exit-statuses.md", lists.exit_statuses()
    yield "rules.md", lists.rules()
    yield "defects.md", lists.defects()
    yield "fixtures.md", lists.own_fixtures()
    yield "api.rst", api.page()
    yield "example.md", _example()
    for source, page in PAGES.items():
        if source.endswith(".md") and source != "suites/CATALOGUE.md":
            yield page.removeprefix("generated/"), for_site((ROOT / source).read_text("utf-8"), source, page)


def _example() -> str:
    """The files of docs/example, whole."""
    parts = [EXAMPLE]
    for path in sorted((DOCS / "example").rglob("*")):
        if path.suffix in (".py", ".toml"):
            shown = path.relative_to(DOCS / "example")
            parts.append(f"## {shown}\n\n```{{literalinclude}} ../example/{shown}\n```\n")
    return "\n".join(parts)
