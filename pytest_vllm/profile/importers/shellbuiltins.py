"""Commands that change the shell itself: `set`, `shift`, `cd`, `read`, `eval`, `source`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.shellfiles import Files
from pytest_vllm.profile.importers.shelltree import parsed
from pytest_vllm.profile.importers.shellvalue import NOT_THERE, Remark, Value, joined
from pytest_vllm.profile.importers.shellwalk import DEEPEST, names_set

if TYPE_CHECKING:
    from tree_sitter import Node

    from pytest_vllm.profile.importers.shelltree import Script

    Words = list[tuple[Value, int]]

_LARGEST = 256 * 1024


class BuiltIns(Files):
    """What a shell does by itself."""

    def _do_set(self, node: Node, words: Words) -> None:
        texts = [value.text for value, _ in words[1:]]
        if texts[:1] == ["--"]:
            self.state.arguments = tuple(value for value, _ in words[2:])
        joined_ = " ".join(texts)
        if re.search(r"(?:^|\s)-\w*a|-o allexport", joined_):
            self.state.everything = True
        elif re.search(r"(?:^|\s)\+\w*a|\+o allexport", joined_):
            self.state.everything = False
        self.idle.append((self.script.line(node), "`set`"))

    def _do_shift(self, node: Node, words: Words) -> None:
        count = int(words[1][0].text) if len(words) > 1 and words[1][0].text.isdigit() else 1
        self.state.arguments = self.state.arguments[count:]
        self.idle.append((self.script.line(node), "`shift`"))

    def _do_exit(self, node: Node, words: Words) -> None:
        self.state.ended = self.state.exited = True
        self.idle.append((self.script.line(node), f"`{words[0][0].text}`"))

    def _do_return(self, node: Node, words: Words) -> None:
        self.state.ended = True
        self.idle.append((self.script.line(node), f"`{words[0][0].text}`"))

    def _do_read(self, node: Node, words: Words) -> None:
        """`read`, `mapfile`, `getopts`: every name among their words is set to what is not known here."""
        line = self.script.line(node)
        pieces = self._pieces(node, [value.text for value, _ in words])
        for name, value in pieces or []:
            self.state.assign(name, value)
        for value, _ in words[1:] if pieces is None else ():
            if re.fullmatch(r"[A-Za-z_]\w*", value.text):
                self.set_outside(value.text, line, "is read when the script runs")
        self.idle.append((line, f"`{words[0][0].text}`"))

    def _pieces(self, node: Node, words: list[str]) -> list[tuple[str, Value | tuple[Value, ...]]] | None:
        """What `read -r A B <<< "$TEXT"` sets; None where it reads what is not in the script."""
        given = [one.children[-1] for one in node.children if one.type == "herestring_redirect"]
        options = [one for one in words[1:] if one.startswith("-")]
        names = [one for one in words[1:] if not one.startswith("-")]
        if words[0] != "read" or len(given) != 1 or not set("".join(options)) <= set("-ra") or not names:
            return None
        text = self.expand().text(given[0])
        own = [one for one in node.children if one.type == "variable_assignment"]
        between = [self.expand().text(one.children[-1]).text for one in own if len(one.children) > 2]
        if text.unknown or text.literal or len(own) != len(between) or len(own) > 1:
            return None
        found = [text.cut(one) for one in _split(text.text.split("\n")[0], *between)]
        if "a" in "".join(options):
            return [(names[0], tuple(found))] if len(names) == 1 else None
        rest = (between[0] if between and between[0] else " ").join(
            one.text for one in found[len(names) - 1 :]
        )
        found = [*found[: len(names) - 1], *([text.cut(rest)] if len(found) >= len(names) else [])]
        return [(name, found[at] if at < len(found) else Value()) for at, name in enumerate(names)]

    _do_mapfile = _do_readarray = _do_getopts = _do_read

    def _do_printf(self, node: Node, words: Words) -> None:
        """`printf -v NAME` sets a variable."""
        line = self.script.line(node)
        if [value.text for value, _ in words[1:2]] == ["-v"] and len(words) > 2:
            self.set_outside(words[2][0].text, line, "is put together by printf")
        else:
            self.printed_by_format(words)
        self.idle.append((line, "`printf`"))

    def _do_let(self, node: Node, words: Words) -> None:
        """`let X=2*2`."""
        line = self.script.line(node)
        for value, _ in words[1:]:
            for name in names_set(value.text):
                self.set_outside(name, line, "is worked out by let")
        self.idle.append((line, "`let`"))

    def _do_eval(self, node: Node, words: Words) -> None:
        whole = joined([value for value, _ in words[1:]])
        script = replace(parsed(whole.text, self.origin), at=self.script.line(node))
        state = self.state
        self._inside(script, state, state.arguments, whole)

    def _do_cd(self, node: Node, words: Words) -> None:
        line, target = self.script.line(node), words[1][0] if len(words) > 1 else Value(self.state.home)
        self.state.folder = self.state.folder / target.text
        self.others.append((line, f"`cd {target.text}` (the gate starts the server in a folder of its own)"))

    _do_pushd = _do_cd

    def _do_source(self, node: Node, words: Words) -> None:
        """`source FILE`: its assignments count, where the file is there."""
        line, target = self.script.line(node), words[1][0] if len(words) > 1 else Value()
        path = self.state.folder / Path(
            target.text.replace("~", self.state.home, 1) if target.text[:1] == "~" else target.text
        )
        shown = f"`{self.script.shown(node)}`"
        if path.name.startswith("activate"):
            self.others.append((line, f"{shown} (the Python environment that `vllm` is taken from)"))
        elif (written := self.file_of(target.text)) is not None and self._depth < DEEPEST:
            self._follow(parsed(written.text.text, self.origin, written.line), path.name, line)
        elif target.unknown or target.literal or self.state.contained or not path.is_file():
            text = f"{shown}: {NOT_THERE}"
            self.notes.append(Remark(line, text))
        elif path.stat().st_size > _LARGEST or self._depth >= DEEPEST:
            self.notes.append(Remark(line, f"{shown}: the file is too large to be followed"))
        else:
            script = replace(parsed(path.read_text("utf-8-sig", "replace"), self.origin), at=line)
            self._follow(script, path.name, line)

    def _follow(self, script: Script, name: str, line: int) -> None:
        """A script that is run in this shell."""
        outer, self.script = self.script, script
        self._depth += 1
        self.visit_all(script.root.children)
        self.notes += [Remark(line, f"in {name}: `{text}` is not understood") for _, text in self.left()]
        self._depth -= 1
        self.script = outer


def _split(text: str, between: str | None = None) -> list[str]:
    """A line as `read` divides it, at blanks or at what IFS holds."""
    if between is None or not between.strip():
        return [text] if between == "" else text.split()
    signs = re.escape(between.strip())
    found = re.split(rf"\s*[{signs}]\s*" if between != between.strip() else f"[{signs}]", text)
    return found[:-1] if found[-1] == "" else found
