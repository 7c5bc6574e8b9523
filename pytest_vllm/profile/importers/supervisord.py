"""supervisord: the program of a configuration that starts vLLM."""

from __future__ import annotations

import configparser
import re
import shlex
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.ledger import Ledger
from pytest_vllm.profile.importers.pick import Candidate, parted, pick
from pytest_vllm.profile.importers.shellprefix import is_run, nested
from pytest_vllm.profile.importers.shellvalue import Value
from pytest_vllm.profile.importers.shellwords import Word
from pytest_vllm.profile.importers.systemd import Entry, command_of
from pytest_vllm.profile.importers.vllmline import program_length

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.origin import Origin

SECTION = re.compile(r"^\[program:[^\]\n]+\]", re.MULTILINE)
_VLLM = re.compile(r"\bvllm\s+serve\b|\bapi_server\b|\b(?:docker|podman)\b.* run .*vllm", re.DOTALL)
_EXPANSION = re.compile(r"%\((\w+)\)[sd]")
_RESTARTS = {"true": "always", "false": "no", "unexpected": "on-failure"}
#: Keys without effect on the server.
_IDLE = re.compile(
    r"(?:stdout|stderr)_\w+|redirect_stderr|start(?:secs|retries)|stop\w+|kill\w+|autostart|priority|"
    r"exitcodes|process_name|numprocs_start|loglevel|serverurl|umask"
)


def read_supervisord(origin: Origin, service: str | None) -> Draft:
    """The one program that starts vLLM. Raises ImportProblem for none, and for a choice nobody made."""
    parser = configparser.RawConfigParser(strict=False, inline_comment_prefixes=(";",), delimiters=("=",))
    try:
        parser.read_string(origin.text)
    except configparser.Error as error:
        what = f"not a supervisord configuration: {str(error).splitlines()[0]}"
        raise origin.problem(getattr(error, "lineno", 0) or 0, what, "name the file as it is used") from error
    names = [
        name
        for name in parser.sections()
        if name.startswith("program:") and parser.has_option(name, "command")
    ]
    words = {name: _split(origin, name, parser[name]["command"], "command") for name in names}
    found = [name for name in names if _starts_vllm(words[name])]
    candidates = [Candidate(name.partition(":")[2], _line(origin, name, "command")) for name in found]
    others = {name.partition(":")[2]: _shown(words[name]) for name in names if name not in found}
    wanted, inner = parted([one.name for one in candidates], service, others)
    chosen = found[pick(origin, candidates, wanted, "program", others)]
    line = _line(origin, chosen, "command")
    base = parser["supervisord"].get("environment", "") if parser.has_section("supervisord") else ""
    variables = {
        name: value
        for where, text in (("supervisord", base), (chosen, parser[chosen].get("environment", "")))
        for name, value in _variables(origin, where, text)
    }
    entry = Entry(chosen, "command", parser[chosen]["command"], line)
    draft = command_of(
        origin, entry, [Word(one, line) for one in words[chosen]], variables, inner or None, kind="plain"
    )
    if draft.server["launcher"] == "process":
        for name, value in variables.items():
            draft.set_env(name, value, _line(origin, chosen, "environment"))
    elif variables:
        draft.note(
            line, f"{', '.join(variables)}: the environment of the container engine, not of the server"
        )
    _settings(draft, origin, chosen, parser)
    for name in names:
        if name != chosen:
            draft.lost(_line(origin, name, "command"), f"the program {name.partition(':')[2]}")
    return draft


def _settings(draft: Draft, origin: Origin, chosen: str, parser: configparser.RawConfigParser) -> None:
    """The other keys of the program, and the other sections."""
    idle = Ledger()
    draft.deployment["name"] = chosen.partition(":")[2]
    for key, value in parser[chosen].items():
        line = _line(origin, chosen, key)
        if key == "autorestart" and value.lower() in _RESTARTS:
            draft.deployment["restart"] = _RESTARTS[value.lower()]
        elif _IDLE.fullmatch(key) or (key, value) == ("numprocs", "1"):
            idle.idle(line, key)
        elif key not in ("command", "environment"):
            draft.lost(line, f"{key}={value}")
    for section in parser.sections():
        if not section.startswith("program:"):
            idle.idle(_line(origin, section, ""), f"[{section}]")
        read = {chosen: set(parser[chosen]), "supervisord": {"environment"}}.get(section, set())
        for key in (one for one in parser[section] if one not in read):
            idle.idle(_line(origin, section, key), f"{key} of {section}")
    idle.close(draft)


def _shown(words: list[str]) -> str:
    """What a program starts, as a message names it."""
    inner = nested([Value(one) for one in words]) if words else None
    return inner[0].text[:60] if inner else " ".join(words[:2])


def _starts_vllm(words: list[str]) -> bool:
    inner = nested([Value(one) for one in words]) if words else None
    text = inner[0].text if inner else " ".join(words) if is_run(words) else ""
    return bool(program_length(words)) or _VLLM.search(text) is not None


def _filled(origin: Origin, section: str, text: str, key: str) -> str:
    """`%(ENV_HOME)s`, `%(program_name)s`, `%(here)s`. Raises ImportProblem for what is not known here."""

    def one(found: re.Match[str]) -> str:
        name = found[1]
        known = {"program_name": section.partition(":")[2], "here": str(origin.folder), "process_num": "0"}
        known |= {f"ENV_{variable}": value for variable, value in origin.environ.items()}
        if name not in known:
            fix = (
                f"export {name.removeprefix('ENV_')}=… where pytest runs"
                if name.startswith("ENV_")
                else "write it out"
            )
            raise origin.problem(_line(origin, section, key), f"{found[0]} is not set", fix)
        return known[name]

    return _EXPANSION.sub(one, text).replace("%%", "%")


def _split(origin: Origin, section: str, text: str, key: str) -> list[str]:
    """A value as supervisord splits it: blanks and line ends divide, no shell reads it."""
    try:
        return shlex.split(_filled(origin, section, text, key).replace("\\\n", " "))
    except ValueError as error:
        what = f"{key} cannot be split: {str(error).lower()}"
        raise origin.problem(_line(origin, section, key), what, "close the quote") from error


def _variables(origin: Origin, section: str, text: str) -> list[tuple[str, str]]:
    """`A="b",C=d`."""
    lexer = shlex.shlex(_filled(origin, section, text, "environment"), posix=True)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = ",\n", True, ""
    pairs = [one.strip().partition("=") for one in lexer]
    return [(name.strip(), value.strip()) for name, _, value in pairs if name.strip()]


def _line(origin: Origin, section: str, key: str) -> int:
    """Where a key of a section stands; the section's own line where it has none."""
    inside, begun = False, 0
    for at, raw in enumerate(origin.text.splitlines(), 1):
        text = raw.strip()
        if text.startswith("["):
            inside = text.startswith(f"[{section}]")
            begun = at if inside else begun
        elif inside and key and re.match(rf"{re.escape(key)}\s*=", text, re.IGNORECASE):
            return at
    return begun
