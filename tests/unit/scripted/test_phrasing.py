"""The texts behind scripted exchanges: where calls are cut, and what stands before a text or a call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_vllm import Recording, Request, Server
from suites.scripted.phrasing import CUTS, as_markup, cut_at, cut_pieces, formed
from suites.scripted.scripts import tokens_in
from suites.scripted.test_choice import taken


def served(tool: str, reasoning: str = "") -> Server:
    """A server with these parsers."""
    args = {"tool-call-parser": tool, **({"reasoning-parser": reasoning} if reasoning else {})}
    return Server("http://127.0.0.1:8000", "m", args=args)


SHORT, LONG = served("hermes", "deepseek_r1"), served("kimi_k3", "kimi_k3")


def limits(server: Server) -> list[int]:
    """How many tokens of the call each cut leaves."""
    _, before = cut_pieces(server)
    return [cut_at(server, number)[1] - before for number in range(1, CUTS + 1)]


def test_a_short_call_is_cut_after_each_of_its_tokens() -> None:
    assert limits(SHORT) == list(range(1, CUTS + 1))


@pytest.mark.parametrize("server", [SHORT, LONG])
def test_the_last_cut_leaves_room_for_the_end(server: Server) -> None:
    pieces, limit = cut_at(server, CUTS)

    assert limit > tokens_in(server, pieces)


def test_a_long_call_is_cut_all_over() -> None:
    pieces, before = cut_pieces(LONG)
    whole = tokens_in(LONG, pieces) + 1 - before
    found = limits(LONG)

    assert whole > CUTS
    assert found == sorted(set(found))
    assert max(b - a for a, b in zip([0, *found], found, strict=False)) <= -(-whole // CUTS)
    assert found[-2] < whole


def test_a_call_after_text_has_what_the_template_writes_between() -> None:
    server = served("deepseek_v4", "deepseek_v4")

    assert as_markup(server, apart=True) == f"\n\n{as_markup(server)}"
    assert "DSML" in as_markup(server)[:8]


def script(request: Request) -> str:
    """What a request scripts."""
    return str(request.json["vllm_xargs"]["script"])


def test_json_stands_where_a_text_stands() -> None:
    server = served("inkling", "inkling")
    written, bare = (script(formed(server, "{}", streams=False, bare=one)) for one in (False, True))

    assert written.endswith("<|end_message|><|message_model|><|content_text|>{}")
    assert bare.endswith("<|content_thinking|>Let me look.<|end_message|>{}")
    assert script(formed(SHORT, "{}", streams=False)) == script(formed(SHORT, "{}", streams=False, bare=True))


def answer(status: int, content: str = "") -> Recording:
    """A whole answer, or a refusal."""
    body: dict[str, Any] = {"choices": [{"index": 0, "message": {"content": content}}]}
    request = Request("POST", "/v1/chat/completions", json={}, expect=None)
    return Recording("one", request, status, chunks=((0.1, json.dumps(body).encode()),))


@pytest.mark.parametrize(
    ("first", "other", "content"),
    [
        (answer(200, "first"), answer(200, "other"), "first"),
        (answer(500), answer(200, "other"), "other"),
        (answer(200, "first"), answer(500), "first"),
    ],
)
def test_the_form_that_the_server_takes_is_judged(first: Recording, other: Recording, content: str) -> None:
    assert taken(first, other).content == content


def test_where_neither_form_is_taken_the_first_is_blamed() -> None:
    assert taken(answer(500), answer(500)).errors
