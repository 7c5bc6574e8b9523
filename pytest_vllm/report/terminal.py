"""What a run prints, as pure functions from facts to lines of at most 100 columns.

Voice: lower-case `vllm:` in front, facts in present or past tense, figures with units, no emoji.
Colour is support only (`Style`), so a terminal and a log share every line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pytest_vllm.locate import data_dir
from pytest_vllm.report.answer import detail_lines, last_screen, verdict_lines
from pytest_vllm.report.failure import failure_block
from pytest_vllm.report.redaction import redactor_for, scrub
from pytest_vllm.report.text import (
    PLAIN,
    WHOLE,
    Style,
    clip,
    clock,
    count,
    printable,
    ruled,
    shown_path,
    wrap,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pytest_vllm.profile.model import Profile
    from pytest_vllm.report.record import BootFailure
    from pytest_vllm.wire.redact import Redactor
    from pytest_vllm.wire.server import Server

__all__ = [
    "PLAIN",
    "Style",
    "boot_failure_text",
    "boot_line",
    "detail_lines",
    "did_not_boot_block",
    "failure_block",
    "header_lines",
    "last_screen",
    "origin_line",
    "origin_of",
    "phase_line",
    "probe_text",
    "verdict_lines",
]

LABEL, EVIDENCE_LINES, EVIDENCE_ROWS = 15, 20, 4


class HeaderOptions(Protocol):
    """What the header says of the options."""

    @property
    def baseline(self) -> Path | None:
        """The baseline that the run is compared with."""

    @property
    def replay(self) -> Path | None:
        """The run folder that is judged again."""


def header_lines(
    profiles: Iterable[Profile], folder: Path, options: HeaderOptions, *, style: Style = PLAIN
) -> list[str]:
    """What is about to be verified.

    Args:
        profiles: the profiles of the run, with what the command line changed.
        folder: the run folder.
        options: the baseline and the replayed folder.
        style: colour and width.
    """
    lines = [line for profile in profiles for line in _about(profile, style)]
    kept = f"run folder {shown_path(folder)}"
    if options.baseline:
        kept = f"baseline {shown_path(options.baseline)}; {kept}"
    if options.replay:
        kept = f"judging the recordings of {shown_path(options.replay)} again, no server is asked; {kept}"
    return [*lines, printable(f"vllm: {kept}")]


def _about(profile: Profile, style: Style) -> list[str]:
    server = profile.server
    what = server.url if not server.kind.starts else server.image if not server.kind.simulated else ""
    named = f"profile {profile.name} ({origin_of(profile)})"
    how = "simulated, no vLLM and no GPU" if server.kind.simulated else server.launcher
    parts = [named, f"{how} {what}".strip() if what else how, server.model]
    text = printable("vllm: " + ", ".join(part for part in parts if part))
    head, *rest = wrap(text, style.width - len("vllm: "))
    return [head, *(" " * len("vllm: ") + line for line in rest)]


def origin_line(profile: Profile, *, style: Style = PLAIN) -> str:
    """`profile NAME (built in), docker IMAGE, MODEL`, on one line."""
    return clip(" ".join(line.strip() for line in _about(profile, style)).removeprefix("vllm: "), 2 * WHOLE)


def origin_of(profile: Profile) -> str:
    """Where a profile came from: `built in`, or its file."""
    if profile.source is None or profile.source.is_relative_to(data_dir("fixtures")):
        return "built in"
    return shown_path(profile.source)


def phase_line(label: str, elapsed: float, text: str, *, style: Style = PLAIN) -> str:
    """`vllm: boot    2:30  loading weights, 7 of 15 shards`."""
    return clip(f"vllm: {label:7} {clock(elapsed):>4}  {printable(text)}", style.width)


def boot_line(elapsed: float, text: str, *, style: Style = PLAIN) -> str:
    """A line of the boot."""
    return phase_line("boot", elapsed, text, style=style)


def probe_text(server: Server, expected: Iterable[str] = ()) -> str:
    """What the probe found: `vLLM 0.32.0; chat stream tools; not lora vision`.

    Args:
        server: the probed server.
        expected: capabilities the profile expects; absent ones are named as missing.
    """
    version = f"vLLM {server.version}" if server.version else "version unknown"
    if server.simulated:
        version = f"simulated {version}"
    present = [name for name, one in server.capabilities.items() if one.present]
    missing = [name for name in expected if name not in present]
    absent = [name for name in server.capabilities if name not in present and name not in missing]
    parts = [version, " ".join(present) or "no capability found"]
    parts += [f"expected but absent: {' '.join(missing)}"] if missing else []
    parts += [f"not {' '.join(absent)}"] if absent else []
    return "; ".join(parts)


def did_not_boot_block(
    failure: BootFailure, *, redactor: Redactor | None = None, style: Style = PLAIN
) -> list[str]:
    """All that is printed when a server does not boot.

    Args:
        failure: what happened, the evidence, what it means, what to try, what was kept.
        redactor: takes secrets out; the default knows what credentials look like.
        style: colour and width.
    """
    failure = scrub(failure, redactor or redactor_for(()))
    evidence = [
        row
        for text in failure.evidence
        for line in text.split("\n")
        for row in wrap(printable(line), style.width - 2)[:EVIDENCE_ROWS]
    ]
    lines = [style.bad(ruled("vllm: did not boot", style.width))]
    lines += wrap(printable(boot_failure_text(failure)), style.width)
    if len(evidence) > EVIDENCE_LINES:
        lines.append(f"  … {count(len(evidence) - EVIDENCE_LINES, 'earlier line')}")
    lines += [f"  {line}" for line in evidence[-EVIDENCE_LINES:]]
    for label, texts in (
        ("what it means", [failure.means]),
        ("try", failure.try_),
        ("kept", [", ".join(failure.kept)]),
    ):
        rows = [row for text in texts if text for row in _rows(text, style)]
        lines += [f"{label if n == 0 else '':{LABEL}}{row}" for n, row in enumerate(rows)]
    return lines


def boot_failure_text(failure: BootFailure) -> str:
    """`spark-fp8: the container exited with status 1 after 3:12, while sizing the KV cache`."""
    name = f"{failure.profile} (simulated)" if failure.simulated else failure.profile
    when = f" after {clock(failure.seconds)}, while {failure.phase}" if failure.phase else ""
    return f"{name}: {failure.what}{when}"


def _rows(text: str, style: Style) -> list[str]:
    return [row for line in text.split("\n") for row in wrap(printable(line), style.width - LABEL)]
