"""A sweep without servers: vLLM's own parser objects in one process of its Python."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.scripted.grammar import load
from pytest_vllm.scripted.model import build
from pytest_vllm.scripted.writing import Writer
from tools.sweep.compare import faults
from tools.sweep.rows import MODES, Outcome, Pair, Row, cases, tools, unpromised

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pytest_vllm.scripted.grammar import Script

QUIET = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
}


def sweep_alone(
    python: str, version: str, chosen: Sequence[Pair], only: Collection[str] = ()
) -> Iterator[Row]:
    """Rows, as they are done.

    Args:
        python: the Python that has vLLM.
        version: that it has.
        chosen: the parsers.
        only: the cases that are said; all without any.

    Raises RuntimeError, with the end of what it printed, when that Python ends before its work is done.
    """
    with tempfile.TemporaryDirectory(prefix="pytest-vllm-sweep-") as name:
        folder = Path(name)
        jobs = [job(pair, folder / f"model-{number}", only) for number, pair in enumerate(chosen)]
        given = folder / "jobs"
        given.write_text("".join(json.dumps(one) + "\n" for one in jobs), "utf-8")
        log = folder / "log"
        with given.open("rb") as source, log.open("wb") as errors:
            process = subprocess.Popen(  # noqa: S603 - the person names the Python
                [python, str(Path(__file__).with_name("alone.py"))],
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **QUIET},
                text=True,
            )
        with process:
            try:
                yield from _rows(process, version, chosen, only)
            finally:
                process.kill()
        if process.returncode not in {0, -9}:
            told = "\n".join(log.read_text("utf-8", "replace").splitlines()[-5:])
            raise RuntimeError(f"{python} ended with status {process.returncode}:\n{told}")


def job(pair: Pair, folder: Path, only: Collection[str] = ()) -> dict[str, Any]:
    """What `alone.py` is to do for two parsers; their tokenizer is made in the folder."""
    writer = writer_of(pair)
    build(folder, markers=writer.markers, special=writer.special, closed=writer.closed)
    told: list[dict[str, Any]] = []
    for name, script, long in cases(pair, only):
        text = writer.write(script)
        split = text if long else writer.pieces(text)
        told += [{"id": name, "mode": mode, "script": split if mode == "split" else text} for mode in MODES]
    return {
        "tool": pair.tool,
        "reasoning": pair.reasoning,
        "model": str(folder),
        "kwargs": writer.kwargs,
        "tools": tools(),
        "cases": told,
    }


def writer_of(pair: Pair) -> Writer:
    """What writes scripts for two parsers."""
    return Writer(
        load(pair.tool, "tool") if pair.tool else None,
        load(pair.reasoning, "reasoning") if pair.reasoning else None,
    )


def mark(pair: Pair) -> str:
    """A digest of all that is said to two parsers, and of what the tool parser promises."""
    writer = writer_of(pair)
    said = [[name, writer.write(script)] for name, script, _ in cases(pair)]
    promises = dict(writer.tool.promises) if writer.tool else {}
    told = json.dumps([MODES, said, writer.markers, writer.special, dict(writer.kwargs), promises])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _rows(
    process: subprocess.Popen[str], version: str, chosen: Sequence[Pair], only: Collection[str]
) -> Iterator[Row]:
    assert process.stdout is not None  # noqa: S101 - it was asked for
    for pair in chosen:
        row, began = Row(pair, version, "alone", mark=mark(pair)), time.monotonic()
        scripts = {name: script for name, script, _ in cases(pair, only)}
        for _ in range(len(scripts) * len(MODES)):
            line = process.stdout.readline()
            if not line:
                process.wait()
                return
            came = json.loads(line)
            if "id" not in came:
                row.broken = came["error"]
                break
            note(row, f"{came['mode']}[{came['id']}]", came, scripts[came["id"]])
        row.cases_s = round(time.monotonic() - began, 1)
        yield row


def note(row: Row, key: str, came: dict[str, Any], script: Script) -> None:
    """Write down what came for a script."""
    wrong = [f"error {came['error']}"] if came.get("error") else faults(came, script)
    missing = unpromised(row.pair.tool, script) if wrong and not came.get("error") else ""
    outcome: Outcome = "unpromised" if missing else "failed" if wrong else "passed"
    row.outcomes[key] = outcome
    if wrong:
        row.evidence[key] = "; ".join([*([f"not promised: {missing}"] if missing else []), *wrong])
