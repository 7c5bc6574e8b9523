"""Health that tells the truth: a server that says it is well generates."""

from pytest_vllm import MUST, PERFORMANCE, SHOULD, Recording, check, need

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


@check("health.busy", SHOULD, spec=HANGS, family=PERFORMANCE, needs=["completions", "stream"])
def test_busy(health_work: Recording, health_busy: Recording) -> None:
    """`/health` answers within a second while the server generates."""
    need(health_busy.status == 200, f"answered with {health_busy.status}")
    together = health_work.sent <= health_busy.sent <= health_work.sent + health_work.seconds
    need(together, "nothing was generated at that moment")

    assert health_busy.seconds < 1, f"took {health_busy.seconds:.2f} s"


@check("health.work-undisturbed", SHOULD, spec=HANGS, needs=["completions", "stream"])
def test_undisturbed(health_work: Recording, health_busy: Recording) -> None:
    """A stream runs to its end while the server's health is asked."""
    health_busy.answered()
    ends = [event for event in health_work.events if event.is_done]

    assert ends, f"the stream broke off after {len(health_work.events)} events: {health_work.error}"
