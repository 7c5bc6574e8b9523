"""Health that tells the truth: a server that says it is well generates."""

from pytest_vllm import MUST, PERFORMANCE, SHOULD, Recording, Recordings, check, need

HANGS = "fault:vllm-project/vllm/issues/39863"


@check("health.generates", MUST, spec=HANGS, needs=["completions"])
def test_generates(health_generates: Recording) -> None:
    """The server generates a token when asked for one."""
    status = health_generates.status

    assert status == 200, f"answered with {status or health_generates.error}: {health_generates.text[:120]}"


@check("health.generates.counted", MUST, spec=HANGS, needs=["completions"])
def test_counted(health_generates: Recording) -> None:
    """The token that was generated is counted."""
    tokens = health_generates.ok["usage"]["completion_tokens"]

    assert tokens == 1, f"{tokens} tokens are counted"


@check("health.truthful", MUST, spec="fault:vllm-project/vllm/issues/36451", needs=["completions"])
def test_truthful(health_health: Recording, health_generates: Recording) -> None:
    """`/health` does not say 200 while generation hangs or fails in the server."""
    health_health.answered()
    failed = (health_generates.status or 500) >= 500

    assert not (health_health.status == 200 and failed), (
        f"/health says 200, one token is answered with {health_generates.status or health_generates.error}"
    )


@check(
    "health.busy",
    SHOULD,
    spec=HANGS,
    family=PERFORMANCE,
    exchanges=("health.",),
    needs=["completions", "stream"],
)
def test_busy(vllm_recordings: Recordings) -> None:
    """`/health` answers within a second while the server generates."""
    answers = [r for r in vllm_recordings.of("") if r.status == 200 and "/completions" in r.request.path]
    probes = [r for r in vllm_recordings.of("health.busy") if r.status == 200]
    beside = [p for p in probes if any(r.sent <= p.sent <= r.sent + r.seconds for r in answers)]
    need(beside, "nothing was generated at the moments when it was asked")
    slow = [f"{r.seconds:.2f} s" for r in beside if r.seconds >= 1]

    assert not slow, f"{len(slow)} of {len(beside)} took {', '.join(slow)}"


@check("health.work-undisturbed", SHOULD, spec=HANGS, needs=["completions", "stream"])
def test_undisturbed(health_work: Recording, health_busy: Recording) -> None:
    """A stream runs to its end while the server's health is asked."""
    health_busy.answered()
    ends = [event for event in health_work.events if event.is_done]

    assert ends, f"the stream broke off after {len(health_work.events)} events: {health_work.error}"
