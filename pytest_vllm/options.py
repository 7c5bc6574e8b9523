"""Every option and its ini twin, read once into one frozen `Options`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.checks import TIERS

if TYPE_CHECKING:
    import pytest

LAUNCHERS = ("docker", "podman", "process", "attach", "sim")


@dataclass(frozen=True)
class Options:
    """What the person asked for."""

    profiles: tuple[str, ...] = ()
    url: str | None = None
    api_key_env: str = "VLLM_API_KEY"
    launcher: str | None = None
    image: str | None = None
    tier: str = "gate"
    checks: tuple[str, ...] = ()
    concurrency: int | None = None
    report: Path = Path(".vllm")
    keep: bool = False
    replay: Path | None = None
    strict: bool = False
    list: bool = False
    defects: tuple[str, ...] = ()
    baseline: Path | None = None
    save_baseline: Path | None = None

    @property
    def wants_server(self) -> bool:
        """Whether this run is about a vLLM server at all."""
        return bool(self.profiles or self.url or self.replay)


def add_options(parser: pytest.Parser) -> None:
    """Register the `vllm` option group and the ini twins of its options."""
    group = parser.getgroup("vllm", "verify a vLLM deployment (pytest-vllm)")
    option, ini = _adder(group, parser)
    option(
        "profile",
        "boot and verify this profile: a name or a .toml path; repeatable",
        many=True,
        metavar="NAME",
    )
    option("url", "verify the server that runs at this URL and leave it running", metavar="URL")
    option("api-key-env", "environment variable that holds the API key (default VLLM_API_KEY)", metavar="VAR")
    option("launcher", "how to start the server, instead of the profile's launcher", choices=LAUNCHERS)
    option("image", "container image to start, instead of the profile's", metavar="REF")
    option("tier", "run checks up to this tier (default gate)", choices=TIERS)
    option("check", "run only checks with this id or id prefix; repeatable", many=True, metavar="ID")
    option(
        "concurrency",
        "exchanges recorded at once (default: max-num-seqs, at most 16)",
        type=_positive,
        metavar="N",
    )
    option("report", "folder for runs and reports (default .vllm)", metavar="DIR")
    option("keep", "leave the started server running and say how to stop it", flag=True)
    option("replay", "judge the recordings of this run folder again, without a server", metavar="DIR")
    option("strict", "a SHOULD check that fails or is undecided counts like a MUST check", flag=True)
    option("list", "list the checks that would run, with level, family and fact, and stop", flag=True)
    option("defect", "break the simulator by this named defect; repeatable", many=True, metavar="NAME")
    option(
        "baseline", "compare every verdict with this saved baseline; a new failure is named", metavar="FILE"
    )
    option("save-baseline", "save this run's verdicts as a baseline", metavar="FILE")
    del ini


def read_options(config: pytest.Config) -> Options:
    """The options of this run: command line first, then ini."""
    read = _reader(config)
    report = Path(read("report") or ".vllm")
    return Options(
        profiles=tuple(read("profile") or ()),
        url=read("url"),
        api_key_env=read("api-key-env") or "VLLM_API_KEY",
        launcher=read("launcher"),
        image=read("image"),
        tier=read("tier") or "gate",
        checks=tuple(read("check") or ()),
        concurrency=read("concurrency"),
        report=report if report.is_absolute() else config.rootpath / report,
        keep=bool(read("keep")),
        replay=_path(config, read("replay")),
        strict=bool(read("strict")),
        list=bool(read("list")),
        defects=tuple(read("defect") or ()),
        baseline=_path(config, read("baseline")),
        save_baseline=_path(config, read("save-baseline")),
    )


def _path(config: pytest.Config, value: str | None) -> Path | None:
    return config.invocation_params.dir / value if value else None


def _adder(group: pytest.OptionGroup, parser: pytest.Parser) -> tuple[Any, Any]:
    def ini(name: str, text: str, kind: Any) -> None:
        parser.addini(f"vllm_{name.replace('-', '_')}", text, type=kind, default=None)

    def option(name: str, text: str, *, many: bool = False, flag: bool = False, **more: Any) -> None:
        action = "append" if many else "store_true" if flag else "store"
        group.addoption(f"--vllm-{name}", action=action, dest=_dest(name), default=None, help=text, **more)
        ini(name, text, "args" if many else "bool" if flag else "string")

    return option, ini


def _reader(config: pytest.Config) -> Any:
    def read(name: str) -> Any:
        given = config.getoption(_dest(name))
        if given is not None:
            return given
        value = config.getini(_dest(name))
        if name == "concurrency" and value:
            return _positive(value)
        return value or None

    return read


def _dest(name: str) -> str:
    return f"vllm_{name.replace('-', '_')}"


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no count: give a whole number from 1 on, such as 8")
    return int(text)
