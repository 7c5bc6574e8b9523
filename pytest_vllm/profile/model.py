"""What a profile is, once loaded and validated. Keys in TOML carry hyphens where fields carry underscores."""

from __future__ import annotations

import datetime as dt
from pathlib import Path  # noqa: TC003 - pydantic needs it at run time
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


def _hyphens(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


class Part(BaseModel):
    """Base of all tables: immutable, unknown keys refused, hyphenated names."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=_hyphens, populate_by_name=True
    )


class Secret(Part):
    """A value that is only named, never written down: `{ from-env = "HF_TOKEN" }`."""

    from_env: str


LauncherName = Literal["docker", "podman", "process", "attach", "sim"]


class ServerPart(Part):
    """`[server]`: what to start and where."""

    launcher: LauncherName = "docker"
    image: str | None = None
    model: str = ""
    served_model_name: str | None = None
    url: str | None = None
    api_key: Secret | None = None
    gpus: str | int | list[str] | None = None
    env: dict[str, str | Secret] = Field(default_factory=dict)
    volumes: list[str] = Field(default_factory=list)
    shm: str | None = None
    ipc: str | None = None
    entrypoint: list[str] | None = None
    command: list[str] | None = None
    version: str | None = None
    side_by_side: bool = False
    args: dict[str, Any] = Field(default_factory=dict)


class BootPart(Part):
    """`[boot]`: how long a start may take. Seconds, once loaded from "15m"."""

    timeout: float = 900.0
    stalled: float = 240.0


class ExpectPart(Part):
    """`[expect]`: what must be there; an absent capability that is expected is a failure."""

    capabilities: list[str] = Field(default_factory=list)
    version: str | None = None
    block_size: int | None = None


class Bound(Part):
    """A floor or a ceiling in base units (seconds, bytes, tokens, tokens/s, fractions)."""

    min: float | None = None
    max: float | None = None
    at: str | None = None


class Waiver(Part):
    """`[[waive]]`: a failing check that is known, with a reason, an issue, a version range and an end."""

    check: str
    reason: str
    issue: str
    versions: str
    until: dt.date


class Profile(Part):
    """A deployment: what to start, what it must do, how fast.

    `hardware` and `model` name files of fixtures/hardware and fixtures/models; both may be absent.
    """

    name: str = ""
    description: str = ""
    source: Path | None = None
    hardware: str | None = None
    model: str | None = None
    server: ServerPart = Field(default_factory=ServerPart)
    boot: BootPart = Field(default_factory=BootPart)
    expect: ExpectPart = Field(default_factory=ExpectPart)
    limits: dict[str, Bound] = Field(default_factory=dict)
    regression: dict[str, float] = Field(default_factory=dict)
    waive: list[Waiver] = Field(default_factory=list)
    defects: list[str] = Field(default_factory=list)
