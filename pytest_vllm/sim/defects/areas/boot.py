"""Defects of the start: refusals, stalls, lines in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.sim.defects.failure import BootFailure
from pytest_vllm.sim.defects.make import logs
from pytest_vllm.sim.defects.registry import defect

if TYPE_CHECKING:
    from pytest_vllm.sim.settings import Settings

logs(
    "boot.fp4-emulated",
    "FP4 weights run on a kernel for other hardware, as a warning in the log says.",
    "WARNING [marlin_utils_fp4.py:226] Your GPU does not have native support for FP4 computation but FP4 "
    "quantization "
    "is being used. Weight-only FP4 compression will be used leveraging the Marlin kernel.",
    faults=["PERF-009"],
    area="boot",
)


@defect("boot.dies", on="boot", area="boot")
def dies(value: None, settings: Settings) -> None:
    """The start ends in a CUDA error."""
    del value, settings
    raise BootFailure(
        ["RuntimeError: CUDA error: no kernel image is available for execution on the device"], status=1
    )


@defect("boot.stalls", on="ready", area="boot")
def stalls(seconds: float, settings: Settings) -> float:
    """The start hangs for ever while the weights are loaded."""
    del seconds, settings
    return 1e9
