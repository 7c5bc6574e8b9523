"""An answer shows what its own tokens say, wherever it lists their ids: nothing lost, added or turned."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recordings, Server, check, listed, need, observe, only_if

from .answers import answers
from .tagged import misread, tagged, valid
from .written import called, objects, schemas, shown, unlike

if TYPE_CHECKING:
    from .answers import Answer
    from .apis import Choice
    from .tagged import Call

WRITTEN = ["oracle.written[", "*"]
NEEDS = ["tokenize"]


@check(
    "oracle.text.written",
    MUST,
    spec="fault:vllm-project/vllm/issues/28804",
    needs=NEEDS,
    exchanges=WRITTEN,
)
def test_text(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """A text is what its tokens say, wherever an answer gives their ids."""
    found = [(one, choice) for one in answers(vllm_recordings) for choice in shown(one, vllm_server)]
    only_if(found, "no answer that can be held to its tokens gives their ids")
    said = _said(vllm_recordings)
    rows = [(one, choice, said[choice.ids]) for one, choice in found if choice.ids in said]
    need(rows, "the server gave no text for these ids")
    observe("texts held to their tokens", len(rows))
    wrong = [f"{one.key}: {fault}" for one, choice, raw in rows if (fault := unlike(choice, raw))]

    assert not wrong, listed(wrong)


@check(
    "oracle.calls.written",
    MUST,
    spec="fault:vllm-project/vllm/issues/41122",
    needs=["tools", *NEEDS],
    exchanges=WRITTEN,
)
def test_calls(vllm_recordings: Recordings) -> None:
    """A call has the arguments that the model wrote, where it wrote them as JSON."""
    found = [(one, choice) for one in answers(vllm_recordings) for choice in called(one)]
    only_if(found, "no call that the model made of its own accord gives the ids of its tokens")
    said = _said(vllm_recordings)
    rows = [(one, choice, objects(said[choice.ids])) for one, choice in found if choice.ids in said]
    judged = [row for row in rows if len(row[2]) == len(row[1].calls)]
    only_if(judged, "this model writes calls otherwise than as JSON")
    observe("calls held to their tokens", len(judged))
    wrong = [f"{one.key}: {fault}" for one, choice, wrote in judged for fault in _turned(one, choice, wrote)]

    assert not wrong, listed(wrong)


@check(
    "oracle.calls.tagged",
    MUST,
    spec="fault:vllm-project/vllm/issues/46924",
    needs=["tools", *NEEDS],
    exchanges=WRITTEN,
)
def test_tagged(vllm_recordings: Recordings) -> None:
    """What a model wrote between tags has the type that its tool declares."""
    found = [(one, choice) for one in answers(vllm_recordings) for choice in called(one)]
    only_if(found, "no call that the model made of its own accord gives the ids of its tokens")
    said = _said(vllm_recordings)
    rows = [(one, choice, tagged(said[choice.ids])) for one, choice in found if choice.ids in said]
    judged = [row for row in rows if [name for name, _ in row[2]] == [name for name, _ in row[1].calls]]
    only_if(judged, "this model writes calls otherwise than between tags")
    observe("calls held to their tags", len(judged))
    wrong = [f"{row[0].key}: {fault}" for row in judged for fault in _mistyped(*row)]

    assert not wrong, listed(wrong)


def _mistyped(one: Answer, choice: Choice, wrote: list[Call]) -> list[str]:
    """The arguments that are of another type than their text and their tool say."""
    known = schemas(one.asked)
    found = []
    for (name, arguments), (_, texts) in zip(choice.calls, wrote, strict=True):
        read, given = _read(arguments)
        rows = [(key, texts[key]) for key in given if key in texts] if read and name in known else []
        found += [fault for key, text in rows if (fault := misread(given[key], text, known[name], key))]
    return found


def _read(arguments: str) -> tuple[bool, dict[str, Any]]:
    try:
        value = json.loads(arguments)
    except ValueError:
        return False, {}
    return isinstance(value, dict), value if isinstance(value, dict) else {}


def _turned(one: Answer, choice: Choice, wrote: list[dict[str, Any]]) -> list[str]:
    """The calls whose arguments are not those that the model wrote, of those that fit the tool as written."""
    known = schemas(one.asked)
    rows = zip(choice.calls, wrote, strict=True)
    fitting = [(name, said, w) for (name, said), w in rows if name in known and valid(w, known[name])]
    return [
        f"{name}: {said[:80]}, written was {json.dumps(meant, ensure_ascii=False)[:80]}"
        for name, said, meant in fitting
        if _spelt(said) != json.dumps(meant, sort_keys=True)
    ]


def _spelt(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except ValueError:
        return arguments


def _said(recordings: Recordings) -> dict[tuple[int, ...] | None, str]:
    """The ids that were asked about -> the text that they stand for."""
    return {
        tuple(one.request.json["tokens"]): str(one.json["prompt"])
        for one in recordings.of(WRITTEN[0])
        if one.status == 200 and isinstance(one.json, dict) and "prompt" in one.json
    }
