"""A systemd unit: the server itself, or the container engine that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.profile.exporters.line import run_words, shown
from pytest_vllm.profile.exporters.words import HOST, Export, arguments, environment
from pytest_vllm.profile.flagwords import takes_position
from pytest_vllm.profile.model import Secret

if TYPE_CHECKING:
    from pytest_vllm.profile.exporters.words import Words
    from pytest_vllm.profile.model import Profile

_UNIT = ("Description", "Documentation", "After", "Before", "Wants", "Requires", "BindsTo", "PartOf")
_UNIT_BEGINS = ("StartLimit", "Condition", "Assert", "OnFailure", "Conflicts")
_INSTALL = ("WantedBy", "RequiredBy", "Alias", "Also")
#: What a unit has for lack of a word in the profile.
_USUAL = {"Description": "vLLM server", "After": "network-online.target", "WantedBy": "multi-user.target"}
_PLAIN = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_{}$")


def unit(profile: Profile) -> Export:
    """The unit; secrets are passed on from systemd's own environment."""
    engine = profile.server.launcher if profile.server.kind.container else ""
    words: Words
    if engine:
        options, rest, notes = run_words(profile, engine)
        options = _without_restart(options)
        words = [f"/usr/bin/{engine}", "run", "--rm", *options, *rest]
        env: dict[str, str | Secret] = {}
    else:
        program = profile.server.command or ["/usr/bin/env", "vllm", "serve"]
        words = [*program, *arguments(profile, positional=takes_position(program))]
        env, notes = environment(profile), _lost(profile)
    secrets = _passed(profile, by_reference=bool(engine))
    if secrets:
        fix = f"put them into its manager's environment, or write EnvironmentFile= for {', '.join(secrets)}"
        notes = (*notes, f"PassEnvironment passes secrets on: {fix}")
    settings = {**_USUAL, **profile.deployment.service}
    service = [f"Environment={_quoted(f'{k}={v}')}" for k, v in env.items() if not isinstance(v, Secret)]
    service += [f"PassEnvironment={' '.join(secrets)}"] if secrets else []
    service += [f"ExecStart={_command(words)}", f"Restart={_restart(profile.deployment.restart)}"]
    lines = ["[Unit]", *_lines(settings, "unit"), "", "[Service]", *service, *_lines(settings, "service")]
    return Export("\n".join([*lines, "", "[Install]", *_lines(settings, "install")]) + "\n", notes)


def _restart(policy: str | None) -> str:
    """The word of systemd for a container's policy."""
    return {None: "on-failure", "unless-stopped": "always"}.get(policy, policy or "").partition(":")[0]


def _lost(profile: Profile) -> tuple[str, ...]:
    names = [
        name for name in ("image", "gpus", "volumes", "shm", "ipc", *HOST) if getattr(profile.server, name)
    ]
    return (f"{', '.join(names)}: a unit without a container cannot say it",) if names else ()


def _passed(profile: Profile, *, by_reference: bool) -> list[str]:
    """Variables that the unit takes from its manager, by the name that they have there."""
    found = [
        value.from_env if by_reference else name
        for name, value in environment(profile).items()
        if isinstance(value, Secret)
    ]
    return list(dict.fromkeys(found))


def _without_restart(options: Words) -> Words:
    """Whatever ends is started again by systemd, not by the engine."""
    if "--restart" not in options:
        return options
    at = options.index("--restart")
    return [*options[:at], *options[at + 2 :]]


def _lines(settings: dict[str, str | list[str]], section: str) -> list[str]:
    return [
        f"{key}={value}"
        for key, values in settings.items()
        if _section(key) == section
        for value in ([values] if isinstance(values, str) else values)
    ]


def _section(key: str) -> str:
    if key in _UNIT or key.startswith(_UNIT_BEGINS):
        return "unit"
    return "install" if key in _INSTALL else "service"


def _command(words: Words) -> str:
    lines: list[str] = []
    for word in words:
        text = shown(word, "${%s}") if isinstance(word, Secret) else word.replace("$", "$$")
        text = _quoted(text)
        if lines and text.startswith("-"):
            lines.append(f"  {text}")
        elif lines:
            lines[-1] += f" {text}"
        else:
            lines.append(text)
    return " \\\n".join(lines)


def _quoted(text: str) -> str:
    text = text.replace("%", "%%")
    text = f"%h{text[1:]}" if text.startswith("~/") else text
    if text and set(text) <= _PLAIN:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f"'{text}'" if "'" not in text and "\\" not in text else f'"{escaped}"'
