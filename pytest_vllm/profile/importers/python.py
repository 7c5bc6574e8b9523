"""Python programs that start vLLM as a process: `subprocess.Popen(["vllm", "serve", …])`, also on Modal."""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_vllm.profile.importers.embedded import Part, read_part, serving
from pytest_vllm.profile.importers.gpunames import hardware_named
from pytest_vllm.profile.importers.looks import OTHERS
from pytest_vllm.profile.importers.marks import SECRET, spelled_out, unmarked
from pytest_vllm.profile.importers.origin import ImportProblem
from pytest_vllm.profile.importers.pythonrun import Program
from pytest_vllm.profile.importers.pythonvalues import Unknown, dotted, evaluate
from pytest_vllm.profile.importers.vllmline import PINNED, program_length
from pytest_vllm.profile.secrets import secret_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.pythonparts import Start

MODAL = re.compile(r"^[ \t]*(?:import|from) modal\b", re.MULTILINE)
_LIBRARY = re.compile(r"\b(?:LLM\(|AsyncLLMEngine|AsyncEngineArgs|EngineArgs|build_openai_app|LLMConfig)")
_GIVE = "give the vllm serve line"
#: Flags without which a server is the same.
_PLACED = ("--host", "--port", "--uvicorn-log-level")


def read_python(origin: Origin, service: str | None) -> Draft:
    """The one command of a program that starts vLLM. Raises ImportProblem for none, and for a choice."""
    program = _followed(origin)
    parts, left, faults = _parts(origin, program.starts)
    found, more = serving(parts)
    problems = [*faults, *[problem for _, problem in more]]
    if not found:
        raise problems[0] if problems else _none(origin)
    asked = (service or "").partition("/")[0]
    if problem := next((one for part, one in more if part.name == asked), None):
        raise problem
    draft, part = read_part(origin, found, service, "command")
    start, notes = left[part.name]
    for line, text in notes:
        draft.note(line, text)
    for one in problems:
        draft.note(0, f"another command is not read: {one.what}")
    for other, _ in found:
        if other is not part:
            draft.lost(other.line, f"the command {other.name}")
    draft.note(start.line, "of the program this command alone is read: what else it does is not")
    if draft.server["launcher"] == "process":
        pinned = {one[1] for one in map(PINNED.fullmatch, program.installed) if one}
        if len(pinned) == 1:
            draft.set("version", pinned.pop(), start.line)
        if MODAL.search(origin.text):
            _modal(draft, program, start)
    return draft


def _followed(origin: Origin) -> Program:
    """The program, followed. Raises ImportProblem where it is none, or starts nothing that is known."""
    program = Program(origin.environ, origin.folder)
    try:
        program.follow(ast.parse(origin.text))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = f"it looks like a Python program, and cannot be parsed: {type(error).__name__}"
        raise origin.problem(getattr(error, "lineno", 0) or 0, what, _GIVE) from error
    if not program.starts and program.unclear:
        line, what = program.unclear[0]
        raise origin.problem(line, f"{what}, which the program works out", f"{_GIVE} that it comes to")
    if not program.starts:
        raise _none(origin)
    return program


def _none(origin: Origin) -> ImportProblem:
    kind = "modal" if MODAL.search(origin.text) else "python"
    looks, fix = OTHERS[kind]
    if _LIBRARY.search(origin.text):
        return origin.problem(
            0, f"it looks like {looks} that uses vLLM as a library and starts no server", fix
        )
    return origin.problem(0, f"it looks like {looks} in which no command that starts vLLM is found", fix)


def _parts(
    origin: Origin, starts: Sequence[Start]
) -> tuple[list[Part], dict[str, tuple[Start, list[tuple[int, str]]]], list[ImportProblem]]:
    """Every command as a script of its own; what has to be said of it; and those that are not known."""
    parts: list[Part] = []
    left: dict[str, tuple[Start, list[tuple[int, str]]]] = {}
    faults: list[ImportProblem] = []
    names = [one.within or str(at) for at, one in enumerate(starts, 1)]
    for at, one in enumerate(starts):
        name = names[at] if names.count(names[at]) == 1 else str(at + 1)
        notes = list(one.said)
        try:
            text = _script(origin, one, notes)
        except ImportProblem as problem:
            faults.append(problem)
            continue
        if any(part.origin.text.split() == text.split() for part in parts):
            continue
        left[name] = (one, notes)
        parts.append(Part(name, one.line, replace(origin, text=text), "shell"))
    return parts, left, faults


def _script(origin: Origin, start: Start, notes: list[tuple[int, str]]) -> str:
    """What a shell would be given, at its line. Raises ImportProblem for what is not known."""
    exports = []
    secrets = _secrets(origin.text)
    for name, value in start.environ.items():
        if isinstance(value, Unknown) or not re.fullmatch(r"[A-Za-z_]\w*", str(name)):
            notes.append((start.line, f"{name} is left out of its environment: {_what(value)} is not known"))
        elif value in secrets and not secret_name(str(name)):
            notes.append((start.line, f"{name} is left out of its environment: it holds a secret"))
        elif value is not None:
            exports.append(f"export {name}={_quoted(str(value))}; ")
    text = start.words if isinstance(start.words, str) else " ".join(_words(origin, start, notes))
    return "\n" * (start.line - 1) + "".join(exports) + text + "\n"


