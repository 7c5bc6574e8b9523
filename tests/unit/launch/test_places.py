"""Next steps by the place where a server runs."""

from __future__ import annotations

import pytest

from pytest_vllm.launch.areas import areas
from pytest_vllm.launch.causes import causes
from pytest_vllm.launch.diagnose_command import place_given
from pytest_vllm.launch.diagnosis import diagnose
from pytest_vllm.launch.kinds import kinds
from pytest_vllm.launch.places import Place, fitting, place_named, place_of, suiting
from pytest_vllm.launch.protocol import BootError

STEPS = [
    (row.id, row.tries)
    for row in (*causes(), *(one.cause for one in kinds()), *(one.cause for one in areas()))
]
#: Words that a place does not know.
STRANGE = {
    Place.PROCESS: (
        "docker ",
        "podman ",
        "kubectl",
        "[server] shm",
        "[server] ipc",
        "[server] gpus",
        "the pod",
    ),
    Place.PODMAN: ("docker ", "kubectl", "systemctl restart docker", "the pod"),
    Place.KUBERNETES: (" docker ", "podman ", "[server] shm", "[server] ipc", "[server] gpus", "systemd:"),
    Place.DOCKER: ("podman ", "kubectl", "the pod's"),
}
#: What only a container engine says.
ENGINES = {"no-gpu-in-daemon", "image-unknown", "image-other-platform", "registry-unreachable", "exec-format"}
BUS = "Fatal Python error: Bus error"


@pytest.mark.parametrize("place", [one for one in Place if one])
def test_no_step_speaks_of_another_place(place: Place) -> None:
    """Of every cause, and at least one step stays."""
    wrong = {
        (name, step)
        for name, steps in STEPS
        if not (place is Place.PROCESS and name in ENGINES)
        for step in fitting(steps, place)
        if any(word in step for word in STRANGE[place])
    }

    assert not wrong
    assert all(fitting(steps, place) for _, steps in STEPS)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("Aug 17 18:42:18 host systemd[1]: vllm.service: Main process exited, code=exited", Place.PROCESS),
        ("Aug 17 18:42:18 host systemd[1]: docker.service: Main process exited", Place.UNKNOWN),
        ("Aug 17 18:42:18 host podman[812]: container died", Place.PODMAN),
        ("[pod/vllm-0/vllm] INFO 11-27 20:50:01 [x.py:1] hello", Place.KUBERNETES),
        ("2026-08-17T18:42:18.012+02:00 stderr F Killed", Place.KUBERNETES),
        ("  Warning  BackOff  2m  kubelet  Back-off restarting failed container", Place.KUBERNETES),
        ("(APIServer pid=1) INFO 11-27 20:50:01 [x.py:1] hello", Place.UNKNOWN),
    ],
)
def test_a_log_shows_where_it_was_written(line: str, place: Place) -> None:
    """By whoever else speaks in it."""
    assert place_of([line]) is place


def test_a_diagnosis_has_the_steps_of_its_place() -> None:
    """Shared memory is a mount of the machine, a volume of a pod, an option of a container."""
    assert "[server] shm" in diagnose([BUS]).tries[0]
    assert "mount -o remount" in diagnose([BUS], place=Place.PROCESS).tries[0]
    assert "emptyDir" in diagnose([f"[pod/vllm-0/vllm] {BUS}"]).tries[0]


@pytest.mark.parametrize(
    ("source", "line", "place"),
    [
        ("unit:vllm.service", BUS, Place.PROCESS),
        ("unit:vllm.service", "podman[812]: container died", Place.PODMAN),
        ("container:vllm", BUS, Place.PODMAN),
        ("server.log", BUS, Place.UNKNOWN),
        ("-", BUS, Place.UNKNOWN),
    ],
)
def test_the_source_of_a_log_says_where(
    source: str, line: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit may run a container; a container is of the engine that is here."""
    monkeypatch.setattr("shutil.which", {"podman": "/usr/bin/podman"}.get)

    assert place_given(source, [line]) is place


@pytest.mark.parametrize(("launcher", "word"), [("process", "remount"), ("docker", "shm"), ("attach", "shm")])
def test_a_failed_start_has_the_steps_of_its_launcher(launcher: str, word: str) -> None:
    """Whichever part raised it."""
    with pytest.raises(BootError) as caught, suiting(launcher):
        raise BootError("it died", try_=diagnose([BUS]).tries)

    assert word in caught.value.try_[0]
    assert place_named("sim") is Place.UNKNOWN
