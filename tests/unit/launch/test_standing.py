"""How much a line counts, by who says it: a stray line of certain words decides nothing beside a failure."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from pytest_vllm.launch.diagnosis import Sure, diagnose
from tests.unit.launch.test_diagnosis import UNSEEN

HEALTHY = (Path(__file__).parent / "logs/healthy.log").read_text("utf-8").splitlines()
AT = "11-27 20:50:01"
#: What stands in a log and is nobody's of vLLM: another program, a person, a heading, a shell.
SAID = {
    "disk": "cp: error writing '/mnt/x': No space left on device",
    "port": "nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)",
    "hub": "curl: (22) The requested URL returned error: 401 Unauthorized for url: https://huggingface.co/m/x",
    "person": "A user asked: my server says CUDA error: an illegal memory access was encountered, why?",
    "heading": "# ValueError: No available memory for the cache blocks. Try increasing memory",
    "calm": f"(APIServer pid=3) INFO {AT} [x.py:1] retried after OSError: [Errno 28] No space left on device",
}
ENDED = {"shell": "Segmentation fault (core dumped)", "killed": "Killed"}
#: An error that stands in a line alone, with nothing that says whose it is.
ALONE = {
    "memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "files": "OSError: [Errno 24] Too many open files",
    "module": "ImportError: cannot import name 'deprecated' from 'typing_extensions'",
}


def died(error: str) -> list[str]:
    """The traceback of an engine."""
    head = f"(EngineCore pid=7) ERROR {AT} [core.py:9] "
    frame = f'{head}  File "/v/site-packages/vllm/v1/worker/x.py", line 3, in load_model'
    return [f"{head}Traceback (most recent call last):", frame, f"{head}{error}"]


@pytest.mark.parametrize("said", [*SAID, *ENDED, *ALONE])
@pytest.mark.parametrize("error", ["ZeroDivisionError: division by zero", "KeyError: 'layers.0.mlp'"])
def test_beside_a_failure(said: str, error: str) -> None:
    """Before or behind it, whether or not the failure itself is known."""
    line, lines = (SAID | ENDED | ALONE)[said], died(error)
    expected = diagnose(lines).cause

    assert expected
    assert [diagnose([line, *lines]).cause, diagnose([*lines, line]).cause] == [expected, expected]


@pytest.mark.parametrize("said", SAID)
def test_beside_an_error_in_a_line_alone(said: str) -> None:
    """Nor beside one that somebody copied without its frames, or its end."""
    for lines in ([ALONE["files"]], ["INFO fine", ALONE["module"]], died("")[:2]):
        expected = diagnose(lines).cause
        assert [diagnose([SAID[said], *lines]).cause, diagnose([*lines, SAID[said]]).cause] == 2 * [expected]


@pytest.mark.parametrize("said", SAID)
def test_behind_a_start_that_succeeded(said: str) -> None:
    """Nothing failed there."""
    assert diagnose([*HEALTHY, SAID[said]]).sure is Sure.NO_FAULT
    assert diagnose([SAID[said], *HEALTHY]).sure is Sure.NO_FAULT


@pytest.mark.parametrize("said", [*ENDED, *ALONE])
def test_what_ends_a_server(said: str) -> None:
    """A shell's last word, and an error, count behind a start."""
    assert diagnose([*HEALTHY, (ENDED | ALONE)[said]]).cause == diagnose([(ENDED | ALONE)[said]]).cause != ""


def test_alone_it_is_the_best_that_is_known() -> None:
    """Where nothing else failed."""
    assert diagnose([SAID["disk"]]).cause == "disk-full"
    assert diagnose([SAID["port"]]).cause == "port-in-use"


@pytest.mark.parametrize(
    ("line", "error", "cause"),
    [
        ("NVRM: Xid (PCI:0000:01:00): 79, pid=9, GPU has fallen off the bus.", "", "device-lost"),
        ("Memory access fault by GPU node-2 on address 0x7f4d5ee5b000.", "", "illegal-memory-access"),
        ("vllm serve: error: unrecognized arguments: --x", ALONE["files"], "flag-unknown"),
    ],
)
def test_what_explains_an_error(line: str, error: str, cause: str) -> None:
    """The driver's word, and the parser's own, outweigh an error that stands in a line alone."""
    error = error or "torch.AcceleratorError: CUDA error: unspecified launch failure"

    assert diagnose([line, error]).cause == cause


def test_a_parser_behind_an_error() -> None:
    """Its own word, wherever it stands."""
    assert (
        diagnose([ALONE["files"], "vllm serve: error: unrecognized arguments: --x"]).cause == "flag-unknown"
    )


def test_what_only_follows_leaves_the_root_where_it_is() -> None:
    """A worker's word has no process before it; what the others say of its death is no failure of theirs."""
    follows = f"(EngineCore pid=7) ERROR {AT} [x.py:9] Worker proc VllmWorker-1 died unexpectedly."

    assert diagnose([ALONE["memory"], follows]).cause == "cuda-out-of-memory"


def test_noise_misleads_few() -> None:
    """Each of the lines before and behind forty short public logs whose cause is known."""
    short = [case for case in UNSEEN if len(case["log"].splitlines()) < 9 and not case.get("hung")]
    known = [case for case in short if "unknown" not in case["right"]]
    asked = misled = 0
    for case, line in itertools.product(known[:: len(known) // 40][:40], (SAID | ENDED).values()):
        lines = [text for text in case["log"].splitlines() if text.strip()]
        expected = diagnose(lines).cause
        for found in (diagnose([line, *lines]).cause, diagnose([*lines, line]).cause):
            asked += 1
            misled += found not in {expected, ""}

    assert asked == 40 * 16
    assert misled <= 0.03 * asked
