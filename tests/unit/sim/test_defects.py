"""Defects: how they are declared, found, hooked in, and applied to recordings."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.sim.api.reply import Exchange
from pytest_vllm.sim.defects import registry
from pytest_vllm.sim.defects.hooks import POINTS, Hooks
from pytest_vllm.sim.defects.registry import all_defects, find, listing
from pytest_vllm.sim.defects.rewrite import Recorded, rewritten, rewritten_metrics
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, after, every, fresh, only, remembering

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.sim.client import Client

JSON = [("content-type", "application/json"), ("content-length", "2")]
SSE = [("content-type", "text/event-stream; charset=utf-8")]


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> dict[str, registry.Defect]:
    """A registry of the test's own."""
    mine: dict[str, registry.Defect] = {}
    monkeypatch.setattr(registry, "DEFECTS", mine)
    monkeypatch.setattr(registry, "all_defects", lambda: mine)
    return mine


def test_a_function_declares_a_defect(declared: dict[str, registry.Defect]) -> None:
    """The area is the name's first part, the summary the docstring's first line."""

    @registry.defect("chat.shouts", on="json", faults=["X-1"])
    def shouts(body: Any, exchange: Exchange) -> Any:
        """Answers are in capitals.

        More about it.
        """
        del exchange
        return body

    made = declared["chat.shouts"]
    assert (made.area, made.summary, made.faults, made.rewrites) == (
        "chat", "Answers are in capitals.", ("X-1",), True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "summary", "point", "complaint"),
    [
        ("a.b", "Fails.", "jsonn", "no hook point 'jsonn'"),
        ("a.b", "", "json", "does not say what the server does wrong"),
        ("taken", "Fails.", "json", "declared twice"),
    ],
)
def test_a_wrong_declaration_is_refused(
    declared: dict[str, registry.Defect], name: str, summary: str, point: str, complaint: str
) -> None:
    """At import, by name."""
    registry.add("taken", "Fails.", {"json": lambda body, _: body})

    with pytest.raises(ValueError, match=complaint):
        registry.add(name, summary, {point: lambda body, _: body})
    assert list(declared) == ["taken"]


def test_a_mistyped_name_is_answered_with_the_nearest() -> None:
    """Did you mean."""
    with pytest.raises(ValueError, match=r"did you mean streaming\.multi-byte-cut"):
        find("streaming.multibyte-cut")


def test_an_unknown_point_can_not_be_hooked() -> None:
    """A typing mistake would otherwise make a defect that never shows."""
    with pytest.raises(KeyError, match="no hook point 'jsn'"):
        Hooks().add("jsn", lambda value: value)


def test_hooks_pass_the_value_through_in_order() -> None:
    """A point without functions gives its value back."""
    hooks = Hooks()
    hooks.add("step", lambda seconds, _: seconds + 1)
    hooks.add("step", lambda seconds, _: seconds * 10)

    assert (hooks.run("step", 1, None), hooks.run("log", 1, None)) == (20, 1)


@pytest.mark.parametrize("name", sorted(all_defects()))
def test_a_defect_can_be_named_and_listed(name: str) -> None:
    """Dotted, lower case, with a sentence, at known points."""
    one = all_defects()[name]

    assert name == name.lower()
    assert "." in name
    assert one.summary.endswith(".")
    assert set(one.on) <= set(POINTS)
    assert json.dumps(listing())


def test_counting_starts_anew_for_every_server() -> None:
    """Two servers in one process do not count each other's requests."""

    def spoiled(value: int, path: str) -> int:
        del path
        return -value

    limited = only(["/v1"], after(1, spoiled))
    first, second = fresh(limited), fresh(limited)

    assert [first(1, "/v1/x"), first(1, "/health"), first(1, "/v1/x")] == [1, 1, -1]
    assert second(1, "/v1/x") == 1
    assert [every(2, spoiled)(1, "/v1")] * 2 == [1, 1]


