"""The words that start vLLM: `vllm serve MODEL …`, `python -m vllm.entrypoints.openai.api_server …`."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from pytest_vllm.facts import Flag, canonical, flag_status, flags, versions
from pytest_vllm.profile.flags import covered, image_version, not_known
from pytest_vllm.profile.importers.marks import unmarked, unrun_in
from pytest_vllm.profile.importers.shellwords import Word
from pytest_vllm.profile.secrets import secret_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.profile.importers.draft import Draft

_MODULE = re.compile(r"vllm(?:\.\w+)*\.(?:openai\.api_server|cli\.main|scripts)")
#: Commands of vLLM's that start no server.
_CLIENTS = {"bench", "chat", "complete", "run-batch", "collect-env"}
#: As Python reads it, and vLLM with it: 16_384 too.
_INTEGER = re.compile(r"[+-]?\d+(?:_\d+)*")
_SEVERAL = ("list", "append", "kv-list")
#: Lists whose entries are names, digits or not.
_TEXTS = ("api-key", "served-model-name", "lora-modules")
#: `{{model}}`, `{{ .Values.model }}`: of just, Jinja, Helm, Go. JSON has no such pair of braces.
_TEMPLATE = re.compile(r"\{\{-?\s*[\w.$][^{}\"]*\}\}|\{%-?[^%]*%\}")
#: The first release whose own images have `vllm serve` as their entry point, with room for doubt.
_SERVE_SINCE = Version("0.12")
#: What an operator of a cluster fills in, in Go's templates: `{{ .Spec.Model.Name }}`.
FILLED_IN = re.compile(r"\{\{-?[^{}]*\.[A-Z]\w*[^{}]*\}\}")
_WRITE = "write its value in its place"
#: Switches that took a value in some release.
_TAKING = ("enable-chunked-prefill", "multi-step-stream-outputs")
#: vLLM's own default command, which a profile need not say.
USUAL = ["vllm", "serve"]

#: A requirement that names the version of vLLM.
PINNED = re.compile(r"\bvllm(?:\[[\w,-]+\])?==([\w.]+)")
_TOOLS = {"uvx", "uv", "pipx"}
#: What these are asked for: a tool, and its version.
_TOOL = re.compile(r"vllm(?:\[[\w,-]+\])?(?:(?:@v?|==)(\d[\w.]*)|@latest)?")


def program_length(words: Sequence[str]) -> int:
    """How many words stand before vLLM's arguments; 0 where none of them starts vLLM's server."""
    for at, word in enumerate(words):
        tool = _TOOL.fullmatch(word) is not None and bool(
            _TOOLS & {PurePosixPath(one).name for one in words[:at]}
        )
        if (tool or PurePosixPath(word).name == "vllm") and words[at + 1 : at + 2] == ["serve"]:
            return at + 2
        if (
            _MODULE.fullmatch(word)
            and words[at - 1 : at] == ["-m"]
            and not _CLIENTS & {*words[at + 1 : at + 2]}
        ):
            return at + (2 if words[at + 1 : at + 2] == ["serve"] else 1)
        if word.endswith("vllm/entrypoints/openai/api_server.py"):
            return at + 1
    return 0


def asks(words: Sequence[str]) -> bool:
    """Whether a command says something of itself, and ends: `--help=all`."""
    return any(word in ("-h", "--version") or word.partition("=")[0] == "--help" for word in words)


def version_of(program: Sequence[str]) -> str:
    """The version that words before vLLM's arguments name: `uvx --from vllm==0.20.0`, an image of srun's."""
    for word in program:
        text = word.partition("=")[2] if re.match(r"--[\w-]+=", word) else word
        if (found := PINNED.fullmatch(text) or _TOOL.fullmatch(text)) and found[1]:
            return str(found[1])
        image = text.removeprefix("docker://")
        if (image != text or word.startswith("--container-image=")) and (version := image_version(image)):
            return version
    return ""


def model_of(words: Sequence[str]) -> str:
    """The model of a command, as it is written."""
    rest = words[program_length(words) :]
    named = [word for at, word in enumerate(rest) if at and rest[at - 1] == "--model"]
    named += [word.removeprefix("--model=") for word in rest if word.startswith("--model=")]
    return named[-1] if named else next((word for word in rest[:1] if not word.startswith("-")), "")


def read_arguments(draft: Draft, words: Sequence[Word]) -> None:
    """Put vLLM's arguments into the draft: values typed, names as this vLLM's facts have them.

    Raises ImportProblem for a flag that no version of vLLM has, and for one that lacks its value.
    """
    at = 0
    while at < len(words):
        word, at = words[at], at + 1
        if unrun := unrun_in(word.text.partition("=")[0]):
            raise draft.origin.problem(word.line, f"{unrun} is run by the shell, not by an importer", _WRITE)
        if (template := _TEMPLATE.search(word.text)) and draft.deployment["kind"] != "kubernetes":
            what = f"{template[0]} belongs to a template that is not rendered"
            raise draft.origin.problem(word.line, what, "render it first, or write its value in its place")
        if not word.text.startswith("-") or word.text == "-":
            _positional(draft, word)
            continue
        name, equals, inline = word.text.partition("=")
        flag = _known(draft, name, word.line)
        given = [Word(inline, word.line)] if equals else []
        if not equals:
            given = _values(words[at:], flag, name)
            at += len(given)
        _flag(draft, name, flag, [one.text for one in given], word.line)


def _positional(draft: Draft, word: Word) -> None:
    if template := FILLED_IN.search(word.text):
        raise draft.origin.problem(
            word.line, f"the model is {template[0]}, which an operator fills in", _WRITE
        )
    if re.search(r"\s", word.text.strip()):
        fix = "give the vllm serve line alone"
        shown = unmarked(word.text)[:60]
        if re.search(r"\bvllm(?: serve\b|\.entrypoints\b)", word.text):
            what = f"{shown!r} is a text for a shell, and no command starts one here"
            raise draft.origin.problem(word.line, what, "give the whole of it: the command beside the args")
        raise draft.origin.problem(word.line, f"{shown!r} stands where a model belongs", fix)
    if not word.text:
        what = "an empty word stands where the model belongs"
        raise draft.origin.problem(word.line, what, "set the name that it comes from where pytest runs")
    if draft.server.get("model"):
        raise draft.origin.problem(
            word.line,
            f"{word.text!r} stands alone, and the model is {draft.server['model']!r} already",
            "put it behind the flag that it belongs to",
        )
    draft.set("model", word.text, word.line)
    draft.alone = word.text


def _once(draft: Draft, written: str, line: int) -> None:
    """Refuse a model by its place and by its flag: `vllm serve` takes the place for an argument too many."""
    command, image = draft.server.get("command"), draft.server.get("image", "")
    version = draft.server.get("version") or image_version(image)
    serves = command[-1:] == ["serve"] if command else not image or _serves(version)
    if draft.alone and serves:
        what = f"the model is given twice, as {draft.alone!r} and by --model {written!r}"
        fix = "vLLM ends with an error (unrecognized arguments): keep one of them"
        raise draft.origin.problem(line, what, fix)


def _serves(version: str | None) -> bool:
    """Whether the project's images of a version start `vllm serve`, and not the module that came before."""
    return not version or Version(version) >= _SERVE_SINCE


