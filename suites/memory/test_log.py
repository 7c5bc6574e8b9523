"""What the server's log says of memory."""

import re

from pytest_vllm import ENVIRONMENT, MUST, SHOULD, check, observe, only_if

DRIVER = "fault:vllm-project/vllm/issues/46307"
Log = tuple[tuple[float, str], ...]
STARVED = re.compile(r"NV_ERR_NO_MEMORY|cudaMemGetInfo.*out of memory|CUDA out of memory|HIP out of memory")
PREEMPTED = re.compile(r"is preempted by|preempt(?:ed|ion).*not enough KV cache")


@check("memory.log.not-starved", MUST, spec=DRIVER, family=ENVIRONMENT)
def test_not_starved(vllm_log: Log) -> None:
    """The log reports no memory that could not be allocated."""
    only_if(vllm_log, "there is no log: the server was not started here")
    found = [line for _, line in vllm_log if STARVED.search(line)]

    assert not found, f"{len(found)} lines, the first: {found[0][:200]}"


@check("memory.log.no-preemption", SHOULD, spec="vllm:configuration/optimization/", family=ENVIRONMENT)
def test_no_preemption(vllm_log: Log) -> None:
    """No request had to be computed again because the cache was full."""
    only_if(vllm_log, "there is no log: the server was not started here")
    found = [line for _, line in vllm_log if PREEMPTED.search(line)]
    observe("preemptions in the log", len(found))

    assert not found, f"{len(found)} lines, the first: {found[0][:200]}"
