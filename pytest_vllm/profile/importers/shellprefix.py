"""What stands in front of a program: `sudo`, `env`, `nohup`; and whether a command starts vLLM."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.vllmline import program_length

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.shellvalue import Value

    Words = list[tuple[Value, int]]

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_SHELL = re.compile(r"(?:.*/)?(?:ba|da|z)?sh")
_ENGINE = re.compile(r"(?:.*/)?(?:docker|podman|nerdctl)")
#: Prefix -> its options that take a value.
_PREFIXES = {
    "exec": ("-a",),
    "sudo": ("-u", "-g", "--user", "--group"),
    "nohup": (),
    "env": ("-u", "--unset", "-C"),
    "time": ("-o", "-f"),
    "command": (),
    "builtin": (),
    "setsid": (),
}
#: Programs that only name vLLM, or start it on another machine or in a container that is described elsewhere.
_TALK = """
echo printf grep egrep pgrep pkill kill ps which type command-v alias log info warn error man help sed awk
cat tee ssh scp kubectl oc docker podman nerdctl docker-compose pip pip3 apt sbatch rsync test [ if watch
"""
_NAMING = frozenset(_TALK.split())
#: Programs that start another one on their own, and end: it is a child of neither.
_DETACHING = frozenset({"systemd-run", "start-stop-daemon", "daemonize", "daemon", "forever"})
#: With these systemd-run stays, or waits.
_STAYING = frozenset({"--scope", "--pipe", "-P", "--pty", "-t", "--wait"})
_STRINGS = ("tmux", "screen", "su", "script", "runuser", "gnome-terminal", "xterm", "pm2")
#: Options of pm2's that take no value.
_PM2_SWITCHES = (
    "-f",
    "--force",
    "--watch",
    "--no-autorestart",
    "--no-daemon",
    "--time",
    "--attach",
    "--silent",
)


@dataclass(frozen=True)
class Prefix:
    """What a command is started with.

    Args:
        env: its own variables, each with its line.
        cleared: whether it sees nothing else (`env -i`).
        unset: names that it does not see.
    """

    env: dict[str, tuple[Value, int]]
    cleared: bool = False
    unset: tuple[str, ...] = ()

    def and_(self, other: Prefix) -> Prefix:
        """Both."""
        env = {} if other.cleared else self.env
        return Prefix({**env, **other.env}, self.cleared or other.cleared, self.unset + other.unset)


def stripped(words: Words) -> tuple[Words, Prefix]:
    """A command without what stands in front of its program."""
    env: dict[str, tuple[Value, int]] = {}
    cleared, unset, at = False, [], 0
    while at < len(words):
        name = PurePosixPath(words[at][0].text).name
        if name not in _PREFIXES:
            break
        at += 1
        while at < len(words) and (
            words[at][0].text.startswith("-") or _ASSIGNMENT.fullmatch(words[at][0].text)
        ):
            value, line = words[at]
            at += 1
            found = _ASSIGNMENT.fullmatch(value.text)
            if found and not value.text.startswith("-"):
                env[found[1]] = (value.cut(found[2]), line)
            elif value.text in ("-i", "-", "--ignore-environment") and name == "env":
                cleared, env = True, {}
            elif value.text in _PREFIXES[name] and at < len(words):
                unset += [words[at][0].text] if value.text in ("-u", "--unset") and name == "env" else []
                at += 1
    return _managed(words[at:]), Prefix(env, cleared, tuple(unset))


def _managed(words: Words) -> Words:
    """The command that pm2 keeps running: `pm2 start PROGRAM -- ARGUMENTS`; another one as it stands."""
    texts = [value.text for value, _ in words]
    if [PurePosixPath(one).name for one in texts[:2]] != ["pm2", "start"] or "--" not in texts:
        return words
    ends, at = texts.index("--"), 2
    while at < ends and texts[at].startswith("-"):
        at += 1 if "=" in texts[at] or texts[at] in _PM2_SWITCHES else 2
    return [words[at], *words[ends + 1 :]] if at < ends else words


def is_run(words: list[str]) -> bool:
    """Whether words are `docker run`, `docker container run` or podman's; or `create` of either."""
    if not words or not _ENGINE.fullmatch(words[0]):
        return False
    rest = words[1:]
    while rest and rest[0].startswith("-"):  # options of the engine itself
        rest = rest[1 if "=" in rest[0] or rest[0] in ("-D", "--debug", "--tls") else 2 :]
    return [word for word in rest if word != "container"][:1] in (["run"], ["create"])


def starts(words: list[str]) -> bool:
    """Whether a command starts vLLM, or a container (of whatever)."""
    if is_run(words):
        return True
    length, name = program_length(words), PurePosixPath(words[0]).name if words else ""
    own = name.startswith("python") and {"-", "-c"} & set(words[:length])  # a program that is handed words
    detached = name in _DETACHING and not _STAYING & set(words[:length])
    return bool(length) and name not in _NAMING and not own and not detached


def nested(values: list[Value]) -> tuple[Value, tuple[Value, ...]] | None:
    """The script that a command runs, and its arguments: `bash -c "…"`, `tmux new -d "…"`."""
    texts = [value.text for value in values]
    if _SHELL.fullmatch(texts[0]):
        commands = False
        for at, text in enumerate(texts[1:], 1):
            if text.startswith(("-", "+")) or texts[at - 1] in ("-o", "+o", "-O", "+O"):
                commands |= re.fullmatch(r"-\w*c\w*", text) is not None
            else:
                return (values[at], tuple(values[at + 2 :])) if commands else None
    if PurePosixPath(texts[0]).name in _STRINGS:
        for at, value in enumerate(values[1:], 1):
            if re.search(r"\bvllm\b|api_server|docker run", value.text) and " " in value.text:
                return value, ()
            if _SHELL.fullmatch(value.text):
                return nested(values[at:])
    return None