def _known(draft: Draft, written: str, line: int) -> Flag:
    """The flag of a word, as argparse finds it. Raises ImportProblem for a slip, and for an ambiguous one."""
    spelled = written.partition(".")[0]
    name = canonical(spelled)
    found = flag_of(name)
    if found is not None:
        return found
    found = _abbreviated(draft, spelled, line)
    if found is not None:
        return found
    if " " in written.strip() and (flag_of(canonical(written.split(maxsplit=1)[0])) is not None):
        first, _, rest = written.strip().partition(" ")
        what = f"{written!r} is one word, blank and all, and vLLM ends on it"
        raise draft.origin.problem(line, what, f"write two words, or {first}={rest.strip()}")
    similar = flag_status(written).similar
    server = draft.server
    judged = covered(server["launcher"], server.get("image"), server.get("version"))
    if re.fullmatch(r"--[A-Za-z][\w-]*", spelled) and not judged:
        draft.note(line, not_known(written))
        return Flag(name, "unknown")
    hint = f"did you mean --{similar[0]}?" if similar else "no version of vLLM has it"
    raise draft.origin.problem(line, f"unknown vllm flag {written!r}", hint)


def _abbreviated(draft: Draft, written: str, line: int) -> Flag | None:
    """The flag that a beginning of its name means, where only one begins so: argparse takes that."""
    if not re.fullmatch(r"--[A-Za-z][\w-]*", written):
        return None
    server = draft.server
    version = server.get("version") or image_version(server.get("image"))
    words = {word for flag in flags(version).values() for word in spellings(flag)}
    found = sorted(word for word in words if word.startswith(written.replace("_", "-")))
    if len(found) == 1:
        draft.note(line, f"{written} is short for {found[0]}")
        return flag_of(canonical(found[0]))
    if len({canonical(word) for word in found}) > 1:
        several = ", ".join(found[:6]) + (", …" if len(found) > 6 else "")
        raise draft.origin.problem(line, f"{written} may be {several}", "write it out: vLLM refuses it so")
    return None


