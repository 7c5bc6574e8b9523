"""Somebody's clients against the server: each a program of its own that reports its steps as JSON.

A client gets a temporary home, an environment that is made for it, and a relay on the loopback in place of
the server: the server's key never reaches it, and whatever it sends is recorded. Its packages are looked for
where `PYTEST_VLLM_CLIENTS` says (folders as in PATH: virtual environments, folders with `node_modules`), by
default beside the Python of this process.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.launch.processes import end, marked, marks
from pytest_vllm.launch.protocol import LaunchContext
from pytest_vllm.run.plan import build
from pytest_vllm.wire.recording import Recording
from pytest_vllm.wire.relay import Relay
from pytest_vllm.wire.store import RecordingStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_vllm.report.progress import Progress
    from pytest_vllm.run.plan import Planned
    from pytest_vllm.run.state import ServerState
    from pytest_vllm.wire.recording import Request
    from pytest_vllm.wire.redact import Redactor

WHERE, FOLDER = "PYTEST_VLLM_CLIENTS", "clients"
#: Characters of what a program printed that are kept where it reported nothing.
TAIL = 800
#: Seconds by which two readings of one clock may differ: a script's are rounded.
CLOCK = 0.002
#: What keeps common clients from telling others about a run, and from asking for updates.
QUIET = {
    "DO_NOT_TRACK": "1",
    "CI": "1",
    "NO_COLOR": "1",
    "DISABLE_TELEMETRY": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "AI_SDK_LOG_WARNINGS": "false",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
}


@dataclass(frozen=True)
class Places:
    """Where clients' packages lie.

    Args:
        folders: as `PYTEST_VLLM_CLIENTS` names them, in order.
    """

    folders: tuple[Path, ...] = ()

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Places:
        """Those that the environment names."""
        words = environ.get(WHERE, "").split(os.pathsep)
        return cls(tuple(Path(word).absolute() for word in words if word))

    @property
    def python(self) -> str:
        """The interpreter that runs clients: of the first folder that has one, else this process's."""
        found = [folder / "bin" / "python" for folder in self.folders]
        return next((str(path) for path in found if path.is_file()), sys.executable)

    @property
    def modules(self) -> str:
        """The first folder with `node_modules`; empty without one."""
        return next((str(one) for one in self.folders if (one / "node_modules").is_dir()), "")

    @property
    def path(self) -> str:
        """PATH of a client: what the folders bring, then this process's."""
        own = [str(one / sub) for one in self.folders for sub in ("bin", "node_modules/.bin")]
        return os.pathsep.join([*own, os.environ.get("PATH", os.defpath)])


@dataclass
class Report:
    """What became of a program.

    Args:
        steps: step -> `passed`, `error`, `seconds`, as it reported them.
        version: the client's.
        missing: why it could not be run at all.
        ended: how it ended before it had reported.
        late: whether its time was up.
        log: where its exchanges are kept, relative to the server's folder.
        requests: how many there were.
        elsewhere: whom it wanted to reach besides the server; it was not let.
    """

    steps: dict[str, Any] = field(default_factory=dict)
    version: str = ""
    missing: str = ""
    ended: str = ""
    late: bool = False
    log: str = ""
    requests: int = 0
    elsewhere: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """In a few words, for the progress."""
        passed = sum(1 for one in self.steps.values() if one.get("passed"))
        told = self.missing or self.ended or f"{passed} of {len(self.steps)} steps, {self.requests} requests"
        return f"{self.version} {told}".strip()


def run_clients(
    state: ServerState, plan: Sequence[Planned], redactor: Redactor, progress: Progress
) -> dict[str, Any]:
    """Run each client once and keep what became of it, with its exchanges, in the server's folder.

    Returns what the report tells of the phase: client -> what became of it, in a few words.
    """
    store, places, told = RecordingStore(state.folder / FOLDER), Places.of(os.environ), {}
    hides = redactor.knowing(state.server.api_key)
    for planned in plan:
        request = build(planned, state.server, {})
        name = request.path.strip("/")
        progress.phase("clients", name)
        began, wall = time.monotonic(), time.time()
        report = _performed(planned, request, state, places, lambda one: store.save(hides.recording(one)))
        body = hides.text(json.dumps(vars(report), ensure_ascii=False)).encode()
        took = round(time.monotonic() - began, 6)
        kind = (("content-type", "application/json"),)
        whole = Recording(planned.key, request, 200, kind, ((took, body),), wall)
        store.save(whole.with_response(headers_at=took, seconds=took))
        told[name] = hides.text(report.text)
        progress.say(f"client {name}: {told[name]}")
    return {"clients": told}


