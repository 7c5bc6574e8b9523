"""The census of a run as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.facts.reach import dimensions, unsent
from pytest_vllm.report.text import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.report.reach import Reach


def reach_lines(reach: Reach) -> Iterator[str]:
    """What was asked and what was not, for a terminal."""
    sent, served = reach.sent
    yield f"{count(reach.requests, 'request')} to vLLM {reach.version or '(version unknown)'}"
    yield f"fields  {sent} of {served} sent"
    for route, one in reach.fields.items():
        yield f"  {route}: {len(one.served) - len(one.missing)} of {len(one.served)}"
        for name in one.missing:
            yield f"    never sent: {name}{_because(name)}"
        refused = sorted((one.sent - one.answered) & set(one.served))
        if refused:
            yield f"    sent, and refused each time: {', '.join(refused)}"
    yield "maxima"
    titles = {one.name: one.title for one in dimensions()}
    width = max((len(titles[name]) for name in reach.maxima), default=0)
    for name, (value, key) in reach.maxima.items():
        number = f"{value:,.0f}" if value >= 10 else f"{value:g}" if value == int(value) else f"{value:.1f}"
        yield f"  {titles[name]:{width}}  {number:>7}  {key}"
    yield "not reached"
    for dimension in dimensions():
        missed = [value for value in dimension.counted if not reach.reached[dimension.name][value]]
        if missed:
            yield f"  {dimension.title}: {', '.join(missed)}"
    share = len(reach.pairs) / reach.countable if reach.countable else 0.0
    yield f"pairs   {len(reach.pairs)} of {reach.countable} ({share:.0%})"


def _because(name: str) -> str:
    reason = unsent().get(name)
    return f" ({reason})" if reason else ""