def spellings(flag: Flag) -> list[str]:
    """The long options of a flag, as its argument parser knows them."""
    own = [f"--{flag.name}", *([f"--no-{flag.name}"] if flag.negatable else [])]
    return [*own, *(alias for alias in flag.aliases if alias.startswith("--"))]


@cache
def flag_of(name: str) -> Flag | None:
    """A flag as the newest version has it that knows it."""
    for version in reversed(versions()):
        if (found := flags(version).get(name)) is not None:
            return found
    return None


@cache
def is_flag(word: str) -> bool:
    """Whether a word is a flag of vLLM's, in any version, or the beginning of one alone in the newest."""
    newest = {spelled for flag in flags(versions()[-1]).values() for spelled in spellings(flag)}
    meant = {canonical(one) for one in newest if one.startswith(word.replace("_", "-"))}
    return flag_of(canonical(word)) is not None or len(meant) == 1


@cache
def takes_several(name: str) -> bool:
    """Whether any version reads more than one word behind a flag."""
    found = (flags(version).get(name) for version in versions())
    return name == "lora-modules" or any(flag is not None and flag.type in _SEVERAL for flag in found)


def _values(rest: Sequence[Word], flag: Flag, written: str) -> list[Word]:
    """The words behind a flag that are its values."""
    given: list[Word] = []
    if flag.type == "unknown":
        return list(rest[:1]) if rest and not rest[0].text.startswith("-") else []
    if "." in written:
        return list(rest[:1])
    if flag.type == "bool" or (re.fullmatch(r"-O\d", written)):
        return list(rest[:1]) if rest and rest[0].text.lower() in ("true", "false") else []
    for word in rest:
        if word.text.startswith("-") and not re.match(r"-\d", word.text):
            break
        given.append(word)
        if not takes_several(flag.name):
            break
    return given


def _flag(draft: Draft, written: str, flag: Flag, given: list[str], line: int) -> None:
    name = flag.name
    spelled = written.lstrip("-").replace("_", "-")
    if _left_out(draft, written, name, given, line):
        return
    if "." in spelled:
        _nested(draft, name, spelled.partition(".")[2], _json_or_text(given[0]) if given else True, line)
        return
    if re.fullmatch(r"O\d", spelled):
        draft.set_arg(name, int(spelled[1:]), line)
        return
    if flag.type == "unknown":
        draft.set_arg(name, _guessed(given), line)
        return
    if spelled.startswith("no-") and not given and name != spelled and flag.type != "list":
        draft.set_arg(name, False, line)
        return
    if not given and flag.type not in ("bool", "bool-value", "str-or-bare"):
        raise draft.origin.problem(line, f"{written} lacks its value", f"write {written} VALUE")
    _valued(draft, written, flag, given, line)
    value = typed(name, given)
    if isinstance(value, str) and value.startswith("{") and flag.type.startswith("json"):
        draft.note(line, f"{written} is not JSON that a profile can hold: {value}; it stays text")
    if name in draft.args and flag.type == "append":
        value = [*draft.args[name], *value]
    elif name in draft.args and draft.args[name] != value:
        draft.note(line, f"{written} is given twice; the last counts, as in vLLM")
    draft.set_arg(name, value, line)


