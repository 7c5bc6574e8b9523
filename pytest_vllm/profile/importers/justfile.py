"""Justfiles: recipes as just hands them to a shell, each a function. Source: just.systems/man."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.justvalues import Values
from pytest_vllm.profile.importers.looks import OTHERS
from pytest_vllm.profile.importers.shell import read_script
from pytest_vllm.profile.importers.shellstate import State
from pytest_vllm.profile.importers.shelltree import parsed

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.origin import Origin

_ASSIGNED = re.compile(r"(?P<export>export +)?(?P<name>[A-Za-z_][\w-]*) *:= *(?P<text>.*)", re.DOTALL)
_SET = re.compile(r"set +(?P<name>[\w-]+)(?: *:= *(?P<text>.*))?")
_TEXT = r"\"(?:\\.|[^\"\\])*\"|'[^']*'|`[^`]*`"
_PARAMETER = (
    rf"[+*]?\$?[A-Za-z_][\w-]*(?:=(?:{_TEXT}|(?:[A-Za-z_]\w*)?\([^()]*(?:\([^()]*\))?[^()]*\)|[^\s:\"'`(]+))?"
)
_RECIPE = re.compile(rf"@?(?P<name>[A-Za-z_][\w-]*)(?P<given>(?:\s+(?:{_PARAMETER}))*)\s*:(?!=)(?P<rest>.*)")
_INTERPRETER = re.compile(r"#!.*\b(?:ba|da|z|k)?sh\b")
_SHELLS = re.compile(r"\[\s*[\"'](?:\S*/)?(?:ba|da|z)?sh[\"']")


def read_justfile(origin: Origin, service: str | None) -> Draft:
    """The one recipe that starts vLLM. Raises ImportProblem for none, and for a choice nobody made."""
    read = _Justfile(origin)
    text = read.script()
    state = State(origin.folder, origin.environ, origin.home, origin.itself)
    shell = replace(origin, text=text)
    draft = read_script(shell, parsed(text, shell), state, service, targets="just")
    for line, said in read.said:
        draft.note(line, said)
    return draft


class _Justfile:
    """A justfile on its way to a script of as many lines."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.values = Values(origin)
        self.lines = [""] * (origin.text.count("\n") + 2)
        self.said: list[tuple[int, str]] = []
        self.exports = False

    def script(self) -> str:
        """Each recipe as a function; assignments first, for just knows them wherever they stand."""
        lines = self.origin.text.split("\n")
        outside: list[tuple[int, str]] = []
        bodies: list[tuple[int, re.Match[str], list[tuple[int, str]]]] = []
        strange: list[tuple[int, str]] = []
        current = strange
        at = 0
        while at < len(lines):
            line, first, at = lines[at], at + 1, at + 1
            if not line.strip() or line.startswith("#"):
                continue
            if line[0] in " \t":
                current.append((first, line))
                continue
            while _opens(line) and at < len(lines):
                line, at = f"{line}\n{lines[at]}", at + 1
            if (found := _RECIPE.fullmatch(line)) and not _ASSIGNED.fullmatch(line):
                bodies.append((first, found, []))
                current = bodies[-1][2]
            else:
                outside.append((first, line))
                current = strange
        for first, line in strange:
            if "vllm" in line:
                what = f"`{line.strip()[:60]}` stands below a line that is not understood"
                raise self.origin.problem(first, what, OTHERS["just"][1])
        for first, line in outside:
            self._outside(first, line)
        for place, (first, found, body) in enumerate(bodies):
            last = bodies[place + 1][0] if place + 1 < len(bodies) else len(self.lines)
            self._recipe(first, found, body, last)
        return "\n".join(self.lines)

    def _outside(self, at: int, line: str) -> None:
        """A setting, a variable, or what is not followed. Raises ImportProblem for another shell."""
        if found := _SET.fullmatch(line.strip()):
            name, text = found["name"], (found["text"] or "true").strip()
            if name in ("dotenv-load", "dotenv-filename", "dotenv-path") and text != "false":
                file = ".env" if name == "dotenv-load" else self.values.value(text)
                self._put(at, f"set -a; source {file}; set +a")
            elif name == "export":
                self.exports = text == "true"
            elif name in ("shell", "windows-shell") and not _SHELLS.match(text) and name == "shell":
                fix = OTHERS["just"][1]
                raise self.origin.problem(at, f"recipes are run by another shell: {text}", fix)
        elif found := _ASSIGNED.fullmatch(line.strip()):
            self.values.given[found["name"]] = re.sub(r"\s+#[^\"'`]*$", "", found["text"])
            if found["export"] or self.exports:
                text = re.sub(r'(["`\\])', r"\\\1", self.values.value(found["text"]))
                self._put(at, f'export {found["name"]}="{text}"')
        elif not re.match(r"\[|alias\b", line):
            self.said.append((at, f"`{line.strip()[:60]}` is not carried over"))

    def _recipe(self, at: int, found: re.Match[str], body: list[tuple[int, str]], last: int) -> None:
        """A recipe: its parameters by their defaults, its lines as a shell gets them."""
        own, exported = self._parameters(found)
        name = re.sub(r"[^\w-]", "_", found["name"])
        self._put(at, "; ".join([f"{name}() {{ :", *exported]))
        if needed := found["rest"].split("#")[0].strip():
            self.said.append((at, f"the recipe {name} is run behind others: {needed}"))
        shebang = body and body[0][1].lstrip().startswith("#!")
        if shebang and not _INTERPRETER.match(body[0][1].lstrip()):
            self.said.append((body[0][0], f"the recipe {name} is a program for {body[0][1].strip()[2:]}"))
            body = []
        indent = min((len(one) - len(one.lstrip()) for _, one in body if one.strip()), default=0)
        goes_on = False
        for line, text in body[1:] if shebang else body:
            bare = text[indent:] if shebang or goes_on else re.sub(r"\A\s*[@-]*\s*", "", text)
            goes_on = bare.endswith("\\")
            self._put(line, self.values.filled(bare, own))
        self._put(last, "}")

    def _parameters(self, found: re.Match[str]) -> tuple[dict[str, str], list[str]]:
        own: dict[str, str] = {}
        exported = []
        for one in re.findall(_PARAMETER, found["given"]):
            sign = one[:1] if one[:1] in "+*" else ""
            bare, equals, default = one.removeprefix(sign).partition("=")
            name = bare.removeprefix("$")
            why = f"${{{name.replace('-', '_')}:?an argument of the recipe {found['name']}}}"
            own[name] = self.values.value(default) if equals else "" if sign == "*" else why
            if bare.startswith("$"):
                exported.append(f'export {name}="{own[name]}"')
        return own, exported

    def _put(self, at: int, text: str) -> None:
        before = self.lines[at - 1]
        self.lines[at - 1] = f"{before}; {text}" if before.strip() else text


def _opens(line: str) -> bool:
    """Whether a text of several lines, or a line that goes on, is open at the end of a line."""
    whole = re.sub(rf"#.*|{_TEXT}", "", line) if "'''" not in line and '"""' not in line else ""
    return line.count("'''") % 2 == 1 or line.count('"""') % 2 == 1 or whole.endswith("\\")
