"""Lines that name a cause and stopped nothing, beside the error that ended the server."""

from __future__ import annotations

import pytest

from pytest_vllm.launch.diagnosis import diagnose

AT = "11-27 20:50:01"
LOADS = f"(EngineCore pid=7) INFO {AT} [x.py:1] Starting to load model m..."


def died(error: str) -> list[str]:
    """The traceback of an engine."""
    head = f"(EngineCore pid=7) ERROR {AT} [core.py:9] "
    frame = f'{head}  File "/v/site-packages/vllm/v1/worker/x.py", line 3, in load_model'
    return [f"{head}Traceback (most recent call last):", frame, f"{head}{error}"]


#: What programs around vLLM print, and is got over.
SAID = {
    "registry": "Error response from daemon: Get https://r/v2/: net/http: TLS handshake timeout",
    "address": "nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)",
    "network": "[c10d] The client socket has timed out after 60000ms trying to connect to (10.0.0.1, 29500).",
    "module": "ImportError: cannot import name 'deprecated' from 'typing_extensions'",
    "disk": "cp: error writing '/mnt/x': No space left on device",
}


@pytest.mark.parametrize("said", SAID)
def test_a_line_that_the_start_got_over(said: str) -> None:
    """The start came further behind it; what ended it is its error, known or not."""
    assert (
        diagnose([SAID[said], LOADS, *died("ZeroDivisionError: division by zero")]).cause == "fault-in-runner"
    )


def test_a_thousand_of_them() -> None:
    """They are left out together."""
    lines = [f"{SAID['disk']} {n}" for n in range(5)] + [SAID["network"]] * 1000

    assert diagnose([*lines, LOADS, *died("ZeroDivisionError: division by zero")]).cause == "fault-in-runner"


def test_a_line_that_nothing_follows() -> None:
    """It is shown, and names no cause: another program says it, in a log of vLLM's."""
    died_of = died("ZeroDivisionError: division by zero")
    found = diagnose([LOADS, SAID["disk"]])

    assert (found.cause, SAID["disk"] in [text for _, text in found.quoted]) == ("", True)
    assert diagnose([SAID["disk"]]).cause == "disk-full"
    assert diagnose([LOADS, SAID["disk"], *died_of]).cause == "fault-in-runner"


def test_a_traceback_outweighs_a_line_beside_it() -> None:
    """Where both have a cause's words, those of the error that was raised count."""
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."

    assert diagnose([SAID["disk"], *died(error)]).cause == "memory-at-weights"


def test_an_error_in_a_line_alone_is_no_root_beside_a_traceback() -> None:
    """Somebody printed it; neither frames nor sources stand above."""
    assert diagnose([*died("ZeroDivisionError: division by zero"), SAID["module"]]).cause == "fault-in-runner"
    assert diagnose([SAID["module"]]).cause == "parts-do-not-fit"


def test_ignored_once_is_not_ignored_for_good() -> None:
    """`Exception ignored in` is of the traceback right behind it."""
    said = ["Exception ignored in: <function f>", LOADS, LOADS, LOADS, LOADS]

    assert diagnose([*said, *died("ZeroDivisionError: division by zero")]).cause == "fault-in-runner"


def test_what_flashinfer_could_not_read() -> None:
    """It is why FlashInfer refuses the GPU, and not why another library does."""
    said = "(EngineCore pid=7) Failed to get device capability: SM 12.x requires CUDA >= 12.9."
    refused = "RuntimeError: FlashInfer requires GPUs with sm75 or higher"
    other = "NotImplementedError: FlashAttention does not support fp8 kv-cache on this device."

    assert diagnose([said, *died(refused)]).cause == "compiler-too-old"
    assert diagnose([said, *died(other)]).cause == diagnose(died(other)).cause
