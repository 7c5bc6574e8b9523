"""Properties for pytest's own JUnit file (`--junitxml`): what a check is and what the run answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.report.redaction import redactor_for

if TYPE_CHECKING:
    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.report.record import RunRecord
    from pytest_vllm.wire.redact import Redactor


def properties(
    result: Result, *, simulated: bool, redactor: Redactor | None = None
) -> list[tuple[str, object]]:
    """Properties of one check's test case, for `item.user_properties`.

    Args:
        result: the check.
        simulated: whether its server is the simulator.
        redactor: takes secrets out; the default knows what credentials look like.
    """
    clean = redactor or redactor_for(())
    named: list[tuple[str, object]] = [
        ("vllm.check", clean.text(result.check)),
        ("vllm.level", str(result.level)),
        ("vllm.family", str(result.family)),
        ("vllm.verdict", str(result.verdict)),
        ("vllm.profile", clean.text(result.profile)),
        ("vllm.simulated", _yes(simulated)),
    ]
    for name, value in result.observations.items():
        named.append((clean.text(f"vllm.observed.{name}"), clean.text(value)))
    return named


def suite_properties(record: RunRecord, redactor: Redactor | None = None) -> list[tuple[str, object]]:
    """Properties of the whole test suite: the run, its answer, and each profile's server."""
    clean = redactor or redactor_for(record.servers.values())
    named: list[tuple[str, object]] = [
        ("vllm.run", clean.text(record.run_id)),
        ("vllm.answer", record.answer),
        ("vllm.exit_code", str(record.exit_code)),
        ("vllm.simulated", _yes(record.simulated)),
    ]
    for name, run in record.servers.items():
        about = f"{run.server.version or 'version unknown'}, {run.server.launcher}, {run.server.model}"
        named.append((clean.text(f"vllm.server.{name}"), clean.text(about)))
    return named


def _yes(value: bool) -> str:
    return "true" if value else "false"
