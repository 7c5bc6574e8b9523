"""`pytest-vllm preflight`: finds, prints, fixes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.preflight import judge, render
from pytest_vllm.preflight.inspect import inspect_host
from pytest_vllm.preflight.rule import ERROR
from pytest_vllm.profile.errors import ProfileError
from pytest_vllm.profile.load import load
from pytest_vllm.profile.sources import find
from pytest_vllm.profile.write import to_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_vllm.preflight.judged import Verdict
    from pytest_vllm.preflight.rule import Finding
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.profile.reply import Reply


def judged(
    name: str, root: Path, *, host: bool = False, ask: Callable[[Profile], Reply | None] = lambda _: None
) -> tuple[Profile, list[Verdict]]:
    """A profile and what every rule says of it. Raises ProfileError.

    Args:
        name: a profile's name or path.
        root: the project.
        host: ask this machine too.
        ask: asks the profile's own vLLM what it says of the arguments.
    """
    try:
        profile = load(name, root)
    except ProfileError:
        profile = load(name, root, expand=False)  # another machine's variables are not this profile's fault
    return profile, judge(profile, root, inspect_host(profile) if host else None, ask(profile))


def exit_status(findings: Sequence[Finding]) -> int:
    """1 with errors, else 0."""
    return int(any(one.severity is ERROR for one in findings))


def write_fixed(name: str, root: Path, findings: Sequence[Finding], to: Path) -> list[str]:
    """Write the profile with its fixes; one line for each fix, done or not.

    Args:
        name: a profile's name or path.
        root: the project.
        findings: those of that profile.
        to: its own file, or a new one.
    """
    from pytest_vllm.preflight.fixes import fixed  # noqa: PLC0415 - tomlkit is for this alone

    document = find(name, root, base=Path.cwd())
    own = to.resolve() == document.file.resolve()
    if own or not document.prefix:
        text, done = fixed(document.text, findings, prefix=document.prefix)
    else:
        text, done = fixed(to_toml(load(name, root, expand=False)), findings)
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(text, "utf-8")
    rest = [one for one in findings if one.fix not in done]
    told = [f"{to}: {fix}" for fix in done]
    told += [f"{to}: left to you: {one.rule}: {one.fix or one.advice or one.observed}" for one in rest]
    return told or [f"{to}: nothing to fix"]


def write_sarif(findings: Sequence[Finding], profile: Profile, root: Path, version: str, to: Path) -> None:
    """Write the findings as SARIF 2.1.0."""
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(render.sarif_text(findings, profile, root, version), "utf-8")
