"""Causes by the words of runtimes, of which every one is known: CUDA's, CANN's, NVML's, errno's, NCCL's."""

from __future__ import annotations

import errno
import os

import pytest

from pytest_vllm.launch.diagnosis import diagnose
from pytest_vllm.launch.tracebacks import raised

HEAD = "(EngineCore pid=7) ERROR 11-27 20:50:01 [core.py:9] "
RUNNER = "/v/site-packages/vllm/v1/worker/gpu_model_runner.py"
CAPTURES = (
    "operation not permitted when stream is capturing",
    "operation would result in a merge of separate capture sequences",
    "capture was not ended in the same stream as it began",
    "capturing stream has unjoined work",
    "dependency created on uncaptured work in another stream",
    "operation would make the legacy stream depend on a capturing blocking stream",
    "operation not permitted on an event last recorded in a capturing stream",
    "attempt to terminate a thread-local capture sequence from another thread",
)
CUDA = {
    **dict.fromkeys(CAPTURES, "capture-refused"),
    "no CUDA-capable device is detected": "no-device",
    "CUDA driver is a stub library": "no-device",
    "CUDA-capable device(s) is/are busy or unavailable": "device-not-opened",
    "MPS client failed to connect to the MPS control daemon or the MPS server": "device-not-opened",
    "uncorrectable ECC error encountered": "device-lost",
    "uncorrectable NVLink error detected during the execution": "device-lost",
    "hardware stack error": "device-lost",
    "invalid device function": "no-kernel-image",
    "device kernel image is invalid": "no-kernel-image",
    "no kernel image is available for execution on the device": "no-kernel-image",
    "the provided PTX was compiled with an unsupported toolchain.": "driver-too-old",
    "CUDA driver version is insufficient for CUDA runtime version": "driver-too-old",
    "too many resources requested for launch": "kernel-too-big",
    "device-side assert triggered": "device-assert",
    "system not yet initialized": "fabric-manager-missing",
    "an illegal memory access was encountered": "illegal-memory-access",
    "misaligned address": "illegal-memory-access",
    "invalid program counter": "illegal-memory-access",
    "operation not supported on global/shared address space": "illegal-memory-access",
    "unspecified launch failure": "illegal-memory-access",
    "invalid argument": "device-error",
    "operation not permitted": "device-error",
    "unknown error": "device-error",
}
TRITON = {
    "device kernel image is invalid": "no-kernel-image",
    "misaligned address": "illegal-memory-access",
    "invalid argument": "device-error",
}
NVML = {
    "LibraryNotFound: NVML Shared Library Not Found": "no-device",
    "DriverNotLoaded: Driver Not Loaded": "no-device",
    "LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.": "nvml-lost",
    "GpuIsLost: GPU is lost": "device-lost",
}
CANN = {
    107001: "too-few-gpus",
    107002: "device-error",
    207001: "cuda-out-of-memory",
    207004: "no-device",
    245000: "cuda-out-of-memory",
    507010: "device-lost",
    507014: "device-error",
    507015: "device-error",
    507033: "device-not-opened",
    507034: "device-error",
    507035: "device-error",
    507053: "device-lost",
    507054: "device-lost",
    507899: "device-error",
    507903: "capture-refused",
}
OTHERS = {
    "Native API failed. Native API returns: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)": "memory-at-serving",
    "level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)": "device-lost",
    "No device of requested type available. Please check the driver": "no-device",
    "synStatus=8 [Device not found] Device acquire failed.": "device-not-opened",
    "synStatus=26 [Generic failure] Graph compile failed.": "device-error",
    "MODULE:PT_DEVMEM Allocation failed for size::234881024 (224)MB": "cuda-out-of-memory",
    "INTERNAL: Mosaic failed to compile TPU kernel: unsupported shape cast": "compile-failed",
    "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm.": "memory-at-serving",
    "nrt_init failed: NRT_FAILURE": "device-error",
    "MUSA error: invalid device function": "no-kernel-image",
    "HIP error: shared object initialization failed": "device-error",
}
ERRNO = {
    errno.ENFILE: "too-many-files",
    errno.EMFILE: "too-many-files",
    errno.ENOSPC: "disk-full",
    errno.EDQUOT: "disk-full",
    errno.EROFS: "permission-denied",
    errno.EPERM: "permission-denied",
    errno.EACCES: "permission-denied",
    errno.ENOMEM: "host-memory",
    errno.EADDRINUSE: "port-in-use",
    errno.EADDRNOTAVAIL: "address-not-local",
}


def died(error: str, *source: str, path: str = RUNNER, of: str = "execute_model") -> list[str]:
    """The traceback of an engine, with the source of its last frame."""
    frame = f'{HEAD}  File "{path}", line 3, in {of}'
    shown = [f"{HEAD}    {line}" for line in source]
    return [f"{HEAD}Traceback (most recent call last):", frame, *shown, f"{HEAD}{error}"]


@pytest.mark.parametrize("words", CUDA)
def test_errors_of_cuda(words: str) -> None:
    """Each word that the runtime has means the same, whoever met it."""
    assert diagnose(died(f"torch.AcceleratorError: CUDA error: {words}")).cause == CUDA[words]


@pytest.mark.parametrize("words", TRITON)
def test_errors_of_cuda_that_triton_met(words: str) -> None:
    """Nor does it matter who hands them on."""
    assert diagnose(died(f"RuntimeError: Triton Error [CUDA]: {words}")).cause == TRITON[words]


