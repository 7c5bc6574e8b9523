"""What an answer lists for tokens, held to itself: scores twice told, ranks, the prompt's own tokens."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..oracle.answers import CHAT, COMPLETIONS, RESPONSES, answer_of  # noqa: TID252 - suites lie together
from ..oracle.apis import BY_ID, TORN, listed_in, response_objects  # noqa: TID252 - suites lie together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording

SAME = 1e-3
Row = dict[str, dict[str, Any]]


def both(one: Recording) -> Iterator[tuple[str, float | None, float | None]]:
    """Each token with its score, and its score among its candidates, None where it is not one of them."""
    if one.request.path == COMPLETIONS:
        for told in _told(one):
            tops = told.get("top_logprobs") or ()
            for token, own, top in zip(told["tokens"], told["token_logprobs"], tops, strict=False):
                if top and token and TORN not in token and own is not None:
                    yield token, own, top.get(token)
        return
    for row in _entries(one):
        same = [top["logprob"] for top in row.get("top_logprobs") or () if top["token"] == row["token"]]
        if row["token"] and TORN not in row["token"]:
            yield row["token"], row["logprob"], _nearest(same, row["logprob"])


def _nearest(values: list[float], own: float) -> float | None:
    """Of several candidates with one text the one that is meant."""
    return min(values, key=lambda value: abs(value - own), default=None)


def _told(one: Recording) -> Iterator[dict[str, Any]]:
    for body in one.bodies:
        yield from (choice["logprobs"] for choice in body["choices"] if choice.get("logprobs"))


def _entries(one: Recording) -> Iterator[dict[str, Any]]:
    if one.request.path == RESPONSES:
        yield from listed_in(response_objects(one.bodies, one.request.streams)[-1])
        return
    for body in one.bodies:
        for choice in body["choices"]:
            yield from (choice.get("logprobs") or {}).get("content") or ()


def read_lists(one: Recording) -> Iterator[list[Row | None]]:
    """What an answer lists for its prompts, one list for each choice of a completion, one for a chat."""
    for body in one.bodies if one.request.path in (CHAT, COMPLETIONS) else ():
        for holder in (body, *body["choices"]):
            if holder.get("prompt_logprobs"):
                yield holder["prompt_logprobs"]


def read_rows(one: Recording) -> Iterator[Row | None]:
    """The entries of all tokens of an answer's prompts."""
    for rows in read_lists(one):
        yield from rows


def misplaced(row: Row) -> list[tuple[float, int]]:
    """The scores and ranks of a token's candidates, where a likelier one is not before a less likely one."""
    pairs = sorted(((entry["logprob"], entry["rank"]) for entry in row.values()), reverse=True)
    wrong = any(a[0] > b[0] + SAME and a[1] >= b[1] for a, b in pairwise(pairs))
    return pairs if wrong else []


def foreign(one: Recording, rows: list[Row | None]) -> str:
    """How what is listed for a prompt is not its own; empty where it is."""
    asked, answer = one.request.json, answer_of(one)
    prompt = asked.get("prompt")
    several = isinstance(prompt, list) and not all(isinstance(part, int) for part in prompt)
    if answer is None or not answer.usage or several:
        return ""
    if len(rows) != answer.usage[0]:
        return f"{len(rows)} tokens for a prompt of {answer.usage[0]}"
    if isinstance(prompt, list):
        missing = [at for at, row in enumerate(rows) if row and str(prompt[at]) not in row]
        return f"not its own at {missing[:5]}" if missing else ""
    if not isinstance(prompt, str):
        return ""
    said = "".join(str(next(iter(row.values())).get("decoded_token") or "") for row in rows if row)
    plain = prompt.isascii() and TORN not in said and BY_ID not in said
    same = not plain or _letters(said) in _letters(prompt)
    return "" if same else f"reads {said[-40:]!r}, sent was {prompt[-40:]!r}"


def _letters(text: str) -> str:
    """Without blanks, however a vocabulary writes them, and without case."""
    return "".join(text.replace("\u2581", " ").replace("\u0120", " ").split()).casefold()
