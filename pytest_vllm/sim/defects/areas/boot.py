"""Starts that fail: what is asked for cannot be had, or something breaks while loading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.sim.defects.failure import BootFailure
from pytest_vllm.sim.defects.registry import add, defect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.sim.boot.deployment import Deployment
    from pytest_vllm.sim.settings import Settings

FRAME = (
    "Traceback (most recent call last):",
    '  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/engine/core.py", line 1, in run_engine_core',
)
WRAPPER = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"


def _ends(
    name: str,
    summary: str,
    *words: str,
    status: int = 1,
    cause: str = "",
    faults: tuple[str, ...] = (),
    frame: Sequence[str] = FRAME,
) -> None:
    """The start ends with these words, as the root cause of that frame, and this status."""

    def ending(value: None, settings: Settings) -> None:
        del value, settings
        raise BootFailure([*frame, *words, *FRAME, WRAPPER] if status == 1 else list(words), status)

    add(name, summary, {"boot": ending}, faults=faults, catches=(f"boot:{cause}",) if cause else ())


def _refuses(
    name: str,
    summary: str,
    cause: str,
    *needs: str,
    faults: tuple[str, ...] = (),
    environ: tuple[str, ...] = (),
) -> None:
    """The start is refused for an argument or for the machine."""

    def unchanged(argv: list[str]) -> list[str]:
        return [*argv, *needs]

    add(name, summary, {"argv": unchanged}, faults=faults, environ=environ, catches=(f"boot:{cause}",))


_refuses(
    "boot.flag-removed",
    "The start has a flag that this version no longer knows.",
    "flag-unknown",
    "--enable-reasoning",
    faults=("START-008", "START-009", "START-010"),
)
_refuses(
    "boot.parser-unknown",
    "The tool parser is none that this version knows.",
    "parser-unknown",
    "--tool-call-parser",
    "glm99",
    faults=("START-001",),
)
_refuses(
    "boot.value-no-number",
    "A number is given as a word.",
    "value-invalid",
    "--max-num-seqs",
    "many",
)
_refuses(
    "boot.context-beyond-model",
    "The context asked for is longer than the model knows.",
    "model-len-too-long",
    "--max-model-len",
    "1000000",
)
_refuses(
    "boot.context-beyond-cache",
    "The KV cache is smaller than one request of full length.",
    "kv-cache-too-small",
    "--max-model-len",
    "32768",
    "--num-gpu-blocks-override",
    "100",
    faults=("MEM-016", "MEM-017"),
)
_refuses(
    "boot.template-missing",
    "The chat template is a file that is not there.",
    "chat-template-missing",
    "--chat-template",
    "/srv/none.jinja",
)
_refuses(
    "boot.memory-taken",
    "Something else holds the GPU's memory: a server that was ended left its workers.",
    "gpu-memory-taken",
    faults=("MEM-004", "MEM-012", "MEM-024"),
    environ=("SIM_MEMORY_TAKEN_GIB=3.5",),
)
_refuses(
    "boot.more-gpus-than-there-are",
    "More GPUs are asked for than the server sees.",
    "too-few-gpus",
    "--tensor-parallel-size",
    "2",
    environ=("CUDA_VISIBLE_DEVICES=0",),
)
_refuses(
    "boot.heads-not-divisible",
    "The model's heads cannot be spread over so many GPUs.",
    "heads-not-divisible",
    "--tensor-parallel-size",
    "3",
)
_ends(
    "boot.no-kernel-image",
    "The build has no code for this GPU.",
    "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    cause="no-kernel-image",
    faults=("START-003", "START-004"),
)
_ends(
    "boot.illegal-memory-access",
    "A kernel of the warm-up reads where it may not.",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    cause="illegal-memory-access",
    faults=("START-014", "START-015", "START-018", "ROBUST-039"),
)
_ends(
    "boot.ptxas-unknown-gpu",
    "The image's assembler does not know the GPU.",
    "triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error",
    "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
    cause="ptxas-unknown-gpu",
    faults=("START-020", "START-021"),
)
_ends(
    "boot.attention-unfit",
    "The attention back end does not run with this cache type on this GPU.",
    "ValueError: Selected backend AttentionBackendEnum.FLASHINFER is not valid for this configuration. "
    "Reason: ['kv_cache_dtype not supported']",
    cause="attention-backend-unfit",
    faults=("START-022", "START-030"),
)
_ends(
    "boot.connector-mismatch",
    "A KV connector was built for another vLLM.",
    "ImportError: cannot import name 'LMCacheEngineMetadata' from 'lmcache.config'",
    cause="kv-connector-mismatch",
    faults=("START-006",),
)
_ends(
    "boot.wrapper-mismatch",
    "A wrapper calls vLLM with an argument that it lost.",
    "TypeError: OpenAIServingChat.__init__() got an unexpected keyword argument 'enable_reasoning'",
    cause="parts-do-not-fit",
    faults=("START-013",),
    frame=(
        '  File "/opt/gateway/serve.py", line 61, in main',
        "    chat = OpenAIServingChat(engine, models)",
    ),
)
_ends(
    "boot.out-of-memory",
    "The GPU runs out of memory before the weights are loaded.",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.37 GiB. GPU 0 has a total capacity of "
    "119.7 GiB of which 1.12 GiB is free.",
    cause="cuda-out-of-memory",
    faults=("MEM-007",),
)
_ends(
    "boot.worker-fails",
    "The worker ends in an exception that nobody knows, after a line that warns.",
    "WARNING Using default MoE config. Performance might be sub-optimal!",
    "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 98304",
    faults=("START-007",),
)
_ends(
    "boot.gated",
    "The model is gated and there is no token.",
    "OSError: You are trying to access a gated repo.",
    cause="model-gated",
    faults=("START-026",),
)
_ends(
    "boot.offline",
    "The hub cannot be reached and the model is not in the cache.",
    "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in "
    "the cached files.",
    cause="hub-offline",
)
_ends(
    "boot.cache-folder-locked",
    "The folder of the weights cannot be written.",
    "PermissionError: [Errno 13] Permission denied: '/root/.cache/huggingface/hub'",
    cause="permission-denied",
    faults=("START-029",),
)
_ends(
    "boot.architecture-unknown",
    "The model's architecture is none that this version knows.",
    "ValueError: Model architectures ['NoSuchForCausalLM'] are not supported for now. Supported "
    "architectures: "
    "dict_keys(['LlamaForCausalLM'])",
    cause="architecture-unknown",
)
_ends(
    "boot.model-missing",
    "There is no such model.",
    "OSError: nobody/none-such is not a local folder and is not a valid model identifier listed on "
    "'https://huggingface.co/models'",
    cause="model-missing",
)
_ends(
    "boot.weights-cut",
    "A file of the weights was not downloaded to its end.",
    "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully "
    "covered",
    cause="weights-cut",
)
_ends(
    "boot.port-taken",
    "The port is used by another program.",
    "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
    cause="port-in-use",
)
_ends(
    "boot.shared-memory-small",
    "The container's shared memory is too small.",
    "RuntimeError: Insufficient space in /dev/shm for shared-memory allocation: 160 MiB "
    "required, 64 MiB free.",
    cause="shm-below-need",
)
_ends(
    "boot.engine-late",
    "The engine is not ready in time, and the launcher gives up while it warms up.",
    "TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow weight "
    "loading for large models.",
    cause="engine-ready-timeout",
    faults=("START-033",),
)
_ends(
    "boot.device-file-missing",
    "The container engine is told of a device file that is gone.",
    "Error: setting up CDI devices: failed to stat CDI host device '/dev/dri/card1': no such file",
    status=126,
    cause="no-gpu-in-daemon",
    faults=("START-023",),
)
_ends(
    "boot.killed-for-memory",
    "The host runs out of memory while the model loads, and the kernel ends the server.",
    "INFO profiling the memory of the largest batch",
    status=137,
    cause="killed",
    faults=("MEM-001", "MEM-002"),
)
_ends(
    "boot.crashes",
    "The server ends in a segmentation fault while it loads.",
    "Segmentation fault (core dumped)",
    status=139,
    cause="crashed",
)


@defect("boot.stalls", on="ready", faults=["START-016", "START-027", "START-037"])
def stalls(seconds: float, settings: Settings) -> float:
    """The start hangs for ever in the first exchange between GPUs."""
    del seconds, settings
    return 1e9


def _lies(lines: list[str], deployment: Deployment) -> list[str]:
    del deployment
    ready = any("init engine" in text for text in lines)
    return [*lines, "INFO:     Application startup complete."] if ready else lines


add(
    "boot.says-started",
    "The log says that the server has started, and nothing answers.",
    {"log": _lies, "ready": stalls},
    faults=["START-038"],
)
