"""What holds for log probabilities of one answer holds wherever an answer of the run lists some."""

from __future__ import annotations

from itertools import pairwise
from math import exp
from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recordings, Server, check, listed, observe, only_if

from ..oracle.answers import CHAT, COMPLETIONS, RESPONSES, answer_of  # noqa: TID252 - suites lie together
from ..oracle.apis import BY_ID, TORN, listed_in, response_objects  # noqa: TID252 - suites lie together
from .accounts import both, foreign, misplaced, read_lists, read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording

SPEC = "openai:chat/object#choices-logprobs"
#: Nats by which the same log probability may be written otherwise, and how far above 1 sums may be.
SAME, ROUNDED = 1e-3, 1.01
#: Asks for tokens by their ids, which are listed as they were asked for.
CHOSEN = "logprob_token_ids"


@check("logprobs.every.sorted", MUST, spec=SPEC, exchanges=["*"])
def test_sorted(vllm_recordings: Recordings) -> None:
    """Candidates are listed from the likeliest down, but for the token that was drawn."""
    rows = [(key, row) for key, row in _entries(vllm_recordings) if len(row.get("top_logprobs") or ()) > 1]
    only_if(rows, "no answer of chat or responses lists candidates")
    observe("tokens with candidates", len(rows))
    wrong = [f"{key}: {row['token']!r} with {values}" for key, row in rows if (values := _unsorted(row))]

    assert not wrong, f"{len(wrong)} of {len(rows)} tokens: {listed(wrong)}"


@check("logprobs.every.bytes", MUST, spec=SPEC, exchanges=["*"])
def test_bytes(vllm_recordings: Recordings) -> None:
    """`bytes` are the token's text in UTF-8, for every token and candidate of the run."""
    rows = [
        (key, one)
        for key, row in _entries(vllm_recordings)
        for one in (row, *(row.get("top_logprobs") or ()))
        if one.get("bytes") is not None and TORN not in one["token"] and not one["token"].startswith(BY_ID)
    ]
    only_if(rows, "no answer of chat or responses gives bytes")
    wrong = [f"{key}: {one['token']!r} as {one['bytes']}" for key, one in rows if _other(one)]
    wrong += [f"{key}: {token!r} has none" for key, token in _without_bytes(vllm_recordings)]

    assert not wrong, f"{len(wrong)} of {len(rows)} tokens: {listed(wrong)}"


