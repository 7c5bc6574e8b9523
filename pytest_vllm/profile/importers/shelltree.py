"""The syntax tree of a shell script, with what people paste around it taken away line by line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node, Parser

    from pytest_vllm.profile.importers.origin import Origin

_PROMPT = re.compile(r"^[ \t]*\$ ", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*```[^\n]*$", re.MULTILINE)
_MARKUP = re.compile(r"^[ \t]*<!--[^\n]*-->[ \t]*$", re.MULTILINE)
#: A comment that people write between the lines of a command: a call of nothing.
_ASIDE = re.compile(r"^([^'\"\n]*?(?<=[ \t])|)`[ \t]*#[^`\n]*`", re.MULTILINE)
_COMMENTED = re.compile(r"(?<=\s)\\[ \t]+(?:#.*)?$|\\[ \t]+$")
_COMMENT = re.compile(r"[ \t]*#")
#: A bracket that closes nothing, in the pattern of an expansion: the grammar takes it for one that does.
_BRACKET = re.compile(r"(\$\{\w+(?:##?|%%?|//?)[^}\n'\"\[\]\\]*)\\?\](?=[^}\n]*\})")
_GOES_ON = re.compile(r"[ \t]*-|[ \t]+\S")
#: Nodes whose words are text to the shell, not syntax of its own.
_TEXTS = frozenset(
    {"string", "raw_string", "ansi_c_string", "word", "comment", "heredoc_body", "regex", "heredoc_end"}
)


@dataclass(frozen=True)
class Script:
    """A script that was parsed.

    Args:
        root: its syntax tree.
        source: the bytes that the tree's positions count in.
        first: the number of its first line in the file.
        mended: lines where a shell would have ended a command at a comment, and whoever wrote it did not.
        between: those of them that are a comment and nothing else.
        at: the line that reads it, for a script in a file of its own.
    """

    root: Node
    source: bytes
    first: int
    mended: tuple[int, ...]
    between: tuple[int, ...] = ()
    at: int | None = None

    def line(self, node: Node) -> int:
        """The line of the file that a node begins on."""
        return self.first + int(node.start_point[0]) if self.at is None else self.at

    def text(self, node: Node) -> str:
        """What stands there."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def cut_short(self, node: Node) -> int:
        """The line on which a command ends at a comment that ends in a backslash; 0 where it does not."""
        behind = self.source[node.end_byte :].split(b"\n", 1)[0]
        ends = re.match(rb"[ \t]*#.*\\[ \t]*$", behind)
        return self.line(node) + self.text(node).count("\n") if ends else 0

    def shown(self, node: Node) -> str:
        """What stands there as a note quotes it: one line, not too long."""
        text = " ".join(self.text(node).replace("\\\n", " ").split())
        return text if len(text) <= 60 else f"{text[:57]}…"


def parsed(text: str, origin: Origin, first: int = 1) -> Script:
    """The tree of a script. Raises ImportProblem for a quote that is not closed.

    Args:
        text: the script; prompts, fences and comments behind backslashes are taken away, lines stay.
        origin: what messages name.
        first: the number of the text's first line.
    """
    text = _ASIDE.sub(r"\1", _MARKUP.sub("", _FENCE.sub("", _PROMPT.sub("", text))))
    mended, lines = _mended(_BRACKET.sub(r"\1']'", text).split("\n"))
    source = "\n".join(mended).encode()
    places = tuple(first + at for at in lines)
    between = tuple(first + at for at in lines if mended[at] == "\\")
    script = Script(_parser().parse(source).root_node, source, first, places, between)
    for node in nodes(script.root):
        text = script.text(node)
        if node.type == "ERROR" and text[:1] in "'\"`" and text.count(text[:1]) % 2:
            raise origin.problem(script.line(node), f"a {text[:1]} is not closed", "close the quote")
    return script


def nodes(node: Node) -> Iterator[Node]:
    """A node and everything in it."""
    yield node
    for child in node.children:
        yield from nodes(child)


def leaves(node: Node) -> Iterator[Node]:
    """The words of a node: nothing in them is syntax."""
    if node.type in _TEXTS or not node.children:
        if node.is_named and node.type != "comment" and node.end_byte > node.start_byte:
            yield node
        return
    for child in node.children:
        yield from leaves(child)


@cache
def _parser() -> Parser:
    import tree_sitter  # noqa: PLC0415 - only importing a script pays for it
    import tree_sitter_bash  # noqa: PLC0415

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _mended(lines: list[str]) -> tuple[list[str], list[int]]:
    """Comments behind backslashes, and between the lines of a command, as whoever wrote them meant them."""
    found, touched, goes_on = [], [], False
    for at, line in enumerate(lines):
        if goes_on and _COMMENT.match(line) and _resumed(lines, at):
            found.append("\\")
            touched.append(at)
            continue
        mended = _COMMENTED.sub(lambda _: "\\", line) if not _COMMENT.match(line) else line
        if mended != line and at + 1 < len(lines):
            touched.append(at)
        else:
            mended = line
        found.append(mended)
        goes_on = mended.endswith("\\") and not _COMMENT.match(line)
    return found, touched


def _resumed(lines: list[str], at: int) -> bool:
    """Whether the command goes on behind the comment lines that begin here."""
    while at < len(lines) and _COMMENT.match(lines[at]):
        at += 1
    return at < len(lines) and _GOES_ON.match(lines[at]) is not None


def here(text: str) -> str:
    """The text of a here-document: backslashes go before a line end, `$`, a backtick and themselves only."""
    return re.sub(r"\\([$`\\\n])", lambda one: one[1].strip("\n"), text)
