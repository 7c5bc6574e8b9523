"""The same vLLM without a container, started and ended as a process of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil
import pytest

from tests.real.gate import EVERYTHING, LAUNCHED, GateRun, once_more, otherwise, run_gate
from tests.real.unpacked import unpack

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.docker]


def test_a_process_is_go(image: str, gate_on_container: GateRun, tmp_path: Path) -> None:
    """The profile cpu-smollm2-process gives the container's verdicts, and no process of vLLM remains."""
    folder = tmp_path / "vllm"
    folder.mkdir()
    options = ("--vllm-profile=cpu-smollm2-process", *once_more(LAUNCHED))
    run = run_gate(tmp_path, *options, **unpack(image, folder))

    assert run.exit == 0, run.text
    assert len(run.verdicts) > (1000 if EVERYTHING else 100)
    # the variable that names its Python begins as vLLM's own do, and vLLM warns of it
    assert otherwise(gate_on_container, run).keys() == {"startup.quiet[variable-unknown]"}
    assert [
        one for one in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(one.info["cmdline"] or ())
    ] == []