@pytest.mark.parametrize("number", CANN)
@pytest.mark.parametrize(
    "said",
    [
        "ACL stream synchronize failed, error code:{}",
        "Worker failed with error 'ACL stream synchronize failed, error code:{}', please check",
        "npuSynchronizeDevice:x/x.ts:508 NPU function error: AclrtSynchronize, error code is {}",
        "rtKernelLaunchWithHandleV2 failed: {}",
    ],
)
def test_numbers_of_ascend(said: str, number: int) -> None:
    """CANN's numbers say what it met, whichever of its calls failed, and whoever hands it on."""
    path = "/v/vllm_ascend/worker/model_runner_v1.py"

    assert diagnose(died(f"RuntimeError: {said.format(number)}", path=path)).cause == CANN[number]


@pytest.mark.parametrize("words", OTHERS)
def test_words_of_other_runtimes(words: str) -> None:
    """Those of Intel's, Habana's, Google's, Amazon's, Moore Threads' and AMD's."""
    assert diagnose(died(f"RuntimeError: {words}")).cause == OTHERS[words]


@pytest.mark.parametrize("words", NVML)
def test_errors_of_the_drivers_library(words: str) -> None:
    """A driver that is not there, one that does not fit, and a device that went."""
    assert diagnose(died(f"pynvml.NVMLError_{words}")).cause == NVML[words]


@pytest.mark.parametrize("number", ERRNO)
def test_errors_of_the_system(number: int) -> None:
    """By their names, with a file or without."""
    error = OSError(number, os.strerror(number))
    line = f"{type(error).__name__}: {error}"
    lines = died(line, path="/usr/lib/python3.12/pathlib.py", of="mkdir")

    assert diagnose(lines).cause == ERRNO[number]


@pytest.mark.parametrize(
    ("said", "beside", "cause"),
    [
        (
            "unhandled cuda error",
            "CUDA error: an illegal memory access was encountered",
            "illegal-memory-access",
        ),
        ("unhandled cuda error", "Cuda failure 'out of memory'", "cuda-out-of-memory"),
        (
            "unhandled system error",
            "Error while creating shared memory segment /dev/shm/nccl-x",
            "shm-too-small",
        ),
        ("unhandled cuda error", "Could not find a path for pattern 4", "nccl-failed"),
        ("remote process exited", "Could not find a path for pattern 4", "nccl-failed"),
    ],
)
def test_what_nccl_hands_on(said: str, beside: str, cause: str) -> None:
    """It says that a call failed; NCCL's own warnings, and those of others, say of what."""
    complaint = died(f"RuntimeError: NCCL error: {said} (run with NCCL_DEBUG=INFO for details)")
    host = "node:301:301 [0] misc/x.cc:187 NCCL WARN "

    assert diagnose([f"{host}{beside}", *complaint]).cause == cause


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("assert self.total_num_kv_heads % tp_size == 0", "size-not-divisible"),
        ("assert size % get_tensor_model_parallel_world_size() == 0", "size-not-divisible"),
        ("assert self.num_tokens % self.block_size == 0", "fault-in-runner"),
        ("assert isinstance(layer, Layer)", "fault-in-runner"),
    ],
)
def test_what_was_asserted(source: str, cause: str) -> None:
    """A bare assertion's condition is all that it says: the traceback shows it."""
    found = diagnose(died("AssertionError", source))

    assert raised(died("AssertionError", source))[0].asserted == source.removeprefix("assert ")
    assert found.cause == cause
    assert cause != "fault-in-runner" or source.removeprefix("assert ") in found.means


@pytest.mark.parametrize(
    ("error", "source", "cause"),
    [
        ("TypeError: --a and --b cannot be enabled together", "raise TypeError(", "settings-refused"),
        ("TypeError: --a and --b cannot be enabled together", "join(a, b)", "fault-in-front-end"),
        ("TypeError: unsupported operand type(s) for +", "a + b", "fault-in-front-end"),
    ],
)
def test_who_wrote_a_sentence(error: str, source: str, cause: str) -> None:
    """What vLLM's own code raises to refuse something is no fault of the part, of whatever class it is."""
    path = "/v/site-packages/vllm/entrypoints/openai/cli_args.py"

    assert diagnose(died(error, source, path=path, of="validate")).cause == cause


def test_a_refusal_is_no_broken_checkpoint() -> None:
    """Where it was raised says less than what it says."""
    path = "/v/site-packages/vllm/model_executor/models/x.py"
    refused = "ValueError: only per-tensor scales are supported here"

    assert diagnose(died(refused, path=path, of="load_weights")).cause == "settings-refused"
    assert (
        diagnose(died("KeyError: 'layers.0.x'", path=path, of="load_weights")).cause == "weights-do-not-fit"
    )


def test_who_asks_a_server_is_no_part_of_it() -> None:
    """A library that vLLM has nothing to do with; one that it called; a path that was cut short."""
    lines = [line.removeprefix(HEAD) for line in died("KeyError: 'x'", path="/v/site-packages/agents/run.py")]
    called = died("KeyError: 'x'", path="/v/site-packages/flashinfer/x.py")
    cut = [line.replace("/v/site-packages/flashinfer/x.py", "ass.py") for line in called]

    assert [diagnose(found).cause for found in (lines, called, cut)] == ["", "fault-in-library", ""]


def test_a_start_that_breaks_off_in_a_traceback_failed() -> None:
    """It is the one that counts, not an earlier one that failed otherwise."""
    begin = "INFO 11-27 20:49:00 [api_server.py:1] vLLM API server version 0.30.0"
    frame = f'  File "{RUNNER}", line 3, in execute_model'
    lines = [
        begin,
        "OSError: [Errno 24] Too many open files",
        begin,
        "Traceback (most recent call last):",
        frame,
    ]

    assert diagnose(lines).cause == ""
    assert diagnose(lines[:2]).cause == "too-many-files"
