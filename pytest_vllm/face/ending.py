"""How much a run prints: evidence once for each cause, and a CI job's log that somebody reads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.report.causes import MOST_CAUSES

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_vllm.face.session import GateSession

#: What pytest itself takes for the sign of a CI job.
CI = ("CI", "BUILD_NUMBER")
NARROW = 80


def width_of(config: pytest.Config) -> int:
    """Columns of the terminal; 80 in an xdist worker, which has none."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return NARROW if reporter is None else config.get_terminal_writer().fullwidth


def brief(config: pytest.Config) -> bool:
    """Whether this is a CI job's log, in which nobody scrolls, by pytest's own signs; not with -v."""
    return any(map(os.environ.get, CI)) and config.get_verbosity() < 1


def compact_progress(config: pytest.Config) -> None:
    """In a CI job's log, letters without a line for each of two hundred files of checks."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and brief(config):
        reporter.showfspath = False


def choose_evidence(session: GateSession, config: pytest.Config) -> list[pytest.TestReport]:
    """Let pytest print a block for each of the likeliest causes, in order, and the person's own tests.

    With -v it prints all. Returns the reports as they were, for `count_all`.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or session.record is None:
        return []
    every: list[pytest.TestReport] = reporter.stats.get("failed", [])
    found = session.record.causes
    ordered = [one for cause in found for one in cause.checks]
    ranks = {(one.profile, one.check): rank for rank, one in enumerate(ordered)}
    stands = {(cause.first.profile, cause.first.check) for cause in found[:MOST_CAUSES]}
    wanted = ranks if config.get_verbosity() > 0 else stands
    ours = sorted((one for one in every if _told(one) in wanted), key=lambda one: ranks[_told(one)])
    own = [one for one in every if _is_pytests(one)]
    if every:
        reporter.stats["failed"] = [*ours, *own]
    return every


def only_own(config: pytest.Config) -> None:
    """Leave pytest's short summary to the person's own tests: the verdict lists checks by their ids."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and "failed" in reporter.stats:
        reporter.stats["failed"] = [one for one in reporter.stats["failed"] if _is_pytests(one)]


def count_all(every: list[pytest.TestReport], config: pytest.Config) -> None:
    """Give back what `choose_evidence` took, so that pytest's last line counts every failure."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and every:
        reporter.stats["failed"] = every


def _is_pytests(report: pytest.TestReport) -> bool:
    """Whether pytest's own words are shown: of a person's test, or of an error in a person's check."""
    return not hasattr(report, "vllm_result") or getattr(report, "vllm_crashed", False)


def _told(report: pytest.TestReport) -> tuple[str, str]:
    told = getattr(report, "vllm_result", {})
    return told.get("profile", ""), told.get("check", "")


class EvidencePlugin:
    """Chooses what pytest's own summary prints of failing checks, around all that prints it."""

    def __init__(self, config: pytest.Config, session: GateSession) -> None:
        """Looks at the session when it has ended."""
        self.config, self.session = config, session

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self) -> Generator[None, object, object]:
        """One block for each of the likeliest causes; afterwards every failure counts again."""
        every = choose_evidence(self.session, self.config)
        try:
            return (yield)
        finally:
            count_all(every, self.config)
