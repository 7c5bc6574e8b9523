"""Makefiles: recipes as make hands them to a shell, each target a function at its own lines."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.makevariables import DRY, Variables
from pytest_vllm.profile.importers.shell import read_script
from pytest_vllm.profile.importers.shellstate import State
from pytest_vllm.profile.importers.shelltree import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.origin import Origin

_ASSIGNED = re.compile(
    r"(?P<before>(?:override +|export +)*)(?P<name>[\w.-]+)[ \t]*(?P<how>\?|\+|::?:?)?=[ \t]*(?P<text>.*)",
    re.DOTALL,
)
_RULE = re.compile(r"(?P<targets>[^:=#\t][^:=#]*)::?(?!=)(?P<rest>.*)", re.DOTALL)
_DECIDED = re.compile(r"(?P<word>ifeq|ifneq|ifdef|ifndef)\b[ \t]*(?P<rest>.*)", re.DOTALL)


def read_makefile(origin: Origin, service: str | None) -> Draft:
    """The one command of a Makefile that starts vLLM. Raises ImportProblem for none, and for a choice."""
    read = _Makefile(origin)
    text = read.script()
    state = State(origin.folder, origin.environ, origin.home, origin.itself)
    shell = replace(origin, text=text)
    draft = read_script(shell, parsed(text, shell), state, service, targets="make")
    for line, said in read.names.said:
        draft.note(line, said)
    return draft


class _Makefile:
    """A Makefile on its way to a script of as many lines."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.names = Variables(origin)
        self.lines = [""] * (origin.text.count("\n") + 2)
        self.open = False

    def script(self) -> str:
        """Each target as a function; what stands outside of recipes is worked out on the way."""
        ifs: list[bool] = []
        target = ""
        for at, whole in _logical(self.origin.text):
            if whole.startswith("\t") and target:
                if all(ifs):
                    self._recipe(at, whole, target)
                continue
            line = re.sub(r"(?<!\\)#.*", "", whole, flags=re.DOTALL).strip()
            if self._decides(line, at, ifs) or not line or not all(ifs):
                continue
            target = self._outside(line, at, target)
        self._close(len(self.lines))
        return "\n".join(self.lines)

    def _decides(self, line: str, at: int, ifs: list[bool]) -> bool:
        """Whether a line is one of a condition's; `ifs` is what stands open."""
        word = line.split(maxsplit=1)[0] if line else ""
        if word == "endif" and ifs:
            ifs.pop()
        elif word == "else" and ifs:
            ifs[-1] = not ifs[-1]
            if found := _DECIDED.match(line.removeprefix("else").strip()):
                ifs[-1] = ifs[-1] and self._holds(found, at)
        elif found := _DECIDED.match(line):
            ifs.append(self._holds(found, at) if all(ifs) else False)
        return word in ("endif", "else") or _DECIDED.match(line) is not None

    def _holds(self, found: re.Match[str], at: int) -> bool:
        rest = found["rest"].strip()
        if found["word"] in ("ifdef", "ifndef"):
            return bool(self.names.known(f"$({rest})", at)) == (found["word"] == "ifdef")
        sides = re.fullmatch(r"\((.*),(.*)\)|([\"'])(.*)\3\s+([\"'])(.*)\5", rest, re.DOTALL)
        if sides is None:
            raise self.origin.problem(at, f"`{found[0]}` is not understood", DRY)
        one, two = (sides[1], sides[2]) if sides[1] is not None else (sides[4], sides[6])
        same = self.names.known(one.strip(), at) == self.names.known(two.strip(), at)
        return same == (found["word"] == "ifeq")

    def _outside(self, line: str, at: int, target: str) -> str:
        """An assignment, an `include` or a rule; the target that recipe lines then belong to."""
        word = line.split(maxsplit=1)[0]
        if word in ("define", "undefine", "load", ".ONESHELL:"):
            raise self.origin.problem(at, f"`{word}` of make is not followed", DRY)
        if word in ("include", "-include", "sinclude"):
            self._include(line.split()[1:], at, needed=word == "include")
            return ""
        if line == "export" or (word in ("export", "unexport", "vpath") and not _ASSIGNED.fullmatch(line)):
            self._exports(word, line.split()[1:], at)
            return ""
        if found := _ASSIGNED.fullmatch(line):
            self.names.assign(found["name"], found["how"] or "", found["text"], at)
            if "export" in found["before"]:
                self._exports("export", [found["name"]], at)
            return ""
        if found := _RULE.fullmatch(line):
            return self._rule(found, at)
        return target

    def _rule(self, found: re.Match[str], at: int) -> str:
        """A rule's head: the function begins where it stands."""
        rest, semicolon, recipe = found["rest"].partition(";")
        if own := _ASSIGNED.fullmatch(rest.strip()):
            text = f"{own['name']} of the target {found['targets'].strip()} is not followed"
            self.names.said.append((at, text))
            return ""
        name = re.sub(r"[^\w-]", "_", found["targets"].split()[0])
        self._close(at)
        if not name.startswith("_"):
            self._put(at, f"{name}() {{ :")
            self.open = True
            if semicolon and recipe.strip():
                self._put(at, f"; {self.names.expanded(recipe.strip(), at, name)}")
        return name if self.open else ""

    def _recipe(self, at: int, whole: str, target: str) -> None:
        """One line of a recipe, which a shell of its own runs: its end is not the end of the others."""
        text = re.sub(r"\A\t[ \t]*[@+-]*[ \t]*", "", whole).replace("\n\t", "\n")
        if self.open and text.strip() and not text.startswith("#"):
            text = self.names.expanded(text, at, target)
            for offset, line in enumerate(text.split("\n")):
                self._put(at + offset, line)

    def _close(self, at: int) -> None:
        """The end of the function that is open, at the head of a line without a recipe."""
        if self.open:
            self._put(at, "}; ")
            self.open = False

    def _put(self, at: int, text: str) -> None:
        self.lines[at - 1] += text

    def _exports(self, word: str, names: list[str], at: int) -> None:
        self._close(at)
        if word != "export":
            return
        for name in names or self.names.given:
            if name in self.names.given:
                self._put(at, f"export {name}={self.names.quoted(name, at)}; ")

    def _include(self, files: list[str], at: int, *, needed: bool) -> None:
        for name in files:
            path = self.origin.folder / self.names.known(name, at)
            if path.is_file() and path.stat().st_size < 256 * 1024:
                for _, line in _logical(path.read_text("utf-8", "replace")):
                    if found := _ASSIGNED.fullmatch(re.sub(r"(?<!\\)#.*", "", line).strip()):
                        self.names.assign(found["name"], found["how"] or "", found["text"], at)
            elif needed:
                raise self.origin.problem(
                    at, f"include {name}: the file is not there", "name the Makefile in its place"
                )
            else:
                self.names.said.append((at, f"include {name}: the file is not there"))


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Lines with those that a backslash continues, each with the number of its first."""
    gathered: list[str] = []
    first = 1
    for at, line in enumerate(text.split("\n"), 1):
        first = first if gathered else at
        gathered.append(line)
        if not re.search(r"(?<!\\)(?:\\\\)*\\$", line):
            yield first, "\n".join(gathered)
            gathered = []
    if gathered:
        yield first, "\n".join(gathered)
