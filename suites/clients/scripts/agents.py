"""What the scripts of coding agents share: an agent at work in a folder of its own, what it left there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepping import Task, taken

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FILE, WRITTEN = "answer.txt", "forty-two"
WISH = "Write the word forty-two into the file answer.txt, then say that it is written. [[say:{}]]"
#: Seconds that an agent may work; the gate ends the script itself a little later.
PATIENCE = 200


def at_work(name: str, words: Sequence[str], more: Mapping[str, str]) -> tuple[Path, str, str]:
    """Let an agent do its task. Its folder, what it printed, and what it complained of.

    Raises AssertionError when it fails or does not end.
    """
    folder = Path.cwd() / "work"
    folder.mkdir()
    try:
        ended = subprocess.run(  # noqa: S603 - the agent that was asked for
            words,
            cwd=folder,
            env={**os.environ, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        said = (error.stderr or b"").decode(errors="replace")[-300:]
        raise AssertionError(f"{name} did not end within {PATIENCE} s: {said}") from None
    said = (ended.stderr or ended.stdout).strip()[-400:]
    assert ended.returncode == 0, f"{name} ended with status {ended.returncode}: {said}"
    return folder, ended.stdout, ended.stderr


def done(task: Task, name: str, folder: Path, printed: str) -> None:
    """Whether the agent did what a scripted model told it to; of another, whether it said anything."""
    assert printed.strip(), f"{name} printed nothing"
    if not task.says:
        return
    path = folder / FILE
    left = sorted(one.name for one in folder.iterdir() if not one.name.startswith("."))
    assert path.is_file(), f"the call did not reach {name}: no {FILE}, but {left}; it says {printed[-200:]!r}"
    assert path.read_text() == WRITTEN, f"{name} wrote {path.read_text()!r} instead of {WRITTEN!r}"
    said = task.says[name][-1]["content"]
    assert said in printed, f"{name} prints {printed[-200:]!r} in the end, the model said {said!r}"


def serve(name: str, step: Callable[[Task, str], Any]) -> None:
    """Take the one step of an agent whose program has this name, and print what came of it."""
    task = Task(**json.loads(sys.stdin.read()))
    program = shutil.which(name)
    found: dict[str, Any] = {"version": "", "missing": "", "steps": {}}
    if program is None:
        found["missing"] = f"no program {name} is on the path, nor where PYTEST_VLLM_CLIENTS says"
    else:
        told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
        found["version"] = told.stdout.strip().split(" ")[-1]
        found["steps"] = {one: taken(lambda given: step(given, program), task) for one in task.steps}
    print("\n" + json.dumps(found))
