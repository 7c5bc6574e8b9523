"""What an answer lists for its tokens is of these tokens, wherever log probabilities were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recordings, Server, check, listed, observe, only_if

from .answers import CHAT, COMPLETIONS, RESPONSES, answer_of, answers
from .apis import BY_ID, TORN, listed_in, response_objects
from .test_texts import SPECIAL
from .ties import SAME, bent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording

    from .answers import Answer
    from .apis import Choice

#: The best of three million tokens is likelier than this.
LEAST = -15.0


@check("oracle.listed.value", MUST, spec="fault:vllm-project/vllm/pull/29216", exchanges=["*"])
def test_value(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """A token has the log probability that its entry among the candidates has."""
    asked = [*_scored(vllm_recordings), *_read(vllm_recordings, RESPONSES)]
    rows = [(one.key, row) for one in asked for row in _entries(one)]
    only_if(rows, "no answer of chat or responses lists candidates")
    observe("tokens with candidates", len(rows))
    wrong = [f"{key}: {fault}" for key, row in rows if (fault := _fault(row, vllm_server))]

    assert not wrong, f"{len(wrong)} of {len(rows)} tokens: {listed(wrong)}"


@check("oracle.listed.candidates", MUST, spec="fault:vllm-project/vllm/issues/44319", exchanges=["*"])
def test_candidates(vllm_recordings: Recordings) -> None:
    """Tokens of a chat answer have as many candidates as were asked for."""
    rows = [
        (one.key, one.request.json["top_logprobs"], len(row.get("top_logprobs") or ()))
        for one in _scored(vllm_recordings)
        for row in _entries(one)
    ]
    only_if(rows, "no chat answer lists candidates")
    wrong = {key: f"{key}: {given} candidates of {wanted}" for key, wanted, given in rows if given < wanted}

    assert not wrong, listed([*wrong.values()])


@check("oracle.listed.joined", MUST, spec="fault:vllm-project/vllm/issues/5334", exchanges=["*"])
def test_joined(vllm_recordings: Recordings) -> None:
    """Tokens that are listed, those of an echoed prompt too, join to the text."""
    rows = [
        (one, choice)
        for one in answers(vllm_recordings)
        for choice in one.choices
        if choice.tokens and not choice.tokens[0][0].startswith(BY_ID)
    ]
    only_if(rows, "no answer lists its tokens")
    wrong = [f"{one.key}: {fault}" for one, choice in rows if (fault := _apart(one, choice))]

    assert not wrong, listed(wrong)


@check("oracle.listed.taken", MUST, spec="fault:vllm-project/vllm/issues/15381", exchanges=["*"])
def test_taken(vllm_recordings: Recordings) -> None:
    """A token of a completion is among the candidates that are listed for it."""
    rows = [
        (one.key, token, candidates)
        for one in _read(vllm_recordings, COMPLETIONS)
        for body in one.bodies
        for choice in body.get("choices") or ()
        if isinstance(told := choice.get("logprobs"), dict)
        for token, candidates in zip(told.get("tokens") or (), told.get("top_logprobs") or (), strict=False)
        if isinstance(candidates, dict)
    ]
    only_if(rows, "no completion lists candidates")
    wrong = [
        f"{key}: {token!r} of {[*candidates]}" for key, token, candidates in rows if token not in candidates
    ]

    assert not wrong, f"{len(wrong)} of {len(rows)} tokens: {listed(wrong)}"


@check("oracle.listed.likely", MUST, spec="fault:vllm-project/vllm/pull/38711", exchanges=["*"])
def test_likely(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """A greedy token that nothing forced is as likely as a best one must be at least."""
    only_if(not vllm_server.logits, "its log probabilities are logits, as --logprobs-mode makes them")
    rows = [
        (one, number, token)
        for one in vllm_recordings.of("")
        if one.request.path in (CHAT, COMPLETIONS) and answer_of(one) and _free(one.request.json)
        for number, token in enumerate(_values(one))
    ]
    only_if(rows, "no greedy answer lists its tokens")
    wrong = [f"{one.key}: token {number} has {value}" for one, number, value in rows if value < LEAST]

    assert not wrong, f"{len(wrong)} of {len(rows)} tokens: {listed(wrong)}"


def _free(asked: dict[str, Any]) -> bool:
    """Whether each token of an answer is the model's likeliest."""
    return (
        asked.get("temperature") == 0 and not bent(asked) and not any(map(asked.get, ("echo", "min_tokens")))
    )


def _values(one: Recording) -> Iterator[float]:
    """The log probabilities of the tokens of an answer."""
    for body in one.bodies:
        for choice in body.get("choices") or ():
            told = choice.get("logprobs") or {}
            rows = [row.get("logprob") for row in told.get("content") or () if isinstance(row, dict)]
            values = (*rows, *(told.get("token_logprobs") or ()))
            yield from (value for value in values if isinstance(value, int | float))


def _apart(one: Answer, choice: Choice) -> str:
    """How the tokens of a text do not join to it; empty where they do, or where a character has several.

    Some vocabularies lose the blanks before words, so that only line ends are counted; special tokens, what
    a stop string cuts, and the marks of reasoning and calls are listed and not shown.
    """
    every = "".join(token for token, _ in choice.tokens)
    shown = "".join(token for token, _ in choice.tokens if not SPECIAL.fullmatch(token))
    text = choice.content
    if one.path == CHAT and one.asked.get("echo"):
        text = text.removeprefix(str(one.asked["messages"][-1].get("content")))
    if TORN in every + text or _parsed(one):
        return ""
    apart = not any(_visible(text) in _visible(joined) for joined in (shown, every))
    more = shown.strip().count("\n") - text.strip().count("\n")
    if apart or (more > 0 and one.path == COMPLETIONS and choice.finish == ("length",)):
        return f"{shown[-80:]!r}, the text is {text[-80:]!r}"
    return ""


def _visible(text: str) -> str:
    return "".join(text.split())


def _parsed(one: Answer) -> bool:
    """Whether a parser of calls reads along in a stream: what it holds back comes without its tokens."""
    return one.path == CHAT and one.streams and bool(one.asked.get("tools"))


def _read(recordings: Recordings, path: str) -> list[Recording]:
    return [one for one in recordings.of("") if one.request.path == path and answer_of(one)]


def _scored(recordings: Recordings) -> list[Recording]:
    asked = _read(recordings, CHAT)
    return [one for one in asked if one.request.json.get("logprobs") and one.request.json.get("top_logprobs")]


def _entries(one: Recording) -> Iterator[dict[str, Any]]:
    """What an answer of chat lists for its tokens, or a response at its end."""
    if one.request.path == RESPONSES:
        yield from listed_in(response_objects(one.bodies, one.request.streams)[-1])
        return
    for body in one.bodies:
        for choice in body.get("choices") or ():
            yield from ((choice.get("logprobs") or {}).get("content")) or ()


def _fault(row: dict[str, Any], server: Server) -> str:
    """How a token's value differs from its entries, or is none; empty where it is as it should be."""
    tops = row.get("top_logprobs") or ()
    odd = [one.get("logprob") for one in (row, *tops) if not server.is_logprob(one.get("logprob"))]
    if odd:
        return f"{row.get('token')!r} has {odd[0]!r}, which is no log probability"
    own, value = [top["logprob"] for top in tops if top.get("token") == row.get("token")], row["logprob"]
    if not own or any(abs(value - other) <= SAME for other in own):
        return ""
    return f"{row['token']!r} has {value}, listed with {own[0]}"
