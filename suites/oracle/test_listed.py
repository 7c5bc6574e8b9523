"""What an answer lists for its tokens is of these tokens, wherever log probabilities were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recordings, check, observe, only_if

from .answers import CHAT, answer_of
from .ties import SAME
from .wording import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording


@check("oracle.listed.value", MUST, spec="fault:vllm-project/vllm/pull/29216", exchanges=["*"])
def test_value(vllm_recordings: Recordings) -> None:
    """A token has the log probability that its entry among the candidates has."""
    rows = [(one.key, row) for one in _scored(vllm_recordings) for row in _entries(one)]
    only_if(rows, "no chat answer lists candidates")
    observe("tokens with candidates", len(rows))
    wrong = [f"{key}: {fault}" for key, row in rows if (fault := _fault(row))]

    assert not wrong, f"{len(wrong)} of {len(rows)} tokens: {listed(wrong)}"


def _scored(recordings: Recordings) -> list[Recording]:
    asked = [one for one in recordings.of("") if one.request.path == CHAT and answer_of(one)]
    return [one for one in asked if one.request.json.get("logprobs") and one.request.json.get("top_logprobs")]


def _entries(one: Recording) -> Iterator[dict[str, Any]]:
    for body in one.bodies:
        for choice in body.get("choices") or ():
            yield from ((choice.get("logprobs") or {}).get("content")) or ()


def _fault(row: dict[str, Any]) -> str:
    """How a token's value differs from its entries; empty where it does not, or where it has none."""
    own = [top["logprob"] for top in row.get("top_logprobs") or () if top.get("token") == row.get("token")]
    value = row.get("logprob")
    if not own or not isinstance(value, int | float) or any(abs(value - other) <= SAME for other in own):
        return ""
    return f"{row['token']!r} has {value}, listed with {own[0]}"
