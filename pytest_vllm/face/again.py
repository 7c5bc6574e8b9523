"""The options that reach a server, or one booted like it, again: what a printed rerun line begins with."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.report.text import shown_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.face.options import Options


def reaching(options: Options, name: str | None = None) -> str:
    """The options, quoted for a shell.

    Args:
        options: of this run.
        name: only what is about this profile; None: about all of them.
    """
    if options.replay is not None:
        return shlex.join([f"--vllm-replay={shown_path(options.replay)}"])
    return shlex.join([*_whose(options, name), *_way(options), *_changes(options)])


def _whose(options: Options, name: str | None) -> Iterator[str]:
    named = [given for given in options.profiles if name is None or _is_named(given, name)]
    yield from (f"--vllm-profile={given}" for given in named)
    if options.source and not named:
        # what came by standard input is sent again there
        yield f"--vllm-from={'-' if chr(10) in options.source else options.source}"
        if options.service:
            yield f"--vllm-service={options.service}"
    if options.url:
        yield f"--vllm-url={options.url}"


def _way(options: Options) -> Iterator[str]:
    files = {"ca-file": options.ca_file, "client-cert": options.client_cert, "client-key": options.client_key}
    yield from (f"--vllm-{option}={shown_path(path)}" for option, path in files.items() if path)
    if options.proxy:
        yield f"--vllm-proxy={options.proxy}"
    if options.api_key_env != "VLLM_API_KEY":
        yield f"--vllm-api-key-env={options.api_key_env}"


def _changes(options: Options) -> Iterator[str]:
    """What the command line changes of the profile."""
    changes = {
        "launcher": options.launcher,
        "image": options.image,
        "model-config": options.model_config and shown_path(options.model_config),
        "hardware": options.hardware,
        "tool-parser": options.tool_parser,
        "reasoning-parser": options.reasoning_parser,
        # others are within what a check needs
        "tier": options.tier if options.tier in ("soak", "explore") else None,
    }
    yield from (f"--vllm-{option}={value}" for option, value in changes.items() if value)
    yield from (f"--vllm-defect={defect}" for defect in options.defects)


def _is_named(given: str, name: str) -> bool:
    return given == name or Path(given).stem == name
