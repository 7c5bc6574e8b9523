"""Files that a script writes itself, in here-documents: scripts that it runs, configurations, units."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.shellprefix import stripped
from pytest_vllm.profile.importers.shellprinted import Printed
from pytest_vllm.profile.importers.shelltree import here, nodes
from pytest_vllm.profile.importers.shellvalue import Value, joined

if TYPE_CHECKING:
    from tree_sitter import Node

    from pytest_vllm.profile.importers.shellvalue import Remark

_SHELL = re.compile(r"(?:.*/)?(?:ba|da|z)?sh")
#: What is handed a description of what to start: `kubectl apply -f -`, `docker compose -f - up`.
_TAKING = ("kubectl", "oc", "docker", "podman", "docker-compose")
_WINDOWS = ("screen", "tmux")


@dataclass(frozen=True)
class Written:
    """A text that a script writes to a file, or hands to a program.

    Args:
        name: the file, or the program, as the script has it.
        text: what it writes.
        line: the line on which the text begins.
    """

    name: str
    text: Value
    line: int


class Files(Printed):
    """What a script writes."""

    def keep(self, body: Node, redirects: list[Node], written: Value, line: int) -> None:
        """A here-document goes where its command sends it."""
        words, _ = stripped(self.expand().words([one for one in body.children if _is_word(one)]))
        target, more = self._target([value.text for value, _ in words], redirects)
        if not target:
            return
        path = target if " " in target else os.path.normpath(self.state.folder / target)
        before = self.written.get(path, [])
        if more and len(before) == 1:
            before[0] = Written(target, before[0].text + written, before[0].line)
            return
        found = Written(target, written, line)
        if not self._where:
            self.written[path] = [found]
        elif all(one.text.text != written.text for one in before):
            self.written.setdefault(path, []).append(found)

    def _target(self, texts: list[str], redirects: list[Node]) -> tuple[str, bool]:
        """The file that a command writes, and whether it writes behind what stands there; or the program."""
        piped = [one for each in redirects for one in each.children if one.type in ("pipeline", "command")]
        for node in piped:
            last = [one for one in nodes(node) if one.type == "command"][-1]
            inner, _ = stripped(self.expand().words([one for one in last.children if _is_word(one)]))
            texts = [value.text for value, _ in inner]
        program = PurePosixPath(texts[0]).name if texts else ""
        if program == "tee":
            named = [one for one in texts[1:] if not one.startswith("-")]
            return (named[0], "-a" in texts) if len(named) == 1 else ("", False)
        if program in _TAKING and ("-" in texts or texts[-1] in ("-f", "--filename")):
            return " ".join(texts[:5]), False
        if program != "cat" or set(texts[1:]) - {"-"}:
            return "", False
        for one in [*redirects, *[inner for each in redirects for inner in each.children]]:
            found = re.match(r"1?(>>?\|?)", self.script.text(one)) if one.type == "file_redirect" else None
            if found:
                value = self.expand().text(one.children[-1])
                known = value.text and not value.unknown and not value.literal
                return (value.text, found[1] == ">>") if known else ("", False)
        return "", False

    def heredoc(self, redirect: Node, body: Node) -> Value:
        """The text of a here-document, with what has to be said of the names in it."""
        start = next((self.script.text(one) for one in redirect.children if one.type == "heredoc_start"), "")
        if start[:1] in "'\"\\":
            return Value(self.script.text(body))
        if not any(one.is_named for one in body.children):
            return Value(here(self.script.text(body)))
        return joined([part.value for part in self.expand().sequence(body, True, False)], "")

    def file_of(self, name: str) -> Written | None:
        """What the script has written to a file; None where that is nothing, or several things."""
        found = self.written.get(os.path.normpath(self.state.folder / name), [])
        return found[0] if len(found) == 1 else None

    def texts(self) -> dict[str, str]:
        """What the script writes, by path, where that is one thing and all of it is known."""
        known = {path: found[0] for path, found in self.written.items() if len(found) == 1}
        return {path: one.text.text for path, one in known.items() if not one.text.unknown}

    def script_run(self, values: list[Value]) -> tuple[Written, tuple[Value, ...]] | None:
        """The script of its own that a command runs, with its arguments: `bash F`, `./F`, `screen -dm F`."""
        at = 0
        if PurePosixPath(values[0].text).name in _WINDOWS:
            at = next((at for at, one in enumerate(values) if at and self.file_of(one.text)), 0)
        elif _SHELL.fullmatch(values[0].text):
            at = next((at for at, one in enumerate(values) if at and one.text[:1] not in "-+"), 0)
        elif "/" not in values[0].text:
            return None
        found = self.file_of(values[at].text)
        return (found, tuple(values[at + 1 :])) if found else None


def _is_word(node: Node) -> bool:
    return node.is_named and "redirect" not in node.type and node.type != "variable_assignment"


def unknown_in(written: Written) -> Remark | None:
    """What of a text is not known; None where all of it is."""
    return next((one for one in written.text.remarks if one.fatal), None)
