"""The fast reader and the reference parser agree; and when a server is idle."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_vllm.wire.glance import glance
from pytest_vllm.wire.idleness import Idleness
from pytest_vllm.wire.metrics import Metrics

LABELS = st.dictionaries(st.sampled_from(["engine", "le", "model_name"]), st.text(max_size=8), max_size=3)
SAMPLES = st.lists(
    st.tuples(
        st.sampled_from(["vllm:a_total", "vllm:b", "vllm:num_requests_running", "process_x"]),
        LABELS,
        st.floats(allow_nan=False) | st.just(inf),
    ),
    max_size=8,
)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _line(name: str, labels: dict[str, str], value: float) -> str:
    inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{'{' + inner + '}' if labels else ''} {value}\n"


@given(SAMPLES)
def test_both_readers_find_the_same_values(samples: list[tuple[str, dict[str, str], float]]) -> None:
    """Whatever the labels hold: braces, quotes, line ends."""
    text = "".join(f"# TYPE {name} untyped\n{_line(name, labels, value)}" for name, labels, value in samples)
    expected: dict[str, list[float]] = {}
    for sample in Metrics(text).samples:
        if sample.name.startswith("vllm:"):
            expected.setdefault(sample.name, []).append(sample.value)

    assert {name: sorted(values) for name, values in glance(text).items()} == {
        name: sorted(values) for name, values in expected.items()
    }


def test_only_what_is_asked_for_is_read() -> None:
    """A name is the whole name, and what is no number is left out."""
    text = 'vllm:a 1\nvllm:ab 2\nvllm:a{x="}"} 3\nvllm:a nonsense\n# vllm:a 9\nxvllm:a 5\n'

    assert glance(text, ["vllm:a"]) == {"vllm:a": [1.0, 3.0]}


def scrape(running: int, tokens: int, waiting: int = 0) -> str:
    return (
        f"vllm:num_requests_running {running}\nvllm:num_requests_waiting {waiting}\n"
        f"vllm:generation_tokens_total {tokens}\n"
    )


@pytest.mark.parametrize(
    ("before", "tokens", "scrapes", "answers"),
    [
        (None, 0, [scrape(0, 5), scrape(0, 5)], [False, True]),
        (None, 0, [scrape(1, 5), scrape(1, 5), scrape(0, 5), scrape(0, 5)], [False, False, True, True]),
        (None, 0, [scrape(0, 5, waiting=1)] * 2, [False, False]),
        (scrape(0, 5), 3, [scrape(0, 8)], [True]),
        (scrape(0, 5), 3, [scrape(0, 5), scrape(0, 5), scrape(0, 8)], [False, False, True]),
        (scrape(0, 5), 3, [scrape(0, 9), scrape(0, 9)], [False, True]),
        (scrape(0, 5), 0, [scrape(0, 6), scrape(0, 7), scrape(0, 7)], [False, False, True]),
        (None, 0, ["nothing of vLLM's\n"] * 3, [False] * 3),
    ],
)
def test_when_a_server_is_idle(
    before: str | None, tokens: int, scrapes: list[str], answers: list[bool]
) -> None:
    """Nothing to do, and either exactly the tokens that were handed out, or two scrapes that agree."""
    idleness = Idleness(before, tokens, grace=10.0)

    assert [idleness.settled(text, at) for at, text in enumerate(scrapes)] == answers


def test_tokens_that_never_show_up_are_not_waited_for_for_ever() -> None:
    """After the grace it is idle all the same, and says that they are missing."""
    idleness = Idleness(scrape(0, 5), 3, grace=0.3)
    looks = [idleness.settled(scrape(0, 5), 0.1 * at) for at in range(6)]

    assert looks == [False, False, False, False, True, True]
    assert not idleness.counted
    assert idleness.emptied == 0.0


def test_a_client_that_was_held_up_has_not_waited() -> None:
    """Ten seconds between two looks are no ten seconds of looking: the next one may show the tokens."""
    idleness = Idleness(scrape(0, 5), 3, grace=1.0)

    assert [idleness.settled(scrape(0, 5), at) for at in (0.0, 0.03, 10.0, 10.03)] == [False] * 4
    assert idleness.settled(scrape(0, 8), 10.06)
