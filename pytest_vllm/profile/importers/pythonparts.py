"""What a program does to lists, tables and options while it is followed; and what a command of it is."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_vllm.profile.bounded import Unreadable, read_bounded
from pytest_vllm.profile.importers.marks import unmarked
from pytest_vllm.profile.importers.pythonvalues import Environ, Scope, Unknown, evaluate, told
from pytest_vllm.profile.importers.shellprefix import is_run
from pytest_vllm.profile.importers.vllmline import asks, program_length

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Calls that end the program.
EXITS = ("sys.exit", "exit", "quit", "os._exit", "parser.error")
#: A command in a text.
TEXT = re.compile(r"\bvllm\s+serve\s|\bapi_server\b|\b(?:docker|podman)\s+run\b.*\bvllm\b", re.DOTALL)
#: Calls that hand a text to a shell, and those that do nothing with a command but show or join it.
SHELLS = re.compile(
    r"(?:\w+\.)*(?:Popen|run|call|check_call|check_output|system|popen|getoutput|\w*exec\w*|spawn\w*|sh|bash"
    r"|create_subprocess_shell|\w*[Cc]ommand\w*|\w*Request)"
)
SHOWS = re.compile(
    r"(?:.*\.)?(?:print|pprint|info|debug|warning|error|join|quote|append|extend|len|str|list)"
)


@dataclass(frozen=True)
class Start:
    """A command that is handed to a call.

    Args:
        words: the command, an Unknown for what is not known of it; or its text for a shell.
        environ: what the program sets for it.
        line: where it is started.
        within: the function; empty for the module.
        said: line and text of what has to be said.
        node: the function, where there is one.
        sure: whether what it is handed to runs commands, by its name.
    """

    words: Sequence[Any] | str
    environ: Mapping[str, Any]
    line: int
    within: str
    said: tuple[tuple[int, str], ...]
    node: Function | None = None
    sure: bool = True


def changes(node: ast.Call, scope: Scope, options: dict[str, tuple[Any, str]]) -> bool:
    """Whether a call changes a list or a table; it is done then."""
    if not isinstance(node.func, ast.Attribute):
        return False
    owner, method = evaluate(node.func.value, scope), node.func.attr
    given = [evaluate(one, scope) for one in node.args]
    if method == "add_argument":
        _option(node, given, scope, options)
    elif isinstance(owner, list) and method == "append":
        owner.append(given[0])
    elif isinstance(owner, list) and method == "extend" and given:
        owner.extend(given[0] if isinstance(given[0], list) else [Unknown(node.lineno, node)])
    elif isinstance(owner, list) and method in ("insert", "remove", "pop", "clear"):
        owner.append(Unknown(node.lineno, node))
    elif isinstance(owner, Environ | dict) and method in ("update", "setdefault", "pop"):
        _updated(owner.own if isinstance(owner, Environ) else owner, method, given, node, scope)
    else:
        return False
    return True


def _option(node: ast.Call, given: Sequence[Any], scope: Scope, options: dict[str, tuple[Any, str]]) -> None:
    """What `argparse` makes of an option that nobody gives."""
    words = [one for one in given if isinstance(one, str)]
    more = {one.arg: evaluate(one.value, scope) for one in node.keywords if one.arg}
    flag = next((one for one in words if one.startswith("--")), words[0] if words else "")
    name = more.get("dest") or flag.lstrip("-").replace("-", "_")
    otherwise = {"store_true": False, "store_false": True}.get(str(more.get("action")))
    value = more.get("default", otherwise)
    if "default" not in more and (more.get("required") or not flag.startswith("-")):
        value = Unknown(node.lineno, f"the argument {flag}, which has to be given")
    if name:
        options[str(name)] = (value, flag)


def changed(name: str, before: Any, after: Any, test: str) -> str:
    """What has to be said of a name that an arm of a branch changes."""
    if isinstance(before, list) and isinstance(after, list) and after[: len(before)] == before:
        more = after[len(before) :]
        flags = ["", *[str(one) for one in more]]
        words = [
            "…" if isinstance(one, Unknown) or told(flag, one) == "…" else str(one)
            for flag, one in zip(flags, more, strict=False)
        ]
        return f"{unmarked(' '.join(words))} is added only where `{test}` decides so: it is not here"
    return f"{name} is {told(name, before)}, and something else where `{test}` decides so"


def module_beside(node: ast.ImportFrom, folder: Path) -> ast.Module | None:
    """The module that names are imported from, where it lies beside the program; None for any other."""
    path = folder.joinpath(*(node.module or "").split(".")).with_suffix(".py")
    try:
        return ast.parse(read_bounded(path)) if node.module and path.is_file() else None
    except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def starts(words: Sequence[Any]) -> bool:
    """Whether the words of a command start vLLM, or a container of it."""
    texts = ["…" if isinstance(one, Unknown) else str(one) for one in words]
    if len(texts) < 2 or not texts[0]:
        return False
    return (bool(program_length(texts)) and not asks(texts)) or (
        is_run(texts) and any("vllm" in one for one in texts)
    )


def copied(names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.copy() if isinstance(value, list | dict) else value for name, value in names.items()}


def _updated(table: dict[Any, Any], method: str, given: list[Any], node: ast.Call, scope: Scope) -> None:
    """`update`, `setdefault` and `pop` of a table."""
    if method == "pop":
        table.pop(given[0] if given else None, None)
    elif method == "setdefault" and len(given) > 1:
        if given[0] not in scope.outer:
            table.setdefault(given[0], given[1])
    else:
        more = given[0] if given else {}
        table.update(more.own if isinstance(more, Environ) else more if isinstance(more, dict) else {})
        table.update({one.arg: evaluate(one.value, scope) for one in node.keywords if one.arg})


def as_read(target: ast.expr) -> ast.expr:
    """A target as what it stands for."""
    found = ast.parse(ast.unparse(target), mode="eval").body
    return ast.copy_location(found, target)