@check("logprobs.every.mass", MUST, spec=SPEC, exchanges=["*"])
def test_mass(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """The candidates of a token are together at most certain, on every route."""
    only_if(not vllm_server.logits, "its log probabilities are logits, as --logprobs-mode makes them")
    rows = [
        (key, row["token"], sum(exp(top["logprob"]) for top in row["top_logprobs"]))
        for key, row in _entries(vllm_recordings)
        if row.get("top_logprobs")
    ]
    only_if(rows, "no answer of chat or responses lists candidates")
    wrong = [f"{key}: {token!r} with {mass:.3f}" for key, token, mass in rows if mass > ROUNDED]

    assert not wrong, f"{len(wrong)} of {len(rows)} tokens: {listed(wrong)}"


@check(
    "logprobs.every.offsets",
    MUST,
    spec="openai:completions/object#logprobs",
    exchanges=["logprobs.scripts", "*"],
)
def test_offsets(vllm_recordings: Recordings) -> None:
    """A token's offset is where the one before it ends; the first one is 0."""
    found = [one for one in vllm_recordings.of("") if one.request.path == COMPLETIONS and answer_of(one)]
    rows = [(one.key, offsets, tokens) for one in found for offsets, tokens in _placed(one)]
    only_if(rows, "no completion tells where its tokens begin")
    wrong = [
        f"{key}: {offsets[:6]} for {tokens[:6]}" for key, offsets, tokens in rows if _apart(offsets, tokens)
    ]

    assert not wrong, f"{len(wrong)} of {len(rows)} answers: {listed(wrong)}"


@check("logprobs.every.own", MUST, spec=SPEC, exchanges=["*"])
def test_own(vllm_recordings: Recordings) -> None:
    """A token's log probability is the one that it has among its candidates."""
    found = {one.key: [row for row in both(one) if None not in row] for one in _listing(vllm_recordings)}
    told = {key: rows for key, rows in found.items() if rows}
    only_if(told, "no answer lists a token among its candidates")
    wrong = []
    for key, rows in told.items():  # two candidates may have one text, and tell one value
        off = [row for row in rows if abs((row[1] or 0.0) - (row[2] or 0.0)) > SAME]
        wrong += [f"{key}: {off[0]}"] if 2 * len(off) > len(rows) else []

    assert not wrong, (
        f"(token, its own, as candidate) in {len(wrong)} of {len(told)} answers: {listed(wrong)}"
    )


@check("logprobs.every.ranks", MUST, spec="vllm:serving/openai_compatible_server/", exchanges=["*"])
def test_ranks(vllm_recordings: Recordings) -> None:
    """Of the candidates for a prompt's token the likelier has the lower rank."""
    rows = [
        (one.key, row) for one in _listing(vllm_recordings) for row in read_rows(one) if row and len(row) > 1
    ]
    only_if(rows, "no answer lists candidates for a token of its prompt")
    wrong = [f"{key}: {found}" for key, row in rows if (found := misplaced(row))]

    assert not wrong, f"{len(wrong)} of {len(rows)} tokens: {listed(wrong)}"


@check("logprobs.every.prompt", MUST, spec="vllm:serving/openai_compatible_server/", exchanges=["*"])
def test_prompt(vllm_recordings: Recordings) -> None:
    """A prompt's log probabilities are of each of its tokens, and of no other's."""
    found = [(one, rows) for one in _listing(vllm_recordings) for rows in read_lists(one)]
    only_if(found, "no answer lists the tokens of its prompt")
    wrong = [f"{one.key}: {fault}" for one, rows in found if (fault := foreign(one, rows))]

    assert not wrong, f"{len(wrong)} of {len(found)} prompts: {listed(wrong)}"


def _listing(recordings: Recordings) -> list[Recording]:
    found = recordings.of("")
    return [one for one in found if one.request.path in (CHAT, COMPLETIONS, RESPONSES) and answer_of(one)]


def _placed(one: Recording) -> Iterator[tuple[list[int], list[str]]]:
    """Offsets and tokens of each choice, of a stream those of its first piece."""
    seen = set()
    for body in one.bodies:
        for choice in body["choices"]:
            told = choice.get("logprobs") or {}
            if told.get("tokens") and choice["index"] not in seen and len(told.get("text_offset") or ()):
                seen.add(choice["index"])
                yield told["text_offset"], told["tokens"]


def _apart(offsets: list[int], tokens: list[str]) -> bool:
    """Whether offsets are not where tokens begin; torn characters and ids have lengths of their own."""
    plain = [TORN not in token and not token.startswith(BY_ID) for token in tokens]
    steps = zip(pairwise(offsets), tokens, plain, strict=False)
    return offsets[0] != 0 or any(b - a != len(token) for (a, b), token, known in steps if known)


def _entries(recordings: Recordings) -> Iterator[tuple[str, dict[str, Any]]]:
    """Key and entry of every token that an answer of chat or responses lists."""
    for one in recordings.of(""):
        path = one.request.path.partition("?")[0]
        if path in (CHAT, RESPONSES) and answer_of(one) and not (one.request.json or {}).get(CHOSEN):
            yield from ((one.key, row) for row in (_of_chat(one) if path == CHAT else _of_response(one)))


def _of_chat(one: Recording) -> Iterator[dict[str, Any]]:
    for body in one.bodies:
        for choice in body["choices"]:
            yield from (choice.get("logprobs") or {}).get("content") or ()


def _of_response(one: Recording) -> list[dict[str, Any]]:
    return listed_in(response_objects(one.bodies, one.request.streams)[-1])


def _unsorted(row: dict[str, Any]) -> list[float]:
    """The values of a token's candidates where they are in no order; a drawn token may come first."""
    values = [top["logprob"] for top in row["top_logprobs"]]
    drawn = row["top_logprobs"][0]["token"] == row["token"]
    rest = values[1:] if drawn else values
    return values if any(b > a + SAME for a, b in pairwise(rest)) else []


def _without_bytes(recordings: Recordings) -> list[tuple[str, str]]:
    """The tokens without bytes, of answers that give those of others."""
    rows = [(key, row) for key, row in _entries(recordings) if row.get("token")]
    telling = {key for key, row in rows if row.get("bytes")}
    return [(key, row["token"]) for key, row in rows if key in telling and row.get("bytes") is None]


def _other(one: dict[str, Any]) -> bool:
    try:
        return bool(bytes(one["bytes"]) != one["token"].encode(errors="replace"))
    except ValueError:
        return True
