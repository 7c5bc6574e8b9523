"""Defects of the decoder: blanks, marks and letters that are lost or doubled where tokens meet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.make import ignores
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import CHAT

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.generation import Output

    Change = Callable[[list[str]], None]

LONG_AFTER = 300


def _decoder(name: str, summary: str, change: Change, catches: list[str], *, streams: bool | None) -> None:
    """The pieces of answers are others: of streams, of whole answers, or of both where `streams` is None."""

    def decoded(output: Output, body: dict[str, Any]) -> Output:
        if streams is None or streams == bool(body.get("stream")):
            change(output.pieces)
        return output

    add(f"spelling.{name}", summary, {"output": decoded}, catches=catches)


def _indented(pieces: list[str]) -> None:
    before = ""
    for at, piece in enumerate(pieces):
        if before.endswith("\n") and piece.startswith(" "):
            pieces[at] = piece[1:]
        before = piece or before


def _single(pieces: list[str]) -> None:
    for at, piece in enumerate(pieces):
        pieces[at] = re.sub(r"  +", " ", piece)


def _torn(pieces: list[str]) -> None:
    for at, piece in enumerate(pieces):
        if at % 4 == 0 and piece and not pieces[at - 1] and ord(piece[0]) > 0x7F:
            pieces[at] = f"\ufffd{piece[1:]}"


def _doubled(pieces: list[str]) -> None:
    for at, piece in enumerate(pieces):
        if piece and ord(piece[0]) > 0xFFFF:
            pieces[at] = piece * 2


def _stripped(pieces: list[str]) -> None:
    for at in reversed(range(len(pieces))):
        pieces[at] = pieces[at].rstrip()
        if pieces[at]:
            return


def _late(pieces: list[str]) -> None:
    for at in range(LONG_AFTER, len(pieces)):
        if at % 7 == 0:
            pieces[at] = pieces[at].lstrip(" ")


for _name, _summary, _change, _checks, _streams in (
    ("indentation", "The first blank behind a line break is lost.", _indented, ["spelling.blanks"], None),
    ("torn", "Some letters of several tokens are torn.", _torn, ["spelling.scripts"], False),
    ("single", "Several blanks in a stream come as one.", _single, ["spelling.streamed.blanks"], True),
    (
        "doubled",
        "Signs beyond the basic plane come twice in streams.",
        _doubled,
        ["spelling.streamed.scripts", "stream.text.unicode"],
        True,
    ),
    ("stripped", "Blanks at the end of an answer are lost.", _stripped, ["spelling.blanks"], False),
    ("late", "After 300 tokens blanks are lost now and then.", _late, ["spelling.long"], None),
):
    _decoder(_name, _summary, _change, _checks, streams=_streams)


def _limited(output: Output, body: dict[str, Any]) -> Output:
    if isinstance(output.stop_reason, str) and body.get("max_tokens") == len(output.ids):
        output.finish, output.stop_reason = "length", None
    return output


add(
    "spelling.stop-at-limit",
    "A stop string that ends with the last token of the limit is not told as what ended the answer.",
    {"output": _limited},
    catches=["spelling.stopped.exact"],
)
ignores(
    "spelling.stop-never-shown",
    "A stop string is not shown, although it is to be.",
    ["include_stop_str_in_output"],
    (CHAT,),
    catches=["spelling.stopped"],
)
