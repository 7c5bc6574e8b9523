"""What holds for the items of one response holds for all of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recordings, Server, check, listed, only_if

from ..oracle.answers import RESPONSES, answer_of  # noqa: TID252 - suites lie together
from ..oracle.numbering import THREE, misnumbered  # noqa: TID252 - suites lie together
from .items import STREAMS_FROM, applies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording


@check(
    "responses.every.numbered",
    MUST,
    spec="openai:responses-streaming",
    needs=["responses", "stream"],
    exchanges=THREE,
)
def test_numbered(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """The items of every stream are numbered from 0 on, each number for one of them."""
    applies(vllm_server, STREAMS_FROM, "streams responses")
    wrong = misnumbered(vllm_recordings, RESPONSES)

    assert not wrong, wrong


@check("responses.every.call-ids", MUST, spec="openai:responses/object", needs=["responses"], exchanges=THREE)
def test_call_ids(vllm_recordings: Recordings) -> None:
    """The id of a call is another than that of the item that holds it."""
    found = [one for one in vllm_recordings.of("") if one.request.path == RESPONSES and answer_of(one)]
    items = [(one.key, item) for one in found for item in _calls(one)]
    only_if(items, "no response held a call with ids")
    wrong = [f"{key}: {item['call_id']!r} twice" for key, item in items if item["call_id"] == item["id"]]

    assert not wrong, listed(dict.fromkeys(wrong))


def _calls(one: Recording) -> Iterator[dict[str, Any]]:
    """The calls of a response, or of the events of a stream, that have ids of both kinds."""
    holders = [body.get("response") or body for body in one.bodies]
    items = [item for body in holders for item in body.get("output") or ()]
    items += [body["item"] for body in one.bodies if isinstance(body.get("item"), dict)]
    for item in items:
        if item.get("type") == "function_call" and item.get("id") and item.get("call_id"):
            yield item
