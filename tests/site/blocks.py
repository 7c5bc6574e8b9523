"""The fenced blocks of a page: `python -m tests.site.blocks PAGE NUMBER` prints that command."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: A block whose first line names a file is that file.
NAMED = re.compile(r"(?:#|//) (\S*[./]\S+|Jenkinsfile)\n")
STATUS = re.compile(r"exit status is (\d+)")


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Args:
        page: where it stands.
        kind: the word after the fence, such as `sh`.
        text: what it holds.
        after: the text up to the next block.
    """

    page: Path
    kind: str
    text: str
    after: str

    @property
    def file(self) -> str | None:
        """The file that it is, by its first line."""
        found = NAMED.match(self.text)
        return found[1] if found else None

    @property
    def status(self) -> int:
        """The exit status that the text after it promises; 0 where it says nothing."""
        found = STATUS.search(self.after)
        return int(found[1]) if found else 0


def blocks(page: Path) -> list[Block]:
    """Every block of a page, in order."""
    parts = FENCE.split(page.read_text("utf-8"))
    return [
        Block(page, kind, text, after)
        for kind, text, after in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    ]


def files(page: Path) -> dict[str, str]:
    """Every block of a page that is a file, by its name."""
    return {block.file: block.text for block in blocks(page) if block.file}


def shell(page: Path) -> list[Block]:
    """Every block of a page that is for a shell."""
    return [block for block in blocks(page) if block.kind == "sh"]


if __name__ == "__main__":
    print(shell(ROOT / sys.argv[1])[int(sys.argv[2]) - 1].text)
