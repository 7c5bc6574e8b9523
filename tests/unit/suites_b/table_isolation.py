"""Streams that hold what belongs to another."""

from __future__ import annotations

from tests.unit.suites_b.breaks import Break, each_chunk, every, one, raw

ALL = every("streaming.")
CHAT = "streaming.chat"

ISOLATION = [
    Break(
        "another one's word",
        raw(one("streaming.nonce[ibex-7741]"), "ibex-7741", "tapir-8830"),
        ("stream.isolation.own-word", "stream.isolation.no-other-word"),
    ),
    Break(
        "a word that leaks",
        raw(one(CHAT), '"content":"', '"content":"ibex-7741'),
        ("stream.isolation.no-other-word", "stream.parity.chat-text"),
    ),
    Break("one id for all", each_chunk(ALL, lambda c: c.update(id="cmpl-1")), ("stream.isolation.own-id",)),
    Break(
        "another one's token",
        raw(one("streaming.only-token[1100]"), "token_id:1100", "token_id:1108"),
        ("stream.isolation.own-constraint",),
    ),
]
