"""Environment variables of the server against the version."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from pytest_vllm.facts.version import Version
from pytest_vllm.preflight.facts import entries, lives
from pytest_vllm.preflight.rule import ERROR, NOTE, WARNING, Finding, drop, rule
from pytest_vllm.profile.flags import covered, not_known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment

_NEXT = "vLLM ignores it; from 0.17 on it warns"


def _variables(of: Deployment) -> Iterator[str]:
    yield from (name for name in of.profile.server.env if name.startswith("VLLM_"))


@rule("environment.removed", WARNING, source="vllm/envs.py of each release")
def removed(of: Deployment) -> Iterator[Finding]:
    """A VLLM_ variable that this version no longer reads."""
    for name in _variables(of):
        row = entries("environment").get(name, {})
        if "removed" in row and of.release >= Version(row["removed"]):
            instead = row.get("instead", "")
            yield Finding(
                f"server.env.{name}",
                f"{name} is not read since vLLM {row['removed']}",
                f"{of.shown_version} runs as if it were not there",
                None if instead else drop(f"server.env.{name}"),
                advice=f"use {instead}" if instead else "",
            )


@rule("environment.not-yet", WARNING, source="vllm/envs.py of each release")
def not_yet(of: Deployment) -> Iterator[Finding]:
    """A VLLM_ variable that a later version reads."""
    for name in _variables(of):
        added = entries("environment").get(name, {}).get("added")
        if added and of.release < Version(added):
            key = f"server.env.{name}"
            yield Finding(key, f"{name} came with vLLM {added}", f"{of.shown_version} ignores it", drop(key))


@rule("environment.unknown", WARNING, source="vllm/envs.py of each release")
def unknown(of: Deployment) -> Iterator[Finding]:
    """A VLLM_ variable that no version knows."""
    known, server = entries("environment"), of.profile.server
    judged = covered(server.launcher, server.image, server.version)
    for name in _variables(of):
        if name not in known and name != "VLLM_PYTHON" and not judged:
            yield Finding(f"server.env.{name}", not_known(f"the variable {name}"), severity=NOTE)
        elif name not in known and name != "VLLM_PYTHON":
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
            yield Finding(
                f"server.env.{name}",
                f"{name} is not a variable of vLLM's",
                _NEXT,
                advice=f"did you mean {near[0]}?" if near else "",
            )


@rule("environment.strict", ERROR, versions=">=0.17", source="vllm/envs.py")
def strict(of: Deployment) -> Iterator[Finding]:
    """An unknown VLLM_ variable while unknown ones stop the start."""
    if not of.on("fail-on-environ-validation"):
        return
    for name in _variables(of):
        row = entries("environment").get(name)
        if row is None or not lives(row, of.release):
            key = f"server.env.{name}"
            yield Finding(
                key,
                f"{of.shown_version} does not know {name}",
                "fail-on-environ-validation stops it",
                drop(key),
            )


@rule("environment.v0", ERROR, versions=">=0.11,<0.11.1", source="vllm/v1/engine/async_llm.py")
def v0(of: Deployment) -> Iterator[Finding]:
    """The V0 engine is asked for where it is gone."""
    if of.env("VLLM_USE_V1") == "0":
        key = "server.env.VLLM_USE_V1"
        yield Finding(key, "VLLM_USE_V1 is 0", "vLLM 0.11.0 has no V0 engine and refuses", drop(key))


@rule("environment.lora-servers", ERROR, versions=">=0.9.2", source="vllm/entrypoints/cli/serve.py")
def lora_servers(of: Deployment) -> Iterator[Finding]:
    """Adapters are loaded at run time while several API servers answer."""
    servers = of.whole("api-server-count", 1)
    if of.env_on("VLLM_ALLOW_RUNTIME_LORA_UPDATING") and servers > 1:
        yield Finding(
            of.key("api-server-count"),
            f"VLLM_ALLOW_RUNTIME_LORA_UPDATING with {servers} API servers",
            "vLLM refuses: an adapter would be known to one of them only",
            drop(of.key("api-server-count")),
        )


@rule("environment.rust-frontend", WARNING, versions=">=0.22", source="rust/src/server")
def rust_frontend(of: Deployment) -> Iterator[Finding]:
    """The Rust front end serves a part of the routes and reads its own flags."""
    if of.env_on("VLLM_USE_RUST_FRONTEND"):
        yield Finding(
            "server.env.VLLM_USE_RUST_FRONTEND",
            "VLLM_USE_RUST_FRONTEND is on",
            "it has no /v1/messages and no batch routes, and flags are not checked against it",
        )
