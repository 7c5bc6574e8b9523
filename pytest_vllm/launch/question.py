"""Asks the vLLM of a profile itself whether it takes the arguments: its own argument parser decides.

Exact for forks, nightlies and releases that the facts do not know. A container gets the image that is here
(nothing is pulled), no network, no GPU, no volume and no secret, and is removed; a process gets the Python
behind `vllm`. No server is started.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.launch import docker, podman
from pytest_vllm.launch.arguments import program_of
from pytest_vllm.launch.docker import connect
from pytest_vllm.launch.engine import labels_for, words_of
from pytest_vllm.launch.protocol import BootError, LaunchContext
from pytest_vllm.profile.exporters.words import arguments
from pytest_vllm.profile.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.launch.engine import Engine
    from pytest_vllm.profile.model import Profile

#: Importing vLLM takes ten seconds on a fast machine and a minute on a busy one.
SECONDS = 180
#: Stands for every secret: whether one is given decides nothing.
HIDDEN = "hidden"
SCRIPT = Path(__file__).with_name("questioned.py")
_OFFLINE = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


def question(profile: Profile) -> Reply | None:
    """Ask; None for a profile that starts no vLLM."""
    server = profile.server
    if not server.kind.starts_vllm:
        return None
    words = words_for(profile)
    if not server.kind.container:
        return _process(profile, words)
    whom = f"the vLLM of {server.image}" if server.image else "vLLM"
    try:
        return _container(_engine(server.launcher), profile, words)
    except BootError as error:
        return Reply(whom, unasked=error.what)


def words_for(profile: Profile) -> list[str]:
    """The arguments as they will be given, but for secrets and the address."""
    return [one if isinstance(one, str) else HIDDEN for one in arguments(profile, positional=True)]


def _engine(launcher: str) -> Engine:
    return connect((podman if launcher == "podman" else docker).url_from(os.environ))


def _container(engine: Engine, profile: Profile, words: Sequence[str]) -> Reply:
    image = str(profile.server.image)
    whom = f"the vLLM of {image}"
    create = {
        "entrypoint": ["python3"],
        "command": ["-c", SCRIPT.read_text("utf-8"), json.dumps(words)],
        "network_mode": "none",
        "environment": _OFFLINE,
        "labels": labels_for(LaunchContext("question", Path(), os.getpid()), profile.name),
    }
    box = None
    try:
        engine.client.images.get(image)
        box = engine.client.containers.create(image, **create)
        box.start()
        box.wait(timeout=SECONDS)
        printed = box.logs(stdout=True, stderr=False).decode("utf-8", "replace")
        complaint = box.logs(stdout=False, stderr=True, tail=1).decode("utf-8", "replace")
    except engine.missing:
        return Reply(whom, unasked=f"the image is not on this machine: {engine.name} pull {image}")
    except engine.errors as error:
        return Reply(whom, unasked=f"{engine.name}: {words_of(error)}")
    finally:
        if box is not None:
            with suppress(*engine.errors):
                box.remove(force=True, v=True)
    return read(printed, complaint, image)


def _process(profile: Profile, words: Sequence[str]) -> Reply:
    program, _ = program_of(profile)
    python = _python(program)
    if python is None:
        return Reply("vLLM", unasked=f"no Python of a vLLM is found behind {' '.join(program[:3])}")
    command = [python, "-c", SCRIPT.read_text("utf-8"), json.dumps(list(words))]
    try:
        done = subprocess.run(  # noqa: S603 - what the profile itself would start
            command,
            env={**os.environ, **_OFFLINE},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Reply("vLLM", unasked=str(error))
    return read(done.stdout, done.stderr.strip().rpartition("\n")[2], python)


def _python(program: Sequence[str]) -> str | None:
    """The interpreter that runs a program: itself, or the one in the first line of a script."""
    path = shutil.which(program[0])
    if path is None or "python" in Path(program[0]).name:
        return path
    with suppress(OSError, UnicodeDecodeError), Path(path).open(encoding="utf-8") as script:
        first = script.readline().strip()
        if first.startswith("#!") and "python" in first:
            return shutil.which(first.removeprefix("#!").split()[-1])
    return None


def read(printed: str, complaint: str, where: str) -> Reply:
    """The answer in what was printed.

    Args:
        printed: stdout; the last line is the answer.
        complaint: the last line of stderr, for an interpreter that could not even begin.
        where: the image or the interpreter.
    """
    try:
        said = json.loads(printed.strip().rpartition("\n")[2])
        version, refused, unasked = (str(said[key]) for key in ("version", "refused", "unasked"))
    except (ValueError, KeyError, TypeError):
        return Reply(f"the vLLM of {where}", unasked=complaint.strip() or "no answer came")
    return Reply(f"vLLM {version} of {where}" if version else f"the vLLM of {where}", refused, unasked)
