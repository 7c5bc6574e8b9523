"""What must hold under load whatever the speed: right outputs, no stalls, an empty queue afterwards."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from pytest_vllm import MUST, PERFORMANCE, Measured, check, need, observe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm import Sample

OUTPUTS = "fault:vllm-project/vllm/issues/31030"
SERVING = "vllm:serving/openai_compatible_server/"
NEEDS = ("completions", "stream")
NO_MIX = "the mix did not come about within the budget"
HELD_UP = "this process was held up for so much of the waits that they can't be compared"
#: Statuses with which a server sheds load.
SHED = (429, 503)
#: A pause this many times as long as usual, and longer than any prompt takes to read, is a stall.
STALL = 20.0
#: Seconds by our clock that any busy host may hold up a stream.
NO_STALL = 0.5
#: Seconds to a first token within which nobody notices what something in front of the server adds.
NOTICED = 0.25
#: Seconds that a first form may take more than later ones, and by our clock that a busy host may hold it up.
COMPILING, HELD = 10.0, 0.6


@check("throughput.outputs.alone", MUST, spec=OUTPUTS, needs=NEEDS, tier="gate")
def test_outputs_alone(throughput_decode: Measured) -> None:
    """One stream writes text, the same for the same question, as long as asked."""
    need(throughput_decode.samples, f"nothing was measured: {throughput_decode.stopped}")

    assert not throughput_decode.wrong, throughput_decode.wrong
    need(not throughput_decode.unsure, throughput_decode.unsure)


@check("throughput.outputs.loaded", MUST, spec=OUTPUTS, needs=NEEDS, tier="gate")
def test_outputs_loaded(throughput_aggregate: Measured) -> None:
    """Under load answers are text, the known one is as when alone, and none fails."""
    need(throughput_aggregate.samples, f"nothing was measured: {throughput_aggregate.stopped}")
    observe("requests", f"{len(throughput_aggregate.samples)}, {len(throughput_aggregate.errors)} failed")

    assert not throughput_aggregate.wrong, throughput_aggregate.wrong
    need(not throughput_aggregate.unsure, throughput_aggregate.unsure)


@check("throughput.mixed.no-stall", MUST, spec=SERVING, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_no_stall(throughput_mixed: Measured) -> None:
    """Beside long prompts no stream pauses longer than it takes to read one."""
    need(not throughput_mixed.wrong, throughput_mixed.wrong)
    gaps = throughput_mixed.values("itl", "short")
    reading = throughput_mixed.waits("long")
    need(len(gaps) > 20 and reading, NO_MIX)
    usual, longest = sum(gaps) / len(gaps), max(gaps)
    least, most = medians(reading)
    allowed = max(STALL * usual, NO_STALL * throughput_mixed.speed)
    observe("longest pause", f"{longest:.3g} s, usual {usual:.3g} s, a long prompt's {most:.3g} s")

    assert longest <= max(allowed, 4 * most), (
        f"a stream paused for {longest:.3g} s; between its tokens pass {usual:.3g} s"
    )
    need(longest <= max(allowed, 4 * least), HELD_UP)


@check("throughput.mixed.fair", MUST, spec=SERVING, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_fair(throughput_mixed: Measured) -> None:
    """Short questions get their first token no later than long prompts do."""
    doubt = throughput_mixed.doubt("ttft")
    short, long = throughput_mixed.waits("short"), throughput_mixed.waits("long")
    need(len(short) > 2 and long, NO_MIX)
    early, late = medians(short), medians(long)
    observe("first token", f"short {early[1]:.3g} s, long {late[1]:.3g} s")

    fair = early[0] <= 3 * late[1]
    of_times = doubt in {one.reason for one in throughput_mixed.doubts}
    need(not doubt or (of_times and fair and late[1] < NOTICED), doubt)
    assert fair, f"short {early[0]:.3g} s, long {late[1]:.3g} s"
    need(early[1] <= 3 * late[0], HELD_UP)


def medians(waits: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The medians of the least and of the most that first tokens were waited for, in seconds."""
    return median(least for least, _ in waits), median(most for _, most in waits)


@check("throughput.overload.answered", MUST, spec=SERVING, needs=NEEDS, tier="gate")
def test_overload(throughput_overload: Measured) -> None:
    """Four times as many requests as fit are finished, or shed with 429 or 503."""
    sent = throughput_overload.samples
    need(sent, f"nothing was measured: {throughput_overload.stopped}")
    lost = [one for one in throughput_overload.failed if not _is_shed(one)]
    shed = sum(map(_is_shed, sent))
    observe("requests", f"{len(sent)} at once, {shed} shed, {len(lost)} lost")

    assert not lost, f"{len(lost)} of {len(sent)}: {lost[0].error}"
    need(not throughput_overload.unsure, throughput_overload.unsure)


def _is_shed(one: Sample) -> bool:
    """Whether a request was turned away: by its status, or in a stream by the code of an error."""
    return one.status in SHED or any(f"'code': {code}" in (one.error or "") for code in SHED)


@check("throughput.overload.drains", MUST, spec=SERVING, needs=(*NEEDS, "metrics"), tier="gate")
def test_drains(throughput_overload: Measured) -> None:
    """After an overload nothing runs or waits any more."""
    need(throughput_overload.after, "the metrics were not scraped")
    observe("empty after", f"{throughput_overload.drained} s")

    assert throughput_overload.drained is not None, "requests still run or wait 5 s after the last has ended"


def late(measured: Measured) -> tuple[float, float, float]:
    """Seconds to the first token of the first request, of those after it, and what the first may take."""
    good = [one for one in measured.samples if one.ttft is not None and not one.error]
    need(len(good) > 2, f"{len(good)} requests were answered: {measured.errors[:1]}")
    first, *rest = (one.ttft or 0.0 for one in good)
    observe("first token", f"first {first:.3g} s, then {median(rest):.3g} s")
    allowed = median(rest) + COMPILING + HELD * (measured.speed - 1)
    need(first <= allowed or not measured.held, "this process was held up for a part of the load")
    return first, median(rest), allowed


@check(
    "throughput.grammar.first",
    MUST,
    spec="vllm:features/structured_outputs/",
    family=PERFORMANCE,
    needs=("chat", "stream", "structured-output"),
    tier="gate",
)
def test_grammar(throughput_grammar: Measured) -> None:
    """The first request with a new grammar is answered about as soon as the next."""
    first, then, allowed = late(throughput_grammar)

    assert first <= allowed, f"{first:.3g} s, then {then:.3g} s: the grammar is compiled first"


@check(
    "throughput.tool.first",
    MUST,
    spec="vllm:features/tool_calling/",
    family=PERFORMANCE,
    needs=("chat", "stream", "tools.required"),
    tier="gate",
)
def test_tool(throughput_tool: Measured) -> None:
    """The first request with a new tool is answered within seconds of those after it."""
    first, then, allowed = late(throughput_tool)

    assert first <= allowed, f"{first:.3g} s, then {then:.3g} s: the tool's grammar is compiled first"
