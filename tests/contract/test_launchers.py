"""What every launcher keeps: one contract, run over all of them with a stand-in server."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from typing import get_args

import httpx
import pytest

from pytest_vllm.face import options
from pytest_vllm.facts.launchers import LAUNCHERS
from pytest_vllm.launch import engine, processes
from pytest_vllm.launch.owner import Owner
from pytest_vllm.launch.ports import free_port
from pytest_vllm.launch.protocol import Benched, BootError, Handle, LaunchContext
from pytest_vllm.launch.registry import launcher_for
from pytest_vllm.launch.wait import Progress, wait_ready
from pytest_vllm.profile.model import BootPart, LauncherName
from tests.launched import fake_server
from tests.launched.engines import until
from tests.launched.stand import SCRIPT, Stand, get

PATIENCE = BootPart(timeout=60, stalled=60)
SECRET = "hunter2-hunter2"  # noqa: S105 - planted, to be looked for


LOCAL = ["process", "sim"]
CONTAINERS = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("podman", marks=pytest.mark.podman),
]


started = pytest.mark.parametrize("stand", [*LOCAL, *CONTAINERS], indirect=True)
contained = pytest.mark.parametrize("stand", CONTAINERS, indirect=True)


benched = pytest.mark.parametrize("stand", ["process", *CONTAINERS], indirect=True)


def test_every_launcher_has_a_place_in_this_contract() -> None:
    """A new launcher has to be added to the parameters of this file."""
    assert set(LAUNCHERS) == {"process", "sim", "docker", "podman", "attach"}


@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_launcher_is_known_everywhere_by_its_row(name: str) -> None:
    """The row in `facts/launchers.py` is the truth; types and options that cannot read it repeat its name."""
    assert launcher_for(name).name == name, f"pytest_vllm/launch/{name}.py: name its class after its row"
    assert name in get_args(LauncherName), "pytest_vllm/profile/model.py: add it to LauncherName"
    assert name in options.LAUNCHERS, "pytest_vllm/face/options.py: add it to LAUNCHERS"
    assert len(options.LAUNCHERS) == len(get_args(LauncherName)) == len(LAUNCHERS)


@started
def test_start_does_not_wait(stand: Stand) -> None:
    """Start is back while the server takes steps of ten minutes each."""
    with stand.start("well/600") as handle:
        assert handle.alive()
        assert handle.exit() is None
        assert not [line for line in handle.logs() if "KV cache" in line]


@started
def test_ready_server_answers_on_a_free_loopback_port(stand: Stand) -> None:
    """Its URL is known, has no /v1, and two servers get different ports."""
    with stand.start() as one, stand.start() as two:
        boot = wait_ready(one, PATIENCE)
        wait_ready(two, PATIENCE)

        assert boot.url == one.url
        assert one.url is not None
        assert one.url.startswith("http://127.0.0.1:")
        assert one.url != two.url
        assert get(one, "/health") == ""


@started
def test_arguments_arrive(stand: Stand) -> None:
    """The model as a position, flags as vLLM takes them, the launcher's host and port."""
    with stand.start(
        max_model_len=4096, enforce_eager=True, speculative_config={"method": "ngram"}
    ) as handle:
        wait_ready(handle, PATIENCE)
        words = get(handle, "/argv").splitlines()

        assert words[1:3] == ["serve", "fake/well"]
        assert words[words.index("--max-model-len") + 1] == "4096"
        assert "--enforce-eager" in words
        assert words[words.index("--speculative-config") + 1] == '{"method":"ngram"}'
        assert "--port" in words


@started
def test_log_comes_line_by_line(stand: Stand) -> None:
    """A line is there once it was printed, and asking from a number on gives only newer ones."""
    with stand.start() as handle:
        wait_ready(handle, PATIENCE)
        until(
            lambda: "INFO:     Application startup complete." in handle.logs(), "the last line of the start"
        )
        seen = len(handle.logs())

        get(handle, "/say/hello")

        until(lambda: handle.logs(seen), "the new line")
        assert handle.logs(seen) == ["hello"]


@started
def test_dead_server_is_noticed_at_the_next_look(stand: Stand) -> None:
    """Four times a second. The error names the status, the first cause and what to do."""
    looks: list[Progress] = []
    with stand.start("die") as handle:
        until(lambda: not handle.alive(), "the end of the server")
        with pytest.raises(BootError) as caught:
            wait_ready(handle, PATIENCE, looks.append)

        assert looks == []
        assert f"exited with status {fake_server.DEATH}" in caught.value.what
        assert caught.value.evidence[0].startswith("ValueError: No available memory for the cache blocks.")
        assert caught.value.means
        assert caught.value.try_


@started
def test_exit_status_and_last_lines_survive_stop(stand: Stand) -> None:
    """What is left of a server can still be read."""
    with stand.start() as handle:
        wait_ready(handle, PATIENCE)
        with pytest.raises(httpx.HTTPError):
            get(handle, "/die/7")
        until(lambda: not handle.alive(), "the end of the server")
    handle.stop()

    ended = handle.exit()
    assert ended is not None
    assert ended.status == 7
    assert handle.logs()[-1] == "going down"
    assert not handle.alive()


@started
def test_stop_is_safe_at_once_and_again(stand: Stand) -> None:
    """Right after the start, before anything is ready, twice, and in `with`."""
    with stand.start("well/5") as handle:
        handle.stop()
        handle.stop()

        assert not handle.alive()
    assert handle.exit() is not None


