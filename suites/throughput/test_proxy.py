"""What a proxy in front of the server costs: the same requests through it, and past it."""

from __future__ import annotations

from statistics import median

from pytest_vllm import MUST, PERFORMANCE, Measured, check, need, observe

BUFFERING = "fault:dstackai/dstack/issues/4269"
NEEDS = ("completions", "stream")
#: Seconds by our clock, and times as long, that a proxy may add to the first token.
EXTRA, TIMES = 0.5, 1.5
#: Answers and their length by our clock that tell whether they came bit by bit.
FEW, SHORTEST = 4, 0.05


def good(measured: Measured) -> bool:
    """True where enough answers came. Raises Undecided."""
    need(not measured.wrong, f"{measured.key}: {measured.wrong}")
    count = len([one for one in measured.samples if one.ttft is not None])
    need(count >= FEW, f"{measured.key}: {count} answers decide nothing: {measured.stopped}")
    return True


def spread(measured: Measured) -> float:
    """Seconds from the first token of an answer to its end, as a rule."""
    return median(one.end - one.sent - one.ttft for one in measured.samples if one.ttft is not None)


@check("throughput.proxy.first-token", MUST, spec=BUFFERING, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_first_token(throughput_direct: Measured, throughput_proxied: Measured) -> None:
    """A proxy adds no half second to the first token."""
    need(good(throughput_direct) and good(throughput_proxied), "nothing was answered")
    direct, proxied = (
        median(one.ttft for one in measured.samples if one.ttft is not None)
        for measured in (throughput_direct, throughput_proxied)
    )
    observe("first token", f"through the proxy {proxied:.3g} s, straight to a server {direct:.3g} s")

    assert proxied <= TIMES * direct + EXTRA * throughput_proxied.speed, (
        f"through the proxy {proxied:.3g} s, straight to a server behind it {direct:.3g} s: "
        "does it queue, buffer, or open a connection for each request?"
    )


@check("throughput.proxy.streams", MUST, spec=BUFFERING, needs=NEEDS, tier="gate")
def test_streams(throughput_direct: Measured, throughput_proxied: Measured) -> None:
    """Streams come through a proxy bit by bit, as they do without it."""
    need(good(throughput_direct) and good(throughput_proxied), "nothing was answered")
    direct, proxied = spread(throughput_direct), spread(throughput_proxied)
    shortest = SHORTEST * throughput_direct.speed
    need(direct >= shortest, f"answers take {direct:.3g} s, too short to tell how they come")
    observe("from first token to last", f"through the proxy {proxied:.3g} s, straight {direct:.3g} s")

    assert proxied >= direct / 4, (
        f"from first token to last pass {proxied:.3g} s through the proxy, {direct:.3g} s without it: "
        "it holds streams back (nginx: proxy_buffering off)"
    )
