"""Known failures: what a profile waives, for which versions, until when. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pytest_vllm.decide.verdict import Family, Level, Result, Verdict
from pytest_vllm.facts.version import version_of

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Sequence


class Able(Protocol):
    """A server that is known to have capabilities."""

    def can(self, name: str) -> bool:
        """Whether it has this one."""


class Waiver(Protocol):
    """A known failure, as a profile writes it."""

    @property
    def check(self) -> str:
        """The id of a check, with a case in brackets or without."""

    @property
    def reason(self) -> str:
        """Why it is accepted."""

    @property
    def issue(self) -> str:
        """The thread where it is known."""

    @property
    def versions(self) -> str:
        """The versions of vLLM that have it, as a specifier set."""

    @property
    def until(self) -> dt.date:
        """The last day on which it is accepted."""

    @property
    def capability(self) -> str | None:
        """What a server has on which alone it is accepted; None for every server."""


def holding(waivers: Iterable[Waiver], server: Able) -> list[Waiver]:
    """Those that hold on a server that can what it can: the others neither waive nor grow stale."""
    return [one for one in waivers if not one.capability or server.can(one.capability)]


def in_range(version: str, versions: str) -> bool:
    """Whether a version lies in a waiver's range, by `facts.version`; an unknown one lies in none."""
    running = version_of(version)
    return running is not None and running.within(versions)


def covers(waiver: Waiver, check: str) -> bool:
    """Whether a waiver names this check: the check's id, or one case of it."""
    return waiver.check in (check, check.partition("[")[0])


def apply_waivers(result: Result, waivers: Iterable[Waiver], version: str, today: dt.date) -> Result:
    """A failing result, waived where the profile says so; an expired waiver says that it is expired."""
    if result.verdict not in (Verdict.FAIL, Verdict.ADVISORY):
        return result
    for waiver in waivers:
        if not covers(waiver, result.check) or not in_range(version, waiver.versions):
            continue
        if today <= waiver.until:
            why = f"{waiver.reason} ({waiver.issue}, until {waiver.until}); {result.reason}"
            return replace(result, verdict=Verdict.WAIVED, reason=why)
        reason = f"{result.reason}\nits waiver ended on {waiver.until}: {waiver.reason} ({waiver.issue})"
        return replace(result, verdict=Verdict.FAIL, reason=reason)
    return result


def stale_waivers(
    results: Sequence[Result], waivers: Iterable[Waiver], version: str, profile: str
) -> list[Result]:
    """One failure for every waiver whose check was decided and no longer fails."""
    stale = []
    for waiver in waivers:
        covered = [r for r in results if r.profile == profile and covers(waiver, r.check)]
        decided = covered and all(r.verdict in (Verdict.PASS, Verdict.NOT_RUN) for r in covered)
        if decided and any(r.verdict is Verdict.PASS for r in covered) and in_range(version, waiver.versions):
            stale.append(_stale(waiver, version, profile))
    return stale


def _stale(waiver: Waiver, version: str, profile: str) -> Result:
    return Result(
        check=f"waiver.{waiver.check}",
        level=Level.MUST,
        family=Family.ENVIRONMENT,
        verdict=Verdict.FAIL,
        fact="Every waiver of the profile still matches a failing check.",
        reason=(
            f"{waiver.check} passes on {version}: remove its waiver, or narrow versions = {waiver.versions!r}"
        ),
        area="waivers",
        spec="profile:waive",
        profile=profile,
    )
