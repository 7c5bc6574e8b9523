"""What failed once and is asked in every later gate of a profile: `vllm-profiles/NAME.regressions.jsonl`.

One JSON object in a line for each trial, made to be read, edited and checked in. The model's name is left out
where it is the server's own, so that the requests fit whatever name it is served under.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_vllm.wire.recording import Request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_vllm.run.trials import Trial
    from pytest_vllm.wire.server import Server

FOLDER, SUFFIX = "vllm-profiles", ".regressions.jsonl"
#: Regressions of a profile that a gate asks, the newest first: a file that grows must not outgrow the gate.
MOST = 64


@dataclass(frozen=True)
class Regression:
    """A trial that failed once.

    Args:
        id: of its requests.
        requests: by name.
    """

    id: str
    requests: Mapping[str, Request]


def file_of(rootdir: Path, profile: str) -> Path:
    """Where the regressions of a profile lie."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", profile).strip(".-") or "server"
    return rootdir / FOLDER / f"{name}{SUFFIX}"


def read(path: Path, server: Server) -> tuple[list[Regression], list[str]]:
    """The regressions of a file, the newest first, and what is wrong with its lines, in words."""
    if not path.is_file():
        return [], []
    found, wrong = [], []
    for number, line in enumerate(path.read_text("utf-8", errors="replace").split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            row = json.loads(line)
            requests = {str(name): _request(one, server) for name, one in row["requests"].items()}
            found.append(Regression(str(row["id"]), requests))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            wrong.append(f"{path.name}, line {number} is not a regression ({type(error).__name__}: {error})")
    newest = list({one.id: one for one in reversed(found)}.values())
    if len(newest) > MOST:
        wrong.append(f"{path.name}: only the newest {MOST} of {len(newest)} regressions were asked")
    return newest[:MOST], wrong


def write(path: Path, trials: Sequence[Trial], server: Server, seed: int) -> list[str]:
    """Add trials to a file, each once; their ids. Raises OSError."""
    known = {one.id for one in read(path, server)[0]}
    rows = [_row(trial, server, seed) for trial in trials]
    fresh = [row for row in rows if row["id"] not in known]
    if fresh:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in fresh)
    return [str(row["id"]) for row in rows]


def _row(trial: Trial, server: Server, seed: int) -> dict[str, Any]:
    """One line; what follows from the answers is asked anew each time."""
    asked = [one for one in trial.recordings if "[" not in one.key]
    requests = {one.key: _plain(one.request, server) for one in asked}
    return {
        "id": hashlib.sha256(json.dumps(requests, sort_keys=True).encode()).hexdigest()[:12],
        "found": dt.datetime.now(dt.UTC).date().isoformat(),
        "vllm": server.version,
        "seed": seed,
        "faults": [f"{one.rule}: {one.said[:200]}" for one in trial.faults],
        "requests": requests,
    }


def _plain(request: Request, server: Server) -> dict[str, Any]:
    body = request.json
    if isinstance(body, dict) and body.get("model") == server.model:
        body = {name: value for name, value in body.items() if name != "model"}
    return {"method": request.method, "path": request.path, "headers": dict(request.headers), "json": body}


def _request(plain: Mapping[str, Any], server: Server) -> Request:
    body, path = plain["json"], str(plain["path"])
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is not a path")
    if isinstance(body, dict):
        body = {"model": server.model, **body}
    return Request(str(plain["method"]), path, json=body, headers=dict(plain["headers"]))
