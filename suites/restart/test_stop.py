"""How the server ends when it is asked to, and that it comes back."""

import re

from pytest_vllm import (
    ENVIRONMENT,
    MUST,
    SHOULD,
    Restart,
    Server,
    check,
    need,
    observe,
    only_if,
)

from .seen import restarted

AFTER = ("restart.models-after",)
Log = tuple[tuple[float, str], ...]
ORPHANS = "fault:vllm-project/vllm-omni/issues/2317"
WEIGHTS = re.compile(r"Model loading took ([\d.]+) ?Gi?B")
CACHE = re.compile(r"Available KV cache memory: ([\d.]+) ?GiB")
#: The part of its weights and cache that a server which ended must have given back.
GIVEN_BACK = 0.9


@check("restart.starts-again", MUST, spec="vllm:serving/", family=ENVIRONMENT, tier="soak", exchanges=AFTER)
def test_starts_again(vllm_restart: Restart | None, vllm_server: Server) -> None:
    """Stopped and started on the same terms, the server becomes ready again."""
    assert restarted(vllm_restart, vllm_server)
    observe("tenants", ", ".join(vllm_restart.tenants) or "none")
    beside = f"; beside {', '.join(vllm_restart.tenants)}" if vllm_restart.tenants else ""

    assert not vllm_restart.error, f"{vllm_restart.error}{beside}: {' / '.join(vllm_restart.evidence[:3])}"


@check("restart.ends-by-itself", SHOULD, spec=ORPHANS, family=ENVIRONMENT, tier="soak", exchanges=AFTER)
def test_ends(vllm_restart: Restart | None, vllm_server: Server) -> None:
    """Asked to end, an idle server does so within ten seconds, without being killed."""
    assert restarted(vllm_restart, vllm_server)

    assert not vllm_restart.killed, f"it still ran after {vllm_restart.stop_seconds:.0f} s and was killed"


@check("restart.nothing-left", MUST, spec=ORPHANS, family=ENVIRONMENT, tier="soak", exchanges=AFTER)
def test_nothing_left(vllm_restart: Restart | None, vllm_server: Server) -> None:
    """No process of the server outlives its main process."""
    assert restarted(vllm_restart, vllm_server)
    need(not vllm_restart.killed, "its main process had to be killed, so the rest was never told to end")

    assert not vllm_restart.left, f"still there: {', '.join(vllm_restart.left)}"


@check("restart.memory-given-back", MUST, spec=ORPHANS, family=ENVIRONMENT, tier="soak", exchanges=AFTER)
def test_given_back(vllm_restart: Restart | None, vllm_server: Server, vllm_log: Log) -> None:
    """A server that has ended has given its weights' and its cache's memory back."""
    assert restarted(vllm_restart, vllm_server)
    back = vllm_restart.given_back
    only_if(back is not None, "nobody here can say how much of the accelerator's memory is free")
    text = "\n".join(line for _, line in vllm_log)
    told = [[float(size) for size in sizes.findall(text)] for sizes in (WEIGHTS, CACHE)]
    need(all(told), "the log does not report how much memory weights and cache take")
    held = max(told[0]) + max(told[1])
    observe("given back", f"{back:.1f} GiB of {held:.1f}")

    assert back is not None
    assert back >= GIVEN_BACK * held, f"{back:.1f} GiB came back, weights and cache took {held:.1f}"
