"""Writes a run's reports into its folder, each file at once or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pytest_vllm.report import exports, json_report, markdown
from pytest_vllm.report.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pytest_vllm.report.json_report import CurlWriter
    from pytest_vllm.report.record import RunRecord
    from pytest_vllm.wire.redact import Redactor

SHEBANG = "#!/bin/sh\n"


def write_all(
    record: RunRecord,
    redactor: Redactor,
    folder: Path,
    *,
    curl: CurlWriter | None = None,
    unwritten: dict[str, str] | None = None,
) -> dict[str, Path]:
    """Write the reports, their exports for other programs, and a curl script per check that did not pass.

    Args:
        record: the run.
        redactor: takes secrets out of every file.
        folder: the run folder; made when it does not exist.
        curl: writes a request as a script; `wire.curl.curl` unless given.
        unwritten: is given file name -> why, for each file that could not be made or written; the others are
            written all the same. Without it such an error is raised.

    Returns:
        file name (relative to the folder) -> path of everything that was written.
    """
    # Imported here: no other pytest run of this environment shall pay for a template engine and a client.
    from pytest_vllm.report import html  # noqa: PLC0415
    from pytest_vllm.wire.curl import curl as wire_curl  # noqa: PLC0415

    document = json_report.document(record, redactor, curl or wire_curl)
    makers: dict[str, Callable[[], str]] = {
        "report.json": lambda: json_report.dumps(document),
        "report.md": lambda: markdown.render(document),
        "report.html": lambda: html.render(document),
        "report.sarif": lambda: exports.sarif(document),
        "metrics.prom": lambda: exports.openmetrics(document),
        "badge.svg": lambda: exports.badge(document),
        "measurements.csv": lambda: exports.measurements(document),
        **{name: lambda text=text: text for name, text in _scripts(document).items()},  # type: ignore[misc]
    }
    written: dict[str, Path] = {}
    for name, made in makers.items():
        try:
            written[name] = write(folder / name, made(), runs=name.endswith(".sh"))
        except Exception as error:
            if unwritten is None:
                raise
            unwritten[name] = f"{type(error).__name__}: {error}"
    return written


def _scripts(document: Mapping[str, Any]) -> dict[str, str]:
    """By file name: what sends a check's exchanges again, for every profile on which it did not pass."""
    parts: dict[str, list[str]] = {}
    for row in document["results"]:
        evidence = row["evidence"]
        if evidence and evidence["script"]:
            head = f"{row['check']} on {row['profile']}: {row['verdict']}"
            lines = [head, row["fact"], *row["reason"].split("\n")]
            if evidence["left_out"]:
                lines.append(f"{evidence['left_out']} more exchanges of this check are in its recordings")
            said = "\n".join(f"# {printable(line)}" for line in lines)
            commands = [script.removeprefix(SHEBANG) for script in evidence["curl"]]
            parts.setdefault(evidence["script"], [SHEBANG.rstrip()]).append("\n\n".join([said, *commands]))
    return {name: "\n\n".join(blocks) for name, blocks in parts.items()}


def write(path: Path, text: str, *, runs: bool = False) -> Path:
    """Write a file at once or not at all. Raises OSError.

    Args:
        path: its folder is made.
        text: as UTF-8.
        runs: whether it is a program.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        # A lone surrogate, which no UTF-8 can hold, becomes the escape that JSON and people read.
        fresh.write_bytes(text.encode("utf-8", "backslashreplace"))
        if runs:
            fresh.chmod(0o755)
        os.replace(fresh, path)  # noqa: PTH105 - the atomic one
    except OSError:
        fresh.unlink(missing_ok=True)  # a full disk keeps no halves
        raise
    return path
