"""What a preflight rule is, and what it finds.

A rule is a function of a deployment that yields findings; its docstring says in one line what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_vllm.preflight.deployment import Deployment


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """The server will not start, or will not do what the profile is for."""
    WARNING = "warning"
    """It starts, and something is lost: speed, memory, safety."""
    NOTE = "note"
    """Worth knowing."""


ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
_ORDER = (ERROR, WARNING, NOTE)


@dataclass(frozen=True)
class Fix:
    """A change of a profile that a program can make.

    Args:
        key: the TOML path that changes, `server.args.max-num-seqs`.
        action: set, remove or rename.
        value: what is set.
        to: the new name of a renamed key, within the same table.
    """

    key: str
    action: str = "set"
    value: Any = None
    to: str = ""

    def __str__(self) -> str:
        """As the line of a finding says it."""
        name = self.key.removeprefix("server.args.").removeprefix("server.env.")
        if self.action == "remove":
            return f"remove {name}"
        if self.action == "rename":
            return f"rename {name} to {self.to}"
        return f"{name} = {shown(self.value)}"


@dataclass(frozen=True)
class Finding:
    """What a rule found.

    Args:
        key: the TOML path that it is about.
        observed: what stands there, with the numbers.
        means: what follows from it.
        fix: the change that removes it, None where a person must decide.
        advice: what to do where no fix can be given.
        severity: how bad this case is, where it is less than the rule's own.
        rule: the rule's id.
    """

    key: str
    observed: str
    means: str = ""
    fix: Fix | None = None
    advice: str = ""
    severity: Severity = ERROR
    rule: str = ""

    @property
    def text(self) -> str:
        """One line: observed, what it means, the fix."""
        said = f"{self.observed}: {self.means}" if self.means else self.observed
        remedy = str(self.fix) if self.fix else self.advice
        return f"{said}; fix: {remedy}" if remedy else said


Found = Callable[["Deployment"], Iterator[Finding]]


@dataclass(frozen=True)
class Rule:
    """A rule as it is listed.

    Args:
        name: its id, `topic.words`.
        severity: of its findings, at most.
        versions: vLLM versions that it holds for; empty for all.
        source: where the fact comes from.
        summary: what is wrong, one line.
        function: finds it.
    """

    name: str
    severity: Severity
    versions: str
    source: str
    summary: str
    function: Found

    def applies(self, deployment: Deployment) -> bool:
        """Whether the deployment's version is in the rule's range."""
        return not self.versions or deployment.within(self.versions)

    def findings(self, deployment: Deployment) -> Iterator[Finding]:
        """What it finds. A version that is only guessed makes no errors of what depends on it."""
        if not self.applies(deployment):
            return
        guessed = bool(self.versions) and not deployment.version_known
        # a --config file may set what seems to be missing here
        guessed |= deployment.has("config") and not self.name.startswith("flags.")
        for found in self.function(deployment):
            least = WARNING if guessed else ERROR
            severity = max(self.severity, found.severity, least, key=_ORDER.index)
            yield replace(found, rule=self.name, severity=severity)


RULES: dict[str, Rule] = {}


def rule(
    name: str, severity: Severity, *, versions: str = "", source: str = "vllm"
) -> Callable[[Found], Found]:
    """Make a function a rule.

    Args:
        name: `topic.words`, never used again once it was published.
        severity: of what it finds.
        versions: vLLM versions that it holds for, `>=0.17,<0.33`.
        source: where the fact comes from: a file of vLLM, an issue, a guide.
    """

    def register(function: Found) -> Found:
        summary = (function.__doc__ or "").strip().splitlines()[0]
        RULES[name] = Rule(name, severity, versions, source, summary, function)
        return function

    return register


def rank(finding: Finding) -> tuple[int, str, str]:
    """Errors first, then by key."""
    return _ORDER.index(finding.severity), finding.key, finding.rule


def shown(value: Any) -> str:
    """A value as TOML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {shown(item)}" for key, item in value.items()) + " }"
    return f"[{', '.join(map(shown, value))}]" if isinstance(value, list) else str(value)


def put(key: str, value: Any) -> Fix:
    """The fix that sets a key."""
    return Fix(key, "set", value)


def drop(key: str) -> Fix:
    """The fix that removes a key."""
    return Fix(key, "remove")
