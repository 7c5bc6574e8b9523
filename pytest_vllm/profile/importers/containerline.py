"""`docker run` and `podman run` lines."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import container
from pytest_vllm.profile.importers.draft import Draft
from pytest_vllm.profile.importers.envfile import dotenv, plain
from pytest_vllm.profile.importers.ledger import Ledger
from pytest_vllm.profile.importers.marks import DOLLAR, secret_mark, unrun_in
from pytest_vllm.profile.importers.runoptions import SHORT, SWITCHES, VALUED
from pytest_vllm.profile.importers.shellwords import Word, resolved
from pytest_vllm.profile.secrets import secret_name
from pytest_vllm.profile.words import unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.variables import Variables

#: Options about the terminal of whoever types the line.
_TERMINAL = frozenset({"detach", "interactive", "tty", "quiet", "sig-proxy"})
#: Options without effect on the server.
_WITHOUT_EFFECT = """
replace pull init label l hostname log-driver log-opt no-healthcheck health-cmd health-interval
health-retries health-start-interval health-start-period health-timeout expose stop-signal stop-timeout
annotation cidfile pidfile conmon-pidfile sdnotify tls-verify
"""
_SILENT = frozenset(_WITHOUT_EFFECT.split())


def read_run(
    origin: Origin,
    words: list[Word],
    variables: Callable[[Draft], Variables],
    service: str | None = None,
) -> Draft:
    """The draft of a run line. Raises ImportProblem for an option that no engine has.

    Args:
        origin: what messages name.
        words: from `docker` on.
        variables: what names in the words stand for; its notes go to the draft.
        service: which server of a shell in the container, where it starts several.
    """
    engine = "podman" if words[0].text.endswith("podman") else "docker"
    draft = Draft(origin, engine, f"{engine}-run")
    draft.wanted = service or ""
    read_into(draft, words, variables(draft))
    return draft


def read_into(draft: Draft, words: list[Word], names: Variables) -> None:
    """Put a run line into a draft. Raises ImportProblem for an option that no engine has."""
    engine, origin = draft.server["launcher"], draft.origin
    start = 1 + next(at for at, word in enumerate(words[1:], 1) if word.text in ("run", "create"))
    reader = RunLine(draft, words, start, names)
    for name, value, line in reader.options():
        reader.option(name, value, line)
    if reader.runtime[0]:
        container.read_runtime(draft, *reader.runtime)
    rest = resolved(words[reader.at :], names)
    if not rest:
        raise origin.problem(words[0].line, f"`{engine} run` names no image", "complete the line")
    if left := unrun_in(rest[0].text):
        what = f"image is {left}, or holds options before it, which the shell runs and an importer does not"
        raise origin.problem(rest[0].line, what, "write its value in its place")
    draft.set("image", rest[0].text, rest[0].line)
    container.read_start(draft, reader.entrypoint, rest[1:], names, cleared=reader.cleared)
    reader.idle.close(draft)


class RunLine:
    """The options of a run line, one after the other.

    Args:
        draft: what they are put into.
        words: the line.
        at: where its options begin.
        names: what names in it stand for.
    """

    def __init__(self, draft: Draft, words: list[Word], at: int, names: Variables) -> None:
        """Begin at an option."""
        self.draft, self.words, self.at, self.names = draft, words, at, names
        self.entrypoint: list[Word] = []
        self.cleared = False
        self.runtime = ("", 0)
        self.idle = Ledger()

    def options(self) -> Iterator[tuple[str, str, int]]:
        """Long name, value (raw) and line of each option; ends at the image."""
        while self.at < len(self.words) and self.words[self.at].text.startswith("-"):
            word = self.words[self.at]
            self.at += 1
            if word.text == "--":
                return
            if word.text.startswith("--"):
                name, equals, value = word.text[2:].partition("=")
                yield name, self._value(name, equals, value, word), word.line
            else:
                yield from self._short(word)

    def _short(self, word: Word) -> Iterator[tuple[str, str, int]]:
        """`-it`, `-p8000:8000`, `-dp 8000:8000`."""
        letters = word.text[1:]
        for place, letter in enumerate(letters):
            name = SHORT.get(letter, letter)
            if name in SWITCHES:
                yield name, "", word.line
                continue
            rest = letters[place + 1 :].removeprefix("=")
            yield name, self._value(name, rest, rest, word), word.line
            return

    def _value(self, name: str, inline: str, value: str, word: Word) -> str:
        if name not in SWITCHES and name not in VALUED:
            known = sorted(SWITCHES | VALUED)
            text = unknown("option", f"--{name}", [f"--{one}" for one in known], "the run line")
            raise self.draft.origin.problem(word.line, text.partition(" (one of")[0])
        if name in SWITCHES or inline:
            return value
        if self.at >= len(self.words):
            raise self.draft.origin.problem(word.line, f"--{name} lacks its value", "complete the line")
        self.at += 1
        return self.words[self.at - 1].text

    def option(self, name: str, raw: str, line: int) -> None:
        """Put one option into the draft."""
        draft = self.draft
        if name == "env":
            self._env(raw, line)
            return
        value = self.names.text(raw, line)
        if name in _READERS:
            _READERS[name](draft, value, line)
        elif name == "env-file":
            read_env_file(draft, value, line)
        elif name == "entrypoint":
            if self.entrypoint:
                draft.lost(self.entrypoint[0].line, f"--entrypoint {self.entrypoint[0].text}, given again,")
            self.entrypoint = [Word(one, line) for one in container.split(value)]
            self.cleared = not self.entrypoint
        elif name == "runtime":
            if self.runtime[0]:
                draft.lost(self.runtime[1], f"--runtime {self.runtime[0]}, given again,")
            self.runtime = (value, line)
        elif name in _SILENT:
            self.idle.idle(line, f"--{name}")
        elif not _production(draft, name, value, line) and name not in _TERMINAL:
            draft.lost(line, f"--{name}" + (f" {value}" if value else ""))

    def _env(self, raw: str, line: int) -> None:
        name, equals, written = raw.partition("=")
        if equals:
            value = self.names.text(written, line, secret=secret_name(name), lenient=True)
            self.draft.set_env(name, value, line)
        else:
            pass_on(self.draft, name, line)


def _production(draft: Draft, name: str, value: str, line: int) -> bool:
    """Whether an option belongs into `[deployment]`; it is put there."""
    if name == "rm":
        draft.deployment["remove"] = True
    elif name in ("publish", "security-opt"):
        key = "ports" if name == "publish" else name
        draft.deployment[key] = [*draft.deployment.get(key, []), value]
    elif name in ("name", "restart", "network", "net"):
        key = "network" if name == "net" else name
        if draft.deployment.get(key, value) != value:
            draft.lost(line, f"--{name} {draft.deployment[key]}, which is given again,")
        draft.deployment[key] = value
    else:
        return False
    return True


def _add(key: str, draft: Draft, value: str, line: int) -> None:
    container.add(draft, key, value, line)


def _set(key: str, draft: Draft, value: str, line: int) -> None:
    draft.set(key, value, line)


_READERS: dict[str, Callable[[Draft, str, int], None]] = {
    "gpus": container.read_gpus,
    "device": container.read_device,
    "volume": container.read_volume,
    "mount": container.read_mount,
    "shm-size": container.read_shm,
    "ipc": container.read_ipc,
    "memory": container.read_memory,
    "ulimit": container.read_ulimit,
    **{name: partial(_add, name) for name in ("cap-add", "cap-drop", "group-add")},
    "user": partial(_set, "user"),
    "workdir": partial(_set, "workdir"),
    "privileged": lambda draft, value, line: draft.set("privileged", value.lower() != "false", line),
}


def pass_on(draft: Draft, name: str, line: int) -> None:
    """A variable whose value comes from where the container is started."""
    if name in draft.seen:
        draft.passed.add(name)
        draft.set_env(name, draft.seen[name], line)
    elif secret_name(name):
        draft.set_env(name, secret_mark(name), line)
    elif name in draft.origin.environ:
        draft.set_env(name, draft.origin.environ[name], line)
        draft.note(line, f"{name} is taken from the environment: {draft.origin.environ[name]!r}")
    else:
        draft.note(line, f"{name} is passed on, and not set here: it is left out")


def read_env_file(
    draft: Draft, written: str, line: int, *, required: bool = True, names: Variables | None = None
) -> None:
    """The variables of an env file. Raises ImportProblem when it is not there.

    Args:
        draft: what they are put into.
        written: the path as it stands.
        line: where.
        required: whether the engine refuses to start without it.
        names: what names in it stand for (compose); None: it is read plainly (docker run).
    """
    path = draft.origin.path(written)
    text = draft.origin.held(path)
    if text is None:
        if required:
            raise draft.origin.problem(line, f"the env file {written} is not there", f"put it at {path}")
        draft.note(line, f"the env file {written} is not there; it is optional")
        return
    names = (
        None if names is None else replace(names, values=dict(names.values))
    )  # the file's own count in it alone
    for name, value, number in dotenv(text) if names is not None else plain(text):
        if not name:
            draft.note(line, f"{written}:{number}: {value!r} is not an entry of an env file; it is left out")
        elif value is None:
            pass_on(draft, name, line)
        else:
            whole = (
                value if names is None else names.text(value, line, secret=secret_name(name), lenient=True)
            )
            draft.set_env(name, whole.replace(DOLLAR, "$"), line, f"in {written}:{number}")
            if names is not None:
                kept = draft.env.get(name)
                names.values.setdefault(name, kept if isinstance(kept, str) else secret_mark(name))
