"""A profile in the making: what was read so far, and notes on what could not be carried over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pytest_vllm.profile.errors import faults_of
from pytest_vllm.profile.importers.expectations import expectations
from pytest_vllm.profile.importers.marks import holds_secret, is_optional, named_secret, unmarked, unrun_in
from pytest_vllm.profile.model import Profile
from pytest_vllm.profile.secrets import redacted, secret_name, secret_text

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.origin import Origin

API_KEY = "VLLM_API_KEY"
#: Where vLLM listens unless told otherwise.
_PORT = 8000
#: What people write where a server wants a key and nobody checks it.
_NO_SECRET = {"", "none", "empty", "not-needed"}


class Draft:
    """Collects a deployment. Nothing that looks like a secret gets in: only its name does.

    `alone` is the model that stands by itself, without its flag; `wanted` is the server that was asked for
    in the shell that `within` starts, where one was. `port_known`: whether the arguments say the port.
    """

    def __init__(self, origin: Origin, launcher: str, kind: str) -> None:
        """Begin with what starts the server and how that is written down."""
        self.origin = origin
        self.server: dict[str, Any] = {"launcher": launcher}
        self.env: dict[str, Any] = {}
        self.args: dict[str, Any] = {}
        self.volumes: list[str] = []
        self.deployment: dict[str, Any] = {"kind": kind}
        self.seen: dict[str, str] = {}
        self.passed: set[str] = set()
        self.hardware = ""
        self.alone = ""
        self.wanted = ""
        self.within = ""
        self.port_known = True
        self._notes: list[tuple[int, str]] = []
        self._lines: dict[tuple[str, ...], int] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be carried over, in the order of the text."""
        ordered = sorted(dict.fromkeys(self._notes), key=lambda note: note[0])
        return tuple(f"{self.origin.place(line)}: {text}" for line, text in ordered)

    def note(self, line: int, text: str) -> None:
        """Say what was left behind or changed."""
        self._notes.append((line, redacted(unmarked(" ".join(text.split())))))

    def lost(self, line: int, what: str) -> None:
        """Say that something has no place in a profile."""
        self.note(line, f"{what} is not carried over")

    def set(self, key: str, value: Any, line: int) -> None:
        """A key of `[server]`."""
        self._replaced(key, self.server.get(key), value, ("server", key), line)
        self.server[key] = value
        self._lines[("server", key)] = line

    def _replaced(self, name: str, before: Any, after: Any, path: tuple[str, ...], line: int) -> None:
        """Say that a value is taken back by one further on."""
        grown = isinstance(before, list) and isinstance(after, list) and after[: len(before)] == before
        if isinstance(before, str | int | list) and before not in (after, "") and not grown:
            there = self._lines.get(path, 0)
            self.note(there, f"{name} = {before!r} does not count: it is given again in line {line}")

    def set_env(self, name: str, text: str, line: int, where: str = "") -> None:
        """A variable of the server; secrets become references."""
        self._replaced(name, self.env.get(name), text, ("server", "env", name), line)
        self._lines[("server", "env", name)] = line
        secret: dict[str, Any] | None = self._reference(name, text, line, where)
        if name == API_KEY and secret is not None:
            if is_optional(text):
                self.note(line, f"{secret['from-env']} may be empty there; here it has to be set")
            self.server["api-key"] = secret
        elif secret is not None and is_optional(text):
            self.env[name] = secret | {"optional": True}
        else:
            self.env[name] = text if secret is None else secret

    def set_arg(self, name: str, value: Any, line: int) -> None:
        """A flag of vLLM under its own name; secrets become references."""
        self._lines[("server", "args", name)] = line
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if name == "api-key" and isinstance(value, list):
            if len(value) > 1:
                self.note(line, "--api-key has several keys; the first is used")
            text = value[0]
        variable = API_KEY if name == "api-key" else name.replace("-", "_").upper()
        held = isinstance(value, str) or name == "api-key" or holds_secret(text) or secret_text(text)
        secret = self._reference(name, text, line, "", variable) if held else None
        if secret is not None and is_optional(text):
            self.note(line, f"{secret['from-env']} may be empty there; here it has to be set")
        if secret is not None and name == "api-key":
            self.server["api-key"] = secret
        elif secret is not None:
            self.args[name] = secret
        elif name == "api-key":
            self.note(line, f"--api-key {text!r} is not a secret; it is left out")
        elif name == "model":
            self.set("model", value, line)
        elif name == "served-model-name" and isinstance(value, list) and len(value) == 1:
            self.set("served-model-name", value[0], line)
        else:
            self.args[name] = value

    def _reference(
        self, name: str, text: str, line: int, where: str, variable: str = ""
    ) -> dict[str, str] | None:
        """`{ from-env = … }` where a text is, names or holds a secret."""
        variable = variable or name
        named = named_secret(text)
        if named is not None:
            return {"from-env": named}
        if holds_secret(text):
            self.note(line, f"{name} is put together around a secret: set {variable} whole where pytest runs")
            return {"from-env": variable}
        if (secret_name(name) and text.lower() not in _NO_SECRET) or secret_text(text):
            fix = f"set {variable} where pytest runs"
            self.note(line, f"{name} is written down {where or 'there'}; its value is not copied: {fix}")
            return {"from-env": variable}
        return None

    def _place(self) -> None:
        """Inside of a container, host and port are the launcher's matter; what is published is kept."""
        if self.server["launcher"] == "process" or self.deployment.get("network") == "host":
            return
        host = self.args.pop("host", None)
        if host not in (None, "0.0.0.0", "::", "*"):  # noqa: S104 - what containers bind
            line = self._line(("server", "args", "host"))
            self.note(line, f"--host {host} is left out: the gate's container binds every address of its own")
            self.deployment["binds"] = str(host)
        port, published = self.args.pop("port", None), self.deployment.get("ports")
        if isinstance(port, int):
            self.deployment["listens"] = port if port != _PORT else None
        if port is not None and not published:
            line = self._line(("server", "args", "port"))
            self.note(line, f"--port {port} is left out: the gate publishes a free port")

    def _left_to_the_shell(self) -> None:
        """Nothing that only a shell that runs would know gets into a profile: it is refused, or left out."""
        for key in ("image", "command", "entrypoint"):
            value = self.server.get(key, "")
            if found := unrun_in(" ".join(map(str, value)) if isinstance(value, list) else str(value)):
                what = f"{key} is {found}, which the shell runs and an importer does not"
                raise self.origin.problem(self._line(("server", key)), what, "write its value in its place")
        for path, table in ((("server", "env"), self.env), (("server",), self.server), ((), self.deployment)):
            for key, value in list(table.items()):
                entries = value if isinstance(value, list) else [value]
                kept = [one for one in entries if not (isinstance(one, str) and unrun_in(one))]
                if len(kept) == len(entries):
                    continue
                self._not_known((*path, key), [one for one in entries if one not in kept])
                table[key] = kept
                if not kept:
                    del table[key]
        known = [one for one in self.volumes if not unrun_in(one)]
        if gone := [one for one in self.volumes if one not in known]:
            self._not_known(("server", "volumes"), gone)
            inside = [one for text in gone for one in text.split(":")[1:] if one.startswith("/")]
            self.deployment["mounts"] = [*self.deployment.get("mounts", []), *inside]
        self.volumes[:] = known

    def _not_known(self, path: tuple[str, ...], texts: list[str]) -> None:
        what = f"{path[-1]} {', '.join(texts)} is left out: only what runs it knows its value"
        self.note(self._line(path), what)

    def profile(self, name: str) -> Profile:
        """The profile. Raises ImportProblem for what a profile refuses, at its line."""
        self._place()
        self._left_to_the_shell()
        if str(self.args.get("config", "")).startswith("/"):
            what = f"--config {self.args['config']}: its flags, and a model in it, are not in the profile"
            self.note(self._line(("server", "args", "config")), what)
        server = self.server | {
            key: value
            for key, value in (("env", self.env), ("volumes", self.volumes), ("args", self.args))
            if value
        }
        raw = {
            "description": f"imported from {self.origin.shown}",
            "server": server,
            "deployment": {
                key: value for key, value in self.deployment.items() if value not in (None, [], {})
            },
        }
        if needed := expectations(self.server, self.args, self.env):
            raw["expect"] = {"capabilities": needed}
        if self.hardware:
            raw["hardware"] = self.hardware
        try:
            found = Profile.model_validate(raw)
        except ValidationError as error:
            fault = faults_of(error.errors(), Profile)[0]
            line = self._line(tuple(str(part) for part in fault.path))
            raise self.origin.problem(line, fault.text) from error
        return found.model_copy(update={"name": self.deployment.get("name") or name})

    def line_of(self, *path: str) -> int:
        """Where a value of the profile is written down; 0 where no line says it."""
        return self._line(path)

    def _line(self, path: tuple[str, ...]) -> int:
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 0)