@started
def test_stubborn_server_is_killed(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ignores SIGTERM does not outlive its grace."""
    monkeypatch.setattr("pytest_vllm.launch.started.GRACE", 1)
    with stand.start("stubborn") as handle:
        wait_ready(handle, PATIENCE)

    assert not handle.alive()
    ended = handle.exit()
    assert ended is not None
    assert ended.signal == "SIGKILL"


@started
def test_keys_are_passed_and_never_shown(stand: Stand) -> None:
    """The API key reaches the server through its environment and no line, fact or word shows it."""
    environ = {**(stand.context.environ or os.environ), "MY_KEY": SECRET}
    stand.context = dataclasses.replace(stand.context, environ=environ)
    stand.server["api_key"] = {"from-env": "MY_KEY"}
    with stand.start() as handle:
        wait_ready(handle, PATIENCE)
        assert get(handle, "/env/VLLM_API_KEY") == SECRET
        assert SECRET not in get(handle, "/argv")
        get(handle, f"/say/key is {SECRET}")
        until(lambda: "key is ***" in handle.logs(), "the line, the key replaced")

        assert SECRET not in f"{handle.description} {dict(handle.facts())} {handle.logs()}"
    kept = [path.read_text() for path in stand.context.folder.iterdir() if path.is_file()]
    assert not [text for text in kept if SECRET in text]


@started
def test_kept_server_outlives_its_handle(stand: Stand) -> None:
    """With `keep`, leaving the `with` stops nothing; `stop` still does."""
    stand.context = dataclasses.replace(stand.context, keep=True)
    with stand.start() as handle:
        wait_ready(handle, PATIENCE)
    try:
        assert handle.alive()
        assert get(handle, "/health") == ""
    finally:
        handle.stop()
    assert not handle.alive()


def children_told(handle: Handle) -> list[int]:
    return [int(line.split()[1]) for line in handle.logs() if line.startswith("child ")]


@pytest.mark.parametrize("stand", LOCAL, indirect=True)
def test_children_are_reaped_with_the_server(stand: Stand) -> None:
    """Also those in a session of their own, also when the server itself was killed."""
    with stand.start("children") as handle:
        wait_ready(handle, PATIENCE)
        until(lambda: len(children_told(handle)) == 2, "both lines of the log")  # they may come after /health
        children = children_told(handle)
        os.kill(handle.facts()["pid"], 9)
        until(lambda: not handle.alive(), "the end of the server")
        assert all(Owner.of(child).alive() for child in children)
        owners = [Owner.of(child) for child in children]

    assert not [owner for owner in owners if owner.alive()]


@pytest.mark.parametrize("stand", LOCAL, indirect=True)
def test_process_carries_the_marks_of_its_run(stand: Stand) -> None:
    """By which a later run finds what this one left."""
    with stand.start() as handle:
        wait_ready(handle, PATIENCE)

        assert get(handle, f"/env/{processes.RUN}") == "contract"
        assert get(handle, f"/env/{processes.OWNER}") == str(Owner.of(os.getpid()))


@contained
def test_container_carries_the_labels_of_its_run(stand: Stand) -> None:
    """Run, owner's number and start, and boot, by which a later run finds what this one left."""
    with stand.start() as handle:
        assert stand.engine is not None
        (container,) = stand.engine.containers(f"{engine.SCOPE}={stand.context.scope}")
        owner = Owner.of(os.getpid())

        assert container.labels["pytest-vllm.run"] == "contract"
        assert container.labels["pytest-vllm.owner-pid"] == str(os.getpid())
        assert container.labels["pytest-vllm.owner-start"] == owner.start
        assert container.labels["pytest-vllm.boot"] == owner.boot
        assert handle.facts()["container-id"] == container.id
        assert handle.facts()["image-id"].startswith("sha256:")
    assert (stand.context.folder / "inspect.json").exists()


@contained
def test_memory_shared_with_the_host(stand: Stand) -> None:
    """Podman refuses a size beside it: the size is left out, and the report says so."""
    stand.server |= {"ipc": "host", "shm": "1g"}
    with stand.start() as handle:
        wait_ready(handle, PATIENCE)

        assert "shm is left out" in " ".join(handle.facts()["notes"])
        assert [line for line in handle.logs() if line.startswith("pytest-vllm: shm is left out")]


def test_attached_server_is_never_stopped(context: LaunchContext) -> None:
    """Attach finds it ready, leaves it running, and notices when it is gone."""
    port = free_port()
    command = [sys.executable, str(SCRIPT), "serve", "fake/well", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as theirs:
        try:
            assert theirs.stdout is not None
            for line in theirs.stdout:
                if b"startup complete" in line:
                    break
            stand = Stand(launcher_for("attach"), context, {"url": f"127.0.0.1:{port}/v1/"})
            with stand.start() as handle:
                assert wait_ready(handle, PATIENCE).url == f"http://127.0.0.1:{port}"
                handle.stop()
                handle.stop()
            assert handle.alive()
            assert handle.logs() == []
            assert theirs.poll() is None
        finally:
            theirs.kill()
    assert not handle.alive()
    assert handle.exit() is None


@benched
def test_a_command_beside_the_server_gets_its_variables(stand: Stand) -> None:
    """Secrets among them: no word of the command shows them. What it prints and its status come back."""
    with stand.start() as handle:
        wait_ready(handle, PATIENCE)
        assert isinstance(handle, Benched)
        found = handle.inside(["sh", "-c", 'printf %s "$KEY"; exit 3'], 30, {"KEY": SECRET})

        assert found == (3, SECRET)
