"""Hardware files: what a device can do, so that ceilings exist where nobody wrote a floor.

One flat TOML file per device in fixtures/hardware, or in `vllm-profiles/hardware` of a project; README.md
there explains every key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pytest_vllm.profile.reference import file_names, read_file
from pytest_vllm.profile.table import Part

if TYPE_CHECKING:
    from pathlib import Path

KIND = "hardware"
GIB = 1024**3

#: Which peak a quantisation computes with; weight-only formats compute in BF16.
_PEAK = {"fp8": "tflops_fp8", "nvfp4": "tflops_fp4", "mxfp4": "tflops_fp4"}


class Hardware(Part):
    """One device of a kind. Bandwidth and peaks are the maker's, dense (no 2:4 sparsity)."""

    title: str
    """What people call it."""
    vendor: Literal["nvidia", "amd", "cpu", "none"]
    """Who makes it; `none` for hardware that does not exist."""
    family: str
    """The name under which vLLM singles the device out, such as `h100`; else the file's own name."""
    memory_gb: float = Field(gt=0)
    """Memory as sold."""
    memory_gib: float = Field(gt=0)
    """Memory that software sees, in GiB: what the driver reports."""
    bandwidth_gb_s: float = Field(gt=0)
    """Memory bandwidth, 10**9 bytes per second."""
    tflops_bf16: float = Field(gt=0)
    """Dense BF16 peak."""
    tflops_fp8: float | None = None
    """Dense FP8 peak, FP32 accumulation; left out where the device has no FP8 units."""
    tflops_fp4: float | None = None
    """Dense FP4 peak; left out where the device has no FP4 units."""
    compute_capability: str | None = None
    """CUDA compute capability or AMD target."""
    unified: bool = False
    """Whether memory is shared with the CPU."""
    min_cuda: str | None = None
    """The first CUDA release with kernels for it."""
    source: str
    """Where the figures come from."""
    note: str = ""
    """How far they can be trusted."""

    @property
    def memory_bytes(self) -> int:
        """Memory that software sees."""
        return round(self.memory_gib * GIB)

    @property
    def bandwidth(self) -> float:
        """Bytes per second."""
        return self.bandwidth_gb_s * 1e9

    def flops(self, quantization: str) -> float:
        """Dense peak per second for a checkpoint's quantisation; BF16's where it has no units of its own."""
        peak = getattr(self, _PEAK.get(quantization, "tflops_bf16"))
        return float(peak or self.tflops_bf16) * 1e12


def hardware_names(rootdir: Path) -> list[str]:
    """Every hardware file that can be named."""
    return file_names(KIND, rootdir)


def load_hardware(name: str, rootdir: Path) -> Hardware:
    """A hardware file. Raises ProfileError."""
    return read_file(KIND, name, rootdir, Hardware)
