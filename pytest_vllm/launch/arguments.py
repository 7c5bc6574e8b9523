"""From a profile to the command line and environment of its server.

Keys of `[server.args]` are vLLM's flag names without dashes. Secrets are read from the environment here, at
the last moment, and the API key travels as `VLLM_API_KEY`, never on a command line that `ps` shows.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm.launch.protocol import BootError
from pytest_vllm.profile.flagwords import flag_words, takes_position
from pytest_vllm.profile.model import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_vllm.launch.protocol import LaunchContext
    from pytest_vllm.profile.model import Profile

API_KEY = "VLLM_API_KEY"

#: Where the launcher decides, not the profile.
_PLACES = frozenset({"host", "port", "model", "served-model-name", "api-key"})


@dataclass(frozen=True)
class Order:
    """What to run: the arguments after the program, its environment, and what must never be printed."""

    arguments: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def shown(self, program: Sequence[str] = ()) -> str:
        """The command line for people: quoted for a shell, secrets replaced."""
        return " ".join(self._shown(word) for word in (*program, *self.arguments))

    def _shown(self, word: str) -> str:
        for secret in self.secrets:
            word = word.replace(secret, "***")
        return word if "***" in word else shlex.quote(word)


def environment(context: LaunchContext) -> Mapping[str, str]:
    """The environment that secrets come from."""
    return context.environ or os.environ


def order_for(
    profile: Profile, context: LaunchContext, *, host: str, port: int, positional: bool, with_env: bool = True
) -> Order:
    """The profile's server as arguments and environment. Raises BootError for a secret that is not set.

    Args:
        profile: what to serve.
        context: the run.
        host: address that the server binds.
        port: port that the server binds.
        positional: `vllm serve MODEL` rather than `--model MODEL`.
        with_env: take the profile's `[server.env]` too.
    """
    server = profile.server
    environ = environment(context)
    secrets: list[str] = []

    def known(value: Any, where: str) -> Any:
        if isinstance(value, Secret) or (isinstance(value, dict) and set(value) == {"from-env"}):
            name = value.from_env if isinstance(value, Secret) else value["from-env"]
            secrets.append(secret_value(name, where, environ))
            return secrets[-1]
        return value

    args = {name: known(value, f"[server.args] {name}") for name, value in server.args.items()}
    env: dict[str, str] = {}
    if with_env:
        given = {name: value for name, value in server.env.items() if not _left_out(value, environ)}
        env |= {name: str(known(value, f"[server.env] {name}")) for name, value in given.items()}
    key = known(server.api_key, "[server] api-key") if server.api_key else args.get("api-key")
    if isinstance(key, str):
        secrets.append(key)
        env[API_KEY] = key

    model = server.model or str(args.get("model", ""))
    arguments = [] if not model else [model] if positional else ["--model", model]
    named = server.served_model_name or args.get("served-model-name")
    if named:
        arguments += flag("served-model-name", named)
    for name, value in args.items():
        if name not in _PLACES:
            arguments += flag(name, value)
    if isinstance(key, list):
        secrets += [str(one) for one in key]
        arguments += flag("api-key", key)
    arguments += ["--host", host, "--port", str(port)]
    return Order(tuple(arguments), env, tuple(dict.fromkeys(secrets)))


def _left_out(value: str | Secret, environ: Mapping[str, str]) -> bool:
    """Whether a variable of the server is one that it starts without, and that is not set."""
    return isinstance(value, Secret) and value.optional and not environ.get(value.from_env)


def flag(name: str, value: Any) -> Iterator[str]:
    """One entry of `[server.args]` as command line words. Raises BootError for what has none."""
    if value == []:
        raise BootError(
            f"[server.args] {name} is an empty list, which vLLM's command line cannot say",
            try_=(f"leave {name} out of the profile",),
        )
    yield from map(str, flag_words(name, value))


def api_key(profile: Profile, environ: Mapping[str, str]) -> str | None:
    """The key that requests to this profile's server carry, if any. Raises BootError when it is not set."""
    given = profile.server.api_key or profile.server.args.get("api-key")
    if isinstance(given, list):
        given = given[0] if given else None
    if isinstance(given, dict):
        given = Secret(from_env=given["from-env"])
    if isinstance(given, Secret):
        return secret_value(given.from_env, "[server] api-key", environ)
    return given or environ.get(API_KEY) or None


def request_key(profile: Profile, environ: Mapping[str, str]) -> str | None:
    """The key that requests carry; None where there is none, or its variable is not set any more.

    A server that runs as a process of ours, the simulator too, inherits `VLLM_API_KEY` and asks for it. One
    in a container or somewhere else does not, and is sent only a key that the profile names.
    """
    server = profile.server
    inherits = server.launcher in ("process", "sim")
    given = server.env.get(API_KEY)
    if given is not None and server.api_key is None and "api-key" not in server.args:
        return environ.get(given.from_env) if isinstance(given, Secret) else str(given)
    if not (inherits or server.api_key or server.args.get("api-key")):
        return None
    try:
        return api_key(profile, environ)
    except BootError:
        return None


def secret_value(name: str, where: str, environ: Mapping[str, str]) -> str:
    """The value of an environment variable that a profile names. Raises BootError when it is not set."""
    value = environ.get(name, "")
    if not value:
        raise BootError(
            f"{where} is taken from the environment variable {name}, which is not set",
            means="a profile only names its secrets; their values come from where pytest runs",
            try_=(f"export {name}=…",),
        )
    return value


def fixed_port(profile: Profile) -> int | None:
    """The port that the profile asks for, if it does."""
    port = profile.server.args.get("port")
    return int(port) if port else None


def program_of(profile: Profile) -> tuple[tuple[str, ...], bool]:
    """What starts the server outside of a container, and whether it takes the model as a position."""
    server = profile.server
    program = (*(server.entrypoint or ()), *(server.command or ()))
    if not program:
        return ("vllm", "serve"), True
    return program, takes_position(program)


def bench_of(program: Sequence[str]) -> tuple[str, ...] | None:
    """The command of vLLM's own benchmark, from the one that serves; None where it cannot be told."""
    words = tuple(program)
    if words[-1:] == ("serve",):
        return (*words[:-1], "bench", "serve")
    if words[-2:] == ("-m", "vllm.entrypoints.openai.api_server"):
        return (*words[:-1], "vllm.entrypoints.cli.main", "bench", "serve")
    return None
