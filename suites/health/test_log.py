"""What the server's log says of its GPU."""

import re

from pytest_vllm import ENVIRONMENT, MUST, check, only_if

Log = tuple[tuple[float, str], ...]
FAULT = re.compile(
    r"illegal memory access|cudaErrorIllegalAddress|unspecified launch failure"
    r"|\bXid\b.*\b(?:13|31|48|79|119)\b"
    r"|GPU has fallen off the bus|EngineDeadError|uncorrectable ECC"
)


@check("health.log.no-gpu-fault", MUST, spec="fault:vllm-project/vllm/issues/24228", family=ENVIRONMENT)
def test_no_gpu_fault(vllm_log: Log) -> None:
    """The log reports no fault of the GPU and no dead engine."""
    only_if(vllm_log, "there is no log: the server was not started here")
    found = [line for _, line in vllm_log if FAULT.search(line)]

    assert not found, f"{len(found)} lines, the first: {found[0][:200]}"
