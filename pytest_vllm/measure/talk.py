"""Single requests beside or between loads: a question and its answer, a scrape, waiting for an idle end."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from pytest_vllm.measure.driver import Call
from pytest_vllm.measure.wirebytes import body_pieces
from pytest_vllm.wire.glance import glance
from pytest_vllm.wire.idleness import Idleness

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.measure.asking import Asking
    from pytest_vllm.measure.driver import Driver

#: Seconds for a single answer.
TIMEOUT = 60.0
_FOLLOWED = re.compile(
    r"num_requests_(?:running|waiting)$|(?:kv|gpu)_cache_usage_perc|generation_tokens_total|"
    r"prompt_tokens_total|"
    r"prefix_cache_(?:hits|queries)_total|num_preemptions_total|request_success_total|"
    r"(?:time_to_first_token|inter_token_latency|time_per_output_token)_seconds_(?:sum|count)"
)


class Talk:
    """Speaks to one server.

    Args:
        driver: carries the requests.
        asking: makes them.
    """

    def __init__(self, driver: Driver, asking: Asking) -> None:
        """Nothing is sent yet."""
        self.driver, self.asking = driver, asking

    def ask(self, message: bytes, timeout: float = TIMEOUT) -> Call:
        """Send one request and wait for its answer."""
        over: list[Call] = []
        call = self.driver.submit(Call(message, over.append, time.perf_counter()))
        deadline = time.perf_counter() + timeout
        while not over and time.perf_counter() < deadline:
            self.driver.step(0.05)
        if not over:
            self.driver.cancel(why=f"not answered within {timeout:g} s")
        return call

    def scrape(self) -> str:
        """The text of `/metrics`; empty when there is none."""
        return body_of(self.ask(self.asking.get("/metrics")))

    def scrape_beside(self, over: Callable[[str], None]) -> None:
        """The same, without waiting for it."""
        call = Call(self.asking.get("/metrics"), lambda call: over(body_of(call)), time.perf_counter())
        self.driver.submit(call)

    def idle(self, patience: float) -> tuple[str, float | None]:
        """`/metrics` once the server has nothing to do and has counted it, and how long that took.

        Args:
            patience: seconds; after them the latest text is given, and None if something still ran or waited.
        """
        began = time.perf_counter()
        idleness, text = Idleness(), ""
        while time.perf_counter() - began < patience and (text := self.scrape()):
            if idleness.settled(text, time.perf_counter() - began) or not idleness.known:
                break
            self.driver.turn(time.perf_counter() + 0.01)
        return text, idleness.emptied


def followed(text: str) -> dict[str, float]:
    """The gauges and counters of a scrape that are followed over time, summed over engines."""
    return {name: sum(values) for name, values in glance(text).items() if _FOLLOWED.search(name)}


def speed_told(call: Call) -> float:
    """How fast the clock of the server that answered runs against the wall's; 1 unless it says otherwise."""
    told = call.head.fields.get("x-sim-speed", "") if call.head else ""
    try:
        return float(told) if told else 1.0
    except ValueError:
        return 1.0


def body_of(call: Call) -> str:
    """The body of a good answer as text; empty for any other."""
    if call.error or call.head is None or call.head.status != 200:
        return ""
    parts = (data for data, _ in body_pieces(call.head, call.pieces, call.times))
    return b"".join(parts).decode("utf-8", "replace")
