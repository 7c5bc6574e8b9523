"""`${NAME}` and `${NAME:-default}` as shells and compose files write them; `~` and `./` on the host.

Meant for places: where a model, a Python or a cache lies differs from host to host. Secrets are refused here:
their values must not become part of a profile.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.profile.secrets import secret_name

if TYPE_CHECKING:
    from collections.abc import Mapping

Where = tuple[str | int, ...]

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
#: Keys of `[server]` whose text may name variables.
EXPANDED = ("image", "model", "served-model-name", "url", "entrypoint", "command", "volumes", "env", "args")


def expanded(
    raw: dict[str, Any], folder: Path, environ: Mapping[str, str]
) -> tuple[dict[str, Any], list[tuple[Where, str]]]:
    """The raw profile with its references resolved, and what is wrong with the ones that could not be.

    Args:
        raw: a profile's tables.
        folder: what `./` in volumes is relative to.
        environ: where the variables come from.
    """
    server = raw.get("server")
    if not isinstance(server, dict):
        return raw, []
    expansion = _Expansion(folder, environ)
    resolved = {
        key: expansion.value(value, ("server", key)) if key in EXPANDED else value
        for key, value in server.items()
    }
    return {**raw, "server": resolved}, expansion.faults


class _Expansion:
    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.folder, self.environ = folder, environ
        self.faults: list[tuple[Where, str]] = []

    def value(self, value: Any, path: Where) -> Any:
        if isinstance(value, dict):
            return {key: self.value(inner, (*path, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.value(inner, (*path, index)) for index, inner in enumerate(value)]
        if not isinstance(value, str):
            return value
        text = REFERENCE.sub(lambda found: self._variable(found, path), value)
        return self._place(text, path[1])

    def _variable(self, found: re.Match[str], path: Where) -> str:
        name, default = found[1], found[2]
        if secret_name(name):
            named = f'{name} = {{ from-env = "{name}" }}'
            self.faults.append((path, f"{found[0]} is a secret, which only [server.env] may name: {named}"))
        elif default is None and name not in self.environ:
            fix = f"export {name}=… or give a default, ${{{name}:-…}}"
            self.faults.append((path, f"{found[0]} is not set: {fix}"))
        return self.environ.get(name) or default or ""

    def _place(self, text: str, key: str | int) -> str:
        if key in ("volumes", "model", "command") and text.startswith("~/"):
            return self.environ.get("HOME", str(Path.home())) + text[1:]
        if key == "volumes" and text.startswith(("./", "../")):
            host, separator, rest = text.partition(":")
            return f"{(self.folder / host).resolve()}{separator}{rest}"
        return text