def test_a_function_that_remembers_is_made_for_each_server() -> None:
    """What it remembers is its own."""

    def make() -> Callable[[int], int]:
        numbers = count()
        return lambda value: value + next(numbers)

    function = remembering(make)

    assert [function(1), function(1), fresh(function)(1)] == [1, 2, 1]


def test_a_rewrite_applies_to_a_whole_recording(declared: dict[str, registry.Defect]) -> None:
    """Without a server; the length is that of what is sent."""
    registry.add("chat.mute", "Says nothing.", {"json": lambda body, _: {**body, "choices": []}})
    answer = Recorded(200, JSON, [(0.5, b'{"id": 1, "choices": [1, 2, 3]}')])
    spoiled = rewritten(["chat.mute"], answer, Exchange("POST", CHAT, {}, {}))

    assert list(declared) == ["chat.mute"]
    assert spoiled.chunks == [(0.5, b'{"id":1,"choices":[]}')]
    assert dict(spoiled.headers)["content-length"] == "21"


def test_a_rewrite_keeps_the_times_of_a_stream() -> None:
    """An event comes when the chunk that ended it came."""
    event = b'data: {"choices": [{"index": 0, "delta": {"content": "%s"}}]}\n\n'
    answer = Recorded(200, SSE, [(0.1, event % b"a"), (0.2, event % b"b" + b"data: [DO"), (0.3, b"NE]\n\n")])
    spoiled = rewritten(["streaming.no-done"], answer, Exchange("POST", CHAT, {}, {"stream": True}))

    assert [at for at, _ in spoiled.chunks] == [0.1, 0.2]
    assert b"".join(chunk for _, chunk in spoiled.chunks).count(b"data: ") == 2


def test_what_needs_an_engine_is_no_rewrite() -> None:
    """It says so."""
    name = next(one.name for one in all_defects().values() if not one.rewrites)

    with pytest.raises(ValueError, match="needs a running simulator"):
        rewritten([name], Recorded(200, JSON, []), Exchange("POST", COMPLETIONS, {}, {}))


def test_a_scrape_can_be_rewritten(declared: dict[str, registry.Defect]) -> None:
    """Metrics need no engine."""
    registry.add("metrics.gone", "No families.", {"metrics": lambda text, _: text.replace("a 1", "a 2")})

    assert list(declared) == ["metrics.gone"]
    assert rewritten_metrics(["metrics.gone"], "a 1\nb 1\n") == "a 2\nb 1\n"


RECORDED: dict[str, dict[str, Any] | None] = {
    CHAT: {"messages": [{"role": "user", "content": "Count to 5."}], "logprobs": True, "top_logprobs": 2},
    COMPLETIONS: {"prompt": ["One", "Two"], "max_tokens": 6, "echo": True, "logprobs": 1},
    "/v1/responses": {"input": "Hi"},
    "/v1/messages": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9},
    "/tokenize": {"prompt": "Hi"},
    "/v1/models": None,
    "/metrics": None,
    "/v1/nothing": {},
}


@pytest.fixture(scope="session")
def recordings(sim: Client) -> list[tuple[Recorded, Exchange]]:
    """A healthy server's answers on many paths, whole and streamed."""
    made = []
    for path, body in RECORDED.items():
        streams = [{}, {"stream": True}] if path.startswith("/v1/") and body else [{}]
        for more in streams:
            asked = None if body is None else {**body, **more}
            answer = sim.ask("POST" if asked is not None else "GET", path, asked)
            exchange = Exchange("POST" if asked is not None else "GET", path, {}, asked)
            pieces = [(0.1, answer.body[:-9]), (0.2, answer.body[-9:])]
            made.append((Recorded(answer.status, list(answer.headers.items()), pieces), exchange))
    return made


@pytest.mark.parametrize("name", sorted(one.name for one in all_defects().values() if one.rewrites))
def test_a_rewrite_takes_whatever_a_server_answers(
    recordings: list[tuple[Recorded, Exchange]], name: str
) -> None:
    """No recording makes it fail, and it is the same every time."""
    for answer, exchange in recordings:
        assert rewritten([name], answer, exchange) == rewritten([name], answer, exchange)