def _valued(draft: Draft, written: str, flag: Flag, given: list[str], line: int) -> None:
    """Refuse an empty text where vLLM wants a model or a number, and a value where it wants none."""
    if given == [""] and flag.name == "model":
        what = f"{written} is empty, and a server needs its model"
        raise draft.origin.problem(line, what, "set the name that it comes from where pytest runs")
    if given == [""] and flag.type in ("int", "float"):
        fix = "set the name that it comes from where pytest runs"
        raise draft.origin.problem(line, f"{written} is empty, and vLLM wants a number", fix)
    if given and flag.type == "bool" and flag.name not in _TAKING:
        off = given[0].lower() == "false"
        what = f"{written} takes no value, and vLLM ends on {given[0]!r} behind it"
        fix = f"write --no-{flag.name}, or leave it out" if off else f"write {written} alone"
        raise draft.origin.problem(line, what, fix)


def _left_to_the_shell(draft: Draft, written: str, name: str, given: list[str], line: int) -> bool:
    """Whether a flag is left out, whose value a shell alone knows. Raises ImportProblem for most."""
    unrun = unrun_in(" ".join(given))
    if not unrun or secret_name(name):
        return False
    if name in ("host", "port"):
        draft.note(line, f"{written} is left out: {unrun} is run by the shell, not by an importer")
        draft.port_known = False
        return True
    if "{{" in unrun:
        what = f"{written} is {unrun}, which is filled in elsewhere"
        raise draft.origin.problem(line, what, _WRITE)
    if "$" not in unrun and "`" not in unrun:
        what = f"{written} is {unrun}, of which bash makes several words"
        raise draft.origin.problem(line, what, "put quotes around it")
    what = f"{written} is {unrun}, which the shell runs and an importer does not"
    raise draft.origin.problem(line, what, _WRITE)


def _left_out(draft: Draft, written: str, name: str, given: list[str], line: int) -> bool:
    """Whether a flag is left out, and noted. Raises ImportProblem for what a server cannot do without."""
    if name == "model" and given:
        _once(draft, given[0], line)
    return _left_to_the_shell(draft, written, name, given, line) or _of_operator(
        draft, written, name, given, line
    )


def _of_operator(draft: Draft, written: str, name: str, given: list[str], line: int) -> bool:
    """Whether a flag is left out, whose value an operator of a cluster fills in. Raises for the model."""
    template = FILLED_IN.search(" ".join(given))
    if template is None or draft.deployment["kind"] != "kubernetes":
        return False
    if name == "model":
        raise draft.origin.problem(line, f"the model is {template[0]}, which an operator fills in", _WRITE)
    draft.note(line, f"{written} is left out: an operator fills {template[0]} in")
    draft.port_known = draft.port_known and name != "port"
    return True


def _guessed(given: list[str]) -> Any:
    """The value of a flag of no known type: a number only where it comes out the same."""
    if not given:
        return True
    value = _number(given[0], "int")
    return value if str(value) == given[0] else given[0]


def _nested(draft: Draft, name: str, path: str, value: Any, line: int) -> None:
    """`--compilation-config.pass_config.fuse 1` as the table that it fills."""
    known = draft.args.get(name)
    whole: dict[str, Any] = dict(known) if isinstance(known, dict) else {}
    table = whole
    *outer, last = path.replace("-", "_").split(".")
    for key in outer:
        table[key] = dict(table.get(key, {}))
        table = table[key]
    table[last] = value
    draft.set_arg(name, whole, line)


def typed(name: str, given: Sequence[str]) -> Any:
    """The value of a flag as its type has it: a number, true, a list, a table, text."""
    flag = flag_of(name)
    kind = flag.type if flag else "str"
    if kind in ("bool", "bool-value"):
        return given[0].lower() != "false" if given else True
    if takes_several(name):
        kind = "int" if all(map(_INTEGER.fullmatch, given)) and name not in _TEXTS else "str"
        return [_json_or_text(one) if one.startswith("{") else _number(one, kind) for one in given]
    if not given:
        return True
    (text,) = given[:1]
    if kind.startswith("json"):
        return _json_or_text(text)
    if text.startswith("{"):
        return _json_or_text(text)
    counted = flag is not None and flag.choices and all(_INTEGER.fullmatch(str(one)) for one in flag.choices)
    return _number(text, "int" if counted else kind)


def _number(text: str, kind: str) -> Any:
    if kind in ("int", "float") and _INTEGER.fullmatch(text):
        return int(text)
    if kind == "float":
        try:
            return float(text)
        except ValueError:
            return text
    return text


def _json_or_text(text: str) -> Any:
    """A JSON value that TOML can say, else the text."""
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return text
    return text if value is None or "null" in text else value