def _performed(
    planned: Planned,
    request: Request,
    state: ServerState,
    places: Places,
    keep: Callable[[Recording], object],
) -> Report:
    task, server, name = request.json, state.server, request.path.strip("/")
    beside = Path(planned.spec.build.__code__.co_filename).parent
    if not task["steps"]:
        return Report()
    program = command(beside / task["script"], places)
    if isinstance(program, str):
        return Report(missing=program)
    sent: list[Recording] = []

    def kept(recording: Recording) -> None:
        sent.append(recording.with_response(chunks=()))
        keep(recording)

    relay = Relay(server, kept, task["writes"], name=f"{FOLDER}.{name}", silence=state.profile.record.timeout)
    with relay, tempfile.TemporaryDirectory(prefix="pytest-vllm-client-", ignore_cleanup_errors=True) as home:
        given = {
            "url": relay.url,
            "key": relay.token,
            "model": server.model,
            "steps": task["steps"],
            "says": task["says"],
            "program": places.modules,
        }
        report = performed(program, given, environment(Path(home), places, relay.url), task["seconds"])
    report.steps = {step: reached(one, sent) for step, one in report.steps.items()}
    if task["free"] and not at_fault(sent):
        report.steps = {step: freed(one) for step, one in report.steps.items()}
    report.elsewhere = list(relay.elsewhere)
    report.requests, report.log = len(sent), f"{FOLDER}/{FOLDER}.{name}.*"
    return report


def reached(step: Mapping[str, Any], sent: Sequence[Recording]) -> dict[str, Any]:
    """A step as it was reported, but for one that failed before it had asked the server for anything.

    Such a failure says nothing of the server: the script does not fit this version of the client.
    """
    began, until = step.get("began", 0.0), step.get("began", 0.0) + step.get("seconds", 0.0)
    if step["passed"] is not False or any(began - CLOCK <= one.sent <= until + CLOCK for one in sent):
        return dict(step)
    return {**step, "passed": None, "error": f"no request was sent: {step['error']}"}


def at_fault(sent: Sequence[Recording]) -> bool:
    """Whether a server failed an agent: it refused its first request, broke off an answer, or failed itself.

    What an agent asks for later follows from what the model said.
    """
    asked = [one for one in sent if one.request.method == "POST"]
    broke = any(one.failure is not None or (one.status or 500) >= 500 for one in asked)
    return broke or bool(asked and asked[0].status != 200)


def freed(step: Mapping[str, Any]) -> dict[str, Any]:
    """A step as it was reported; one that failed is not judged where the model was free to say anything."""
    if step["passed"] is not False:
        return dict(step)
    why = "no request was refused at first or broken off, and what follows is the model's own doing"
    return {**step, "passed": None, "error": f"{why}: {step['error']}"}


def command(script: Path, places: Places) -> list[str] | str:
    """How a script is called; a sentence where nothing here can run it."""
    if script.suffix != ".mjs":
        return [places.python, str(script)]
    node = shutil.which("node", path=places.path)
    if node is None:
        return "node is not installed"
    if not places.modules:
        return f"no folder of {WHERE} has node_modules"
    return [node, str(script)]


def performed(
    program: Sequence[str], given: Mapping[str, Any], environ: Mapping[str, str], seconds: float
) -> Report:
    """Run a program in its home, for so many seconds at most; nothing of it runs on afterwards.

    Its task comes on standard input, for command lines are read by others. What it prints last is its report.
    """
    home = environ["HOME"]
    with (
        (Path(home) / ".stderr").open("w+b") as errors,
        subprocess.Popen(  # noqa: S603 - a script of the suite
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=home,
            env=environ,
            start_new_session=True,
        ) as process,
    ):
        try:
            out, _ = process.communicate(json.dumps(given).encode(), timeout=seconds)
        except subprocess.TimeoutExpired:
            return Report(ended=f"it was not done within {seconds:g} s", late=True)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            end(lambda: [one for one, _ in marked(lambda found: found.get("HOME") == home)])
        errors.seek(0)
        return _read(process.returncode, out, errors.read())


def environment(home: Path, places: Places, proxy: str) -> dict[str, str]:
    """What a client gets of the environment: nothing of the person's but PATH, and the relay for a proxy.

    It carries a run's mark, by which it is found again: now, and by a later run if this one is killed.
    """
    run = marks(LaunchContext(home.name, home, os.getpid(), scope=home.name), "client")
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), proxy)
    local = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    kinds = ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
    folders = dict.fromkeys(kinds, str(home))
    return {
        "PATH": places.path,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        **run,
        **folders,
        **nowhere,
        **local,
        **QUIET,
    }


def _read(status: int, out: bytes, errors: bytes) -> Report:
    lines = [line for line in out.decode(errors="replace").splitlines() if line.startswith("{")]
    try:
        found = json.loads(lines[-1])
        return Report(dict(found["steps"]), str(found["version"]), str(found["missing"]))
    except (IndexError, ValueError, KeyError, TypeError):
        said = (errors or out).decode(errors="replace").strip()[-TAIL:]
        return Report(ended=f"it ended with status {status} and reported nothing: {said}")
