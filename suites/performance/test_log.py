"""What the server's log says of speed: kernels for other hardware, defaults where tuned ones exist."""

import re

from pytest_vllm import ENVIRONMENT, MUST, SHOULD, Server, check, observe, only_if

Log = tuple[tuple[float, str], ...]
NO_LOG = "there is no log: the server was not started here"
FP4 = re.compile(
    r"does not have native support for FP4|NvFp4W4A16|Using 'MARLIN' (?:NvFp4|MxFp4|Mxfp4) MoE backend",
    re.IGNORECASE,
)
FALLBACK = re.compile(
    r"(?:falling|fall(?:s|ing)?|fell) back to (?:the )?(?:native|eager|naive|PyTorch|unfused|slow)",
    re.IGNORECASE,
)
TUNED = re.compile(r"Using default (?:MoE|W8A8|fused.?moe).*config", re.IGNORECASE)
GRAPHS = re.compile(r"setting cudagraph_mode=(?:PIECEWISE|NONE)", re.IGNORECASE)
KERNEL = re.compile(
    r"Using (\S+) (?:attention )?backend|Using '?(\S+)'? \S*(?:MoE|Linear\S*) (?:backend|kernel)"
)


def found(log: Log, pattern: re.Pattern[str]) -> list[str]:
    """The lines that a pattern matches. Raises NotRun where there is no log."""
    only_if(log, NO_LOG)
    return [line for _, line in log if pattern.search(line)]


@check(
    "performance.log.native-fp4",
    MUST,
    spec="fault:vllm-project/vllm/issues/50925",
    family=ENVIRONMENT,
)
def test_native_fp4(vllm_log: Log) -> None:
    """FP4 weights run on FP4 kernels, not on those for GPUs without them."""
    lines = found(vllm_log, FP4)
    observe("kernels", "; ".join(line[-80:] for line in found(vllm_log, KERNEL)[:4]))

    assert not lines, f"{lines[0][:240]}"


@check("performance.log.no-fallback", SHOULD, spec="fault:vllm-project/vllm/issues/36821", family=ENVIRONMENT)
def test_no_fallback(vllm_log: Log) -> None:
    """No layer falls back to a slow implementation."""
    lines = found(vllm_log, FALLBACK)

    assert not lines, f"{lines[0][:240]}"


@check("performance.log.graphs", MUST, spec="fault:vllm-project/vllm/issues/49547", family=ENVIRONMENT)
def test_graphs(vllm_server: Server, vllm_log: Log) -> None:
    """Drafting does not cost the full CUDA graphs."""
    only_if(vllm_server.drafts, "nothing is drafted")
    only_if(not vllm_server.args.get("enforce-eager"), "--enforce-eager is set")
    lines = found(vllm_log, GRAPHS)

    assert not lines, f"{lines[0][:240]}"


@check("performance.log.tuned", SHOULD, spec="fault:vllm-project/vllm/issues/36273", family=ENVIRONMENT)
def test_tuned(vllm_log: Log) -> None:
    """Kernels run with a configuration that was tuned for this GPU."""
    lines = found(vllm_log, TUNED)

    assert not lines, f"{lines[0][:240]}"


@check("performance.log.not-eager", SHOULD, spec="vllm:configuration/optimization/", family=ENVIRONMENT)
def test_not_eager(vllm_server: Server, vllm_log: Log) -> None:
    """The server was not told to do without CUDA graphs and compiled kernels."""
    only_if(vllm_log, NO_LOG)

    assert not vllm_server.args.get("enforce-eager"), "--enforce-eager is set: decoding is slower by far"
