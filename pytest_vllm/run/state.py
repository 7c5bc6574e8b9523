"""What the controlling process tells everyone about the booted servers: `run.json` in the run folder.

Written once per server by the controller; read by xdist workers and by `--vllm-replay`.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_vllm.launch.access import access_of
from pytest_vllm.launch.arguments import request_key
from pytest_vllm.profile.model import Profile
from pytest_vllm.report.record import ServerRun
from pytest_vllm.wire.server import Capability, Server
from pytest_vllm.wire.store import RecordingStore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_vllm.wire.recording import Recording

RUN_FILE = "run.json"
FORMAT, FORMAT_VERSION = "pytest-vllm-run", 1


@dataclass(frozen=True)
class ServerState:
    """One profile's server as it is known outside the controller."""

    profile: Profile
    server: Server
    folder: Path
    facts: Mapping[str, Any] = field(default_factory=dict)
    boot_phases: tuple[tuple[str, float], ...] = ()
    died: str = ""
    live: bool = True

    @cached_property
    def store(self) -> RecordingStore:
        """The recordings of this server."""
        return RecordingStore(self.folder / "recordings")

    def log(self) -> tuple[tuple[float, str], ...]:
        """The server's log lines with the second of their arrival, as far as they were written down."""
        path = self.folder / "server.log"
        if not path.is_file():
            return ()
        rows = [line.partition(" ") for line in path.read_text("utf-8", errors="replace").split("\n") if line]
        return tuple((_seconds(at), text) for at, _, text in rows)

    def as_run(self, recordings: Mapping[str, Recording]) -> ServerRun:
        """This server as reports want it."""
        return ServerRun(self.server, self.facts, self.boot_phases, self.log(), recordings)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def write_state(path: Path, states: Mapping[str, ServerState], **more: Any) -> None:
    """Write run.json so that no reader ever sees half of it."""
    servers = {name: _plain(state, path.parent) for name, state in states.items()}
    body = {"format": FORMAT, "version": FORMAT_VERSION, "servers": servers, **more}
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(body, indent=1, ensure_ascii=False, default=str), "utf-8")
    os.replace(fresh, path)  # noqa: PTH105 - atomic


def read_state(path: Path) -> dict[str, ServerState]:
    """The servers of a run folder.

    Raises FileNotFoundError when it has no run.json, and ValueError when that is of a later format; one that
    names none was written before there were numbers.
    """
    body = json.loads(path.read_text("utf-8"))
    if (written := body.get("version", FORMAT_VERSION)) > FORMAT_VERSION:
        raise ValueError(f"its format {written} is later than {FORMAT_VERSION}: update pytest-vllm")
    return {name: _state(values, path.parent) for name, values in body["servers"].items()}


def _plain(state: ServerState, base: Path) -> dict[str, Any]:
    server = {k: v for k, v in asdict(state.server).items() if k not in ("access", "api_key", "capabilities")}
    capabilities = [asdict(c) for c in state.server.capabilities.values()]
    return {
        "profile": state.profile.model_dump(mode="json", by_alias=True, exclude_none=True),
        "server": server,
        "capabilities": capabilities,
        "folder": state.folder.relative_to(base).as_posix(),
        "facts": dict(state.facts),
        "boot_phases": [list(pair) for pair in state.boot_phases],
        "died": state.died,
        "live": state.live,
    }


def _state(values: Mapping[str, Any], base: Path) -> ServerState:
    capabilities = {c["name"]: Capability(**c) for c in values["capabilities"]}
    profile = Profile.model_validate(values["profile"])
    server = Server(
        **{**values["server"], "models": tuple(values["server"]["models"])},
        capabilities=capabilities,
        api_key=request_key(profile, os.environ),
        access=access_of(profile),
    )
    return ServerState(
        profile=profile,
        server=server,
        folder=base / values["folder"],
        facts=values["facts"],
        boot_phases=tuple((name, at) for name, at in values["boot_phases"]),
        died=values["died"],
        live=values["live"],
    )