def _secrets(text: str) -> set[str]:
    """What the program writes down under names of secrets."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(node.value, ast.Constant):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(secret_name(dotted(one).rpartition(".")[2]) for one in targets):
            found.add(str(node.value.value))
    return found - {""}


def _words(origin: Origin, start: Start, notes: list[tuple[int, str]]) -> list[str]:
    given = list(start.words)
    length = program_length(["…" if isinstance(one, Unknown) else str(one) for one in given])
    words: list[str] = []
    for at, one in enumerate(given):
        if not isinstance(one, Unknown):
            words.append(_quoted(str(one)))
        elif at < length:
            words.append("python3" if given[at + 1 : at + 2] == ["-m"] else "")
            notes.append(
                (one.line, f"{one.what}, in front of vLLM's arguments, is not known: it is left out")
            )
        elif words and words[-1] in _PLACED:
            notes.append((one.line, f"{words.pop()} is left out: {one.what} is worked out by the program"))
        elif words and words[-1] == "--api-key":
            words.append('"${VLLM_API_KEY}"')
        else:
            flag = f"{words[-1]} is " if words and words[-1].startswith("--") else ""
            what = f"{flag}{one.what}" + ("" if ", which" in one.what else ", which the program works out")
            raise origin.problem(one.line, what, f"{_GIVE} that it comes to")
    return words


def _quoted(text: str) -> str:
    """A word for a shell; a secret in it is named."""
    if SECRET not in text:
        return shlex.quote(text)
    return '"' + spelled_out(text, r"${\1}").replace('"', '\\"') + '"'


def _what(value: Any) -> str:
    return unmarked(value.what) if isinstance(value, Unknown) else repr(value)


def _modal(draft: Draft, program: Program, start: Start) -> None:
    """Kind of GPU and variables of a program on Modal."""
    draft.note(start.line, "Modal runs it in a container of its own: here it is a process")
    lines = _of_image(program, start)
    tables = [(line, table) for line, table in program.image_env if isinstance(table, dict)]
    tables = [one for one in tables if one[0] in lines] if lines else tables
    for line, table in tables:
        for name, value in table.items() if lines or len(tables) == 1 else ():
            if not isinstance(value, Unknown):
                draft.set_env(str(name), str(value), line)
        if len(tables) > 1 and not lines:
            draft.lost(line, f"{', '.join(map(str, table))}, the environment of one of several images,")
    asked = [one for one in ast.walk(program.module) if isinstance(one, ast.keyword) and one.arg == "gpu"]
    own = {id(one) for node in (start.node.decorator_list if start.node else ()) for one in ast.walk(node)}
    mine = [one for one in asked if id(one) in own] or asked
    for one in mine:
        _gpu(draft, program, one, alone=len({ast.dump(each.value) for each in mine}) == 1)


def _of_image(program: Program, start: Start) -> set[int]:
    """Where the variables are set of the image that the command's function runs in; empty where unknown."""
    made: dict[str, set[int]] = {}
    for one in program.module.body:
        target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        if isinstance(one, ast.Assign) and isinstance(target, ast.Name):
            made[target.id] = _env_lines(one.value, made)
    asked = [one for node in (start.node.decorator_list if start.node else ()) for one in ast.walk(node)]
    named = [one.value for one in asked if isinstance(one, ast.keyword) and one.arg == "image"]
    return made.get(named[0].id, set()) if len(named) == 1 and isinstance(named[0], ast.Name) else set()


def _env_lines(value: ast.expr, made: Mapping[str, set[int]]) -> set[int]:
    """The lines of `.env(…)` in a chain of calls, with those of the image that it begins with."""
    found: set[int] = set()
    while isinstance(value, ast.Call | ast.Attribute):
        if isinstance(value, ast.Call):
            method = value.func.attr if isinstance(value.func, ast.Attribute) else ""
            found |= {value.lineno} if method == "env" else set()
        value = value.func if isinstance(value, ast.Call) else value.value
    return found | (made.get(value.id, set()) if isinstance(value, ast.Name) else set())


def _gpu(draft: Draft, program: Program, keyword: ast.keyword, *, alone: bool) -> None:
    """`gpu="L40S:2"`, `gpu=f"H100:{N_GPU}"`."""
    found = evaluate(keyword.value, program.top) if program.top else None
    text = found if isinstance(found, str) else ast.unparse(keyword.value)
    name = hardware_named(text.partition(":")[0]) if isinstance(found, str) and alone else ""
    draft.hardware = name or draft.hardware
    what = f"became hardware = {name}" if name else "is not carried over"
    draft.note(keyword.value.lineno, f"gpu={text} {what}")
