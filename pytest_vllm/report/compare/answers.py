"""Greedy answers as prints: what was asked, how the prompt was counted, and where two texts would part.

Of a request with `temperature` 0 the same server gives the same text, but for near ties that another batch
rounds otherwise. So it is kept whether an answer had the server to itself, and where two tokens were close.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm.report.compare.prints import chain, print_of
from pytest_vllm.wire.recording import Undecided

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_vllm.wire.recording import Recording

#: Two best tokens whose log probabilities are closer than this may change places in another batch.
NEAR = 0.25
#: Close calls of an answer that are kept.
MOST_NEAR = 16
#: Prompts whose own log probabilities are kept, and values of each.
MOST_SCORED, MOST_VALUES = 16, 40
#: Fields that hold the words of an answer, in whole answers and in the deltas of streams.
_WORDS = frozenset(
    {
        "content",
        "reasoning",
        "reasoning_content",
        "arguments",
        "name",
        "text",
        "thinking",
        "partial_json",
        "delta",
    }
)
#: What repeats, in a stream's last events, what its deltas have said.
_AGAIN = (".done", ".completed", ".incomplete", ".added")


def greedy(recording: Recording) -> bool:
    """Whether the request fixes the text of its answer, and an answer came whole."""
    body = recording.request.json
    if not isinstance(body, dict) or body.get("temperature") != 0 or body.get("use_beam_search"):
        return False
    return recording.status == 200 and not recording.aborted and not recording.error


def alone(recordings: Iterable[Recording]) -> set[str]:
    """Keys of the exchanges during which no other one ran."""
    spans = sorted((one.sent, one.sent + one.seconds, one.key) for one in recordings if one.status)
    found = set()
    latest = float("-inf")
    for place, (begin, end, key) in enumerate(spans):
        after = spans[place + 1][0] if place + 1 < len(spans) else float("inf")
        if begin >= latest and after >= end:
            found.add(key)
        latest = max(latest, end)
    return found


def texts(recordings: Iterable[Recording], lone: set[str]) -> dict[str, list[Any]]:
    """The greedy answers of a run, by the print of what was asked; equal requests share an entry.

    Each entry, as `Said` reads it: the key of the first exchange that asked it, the prompt's tokens as
    `usage` counts them, marks (`t`: tokens, not words; `l`: one had the server to itself), chain -> how
    often, and the tokens that were close calls.
    """
    found: dict[str, Said] = {}
    for one in recordings:
        if not greedy(one):
            continue
        try:
            values = _values(one)
        except ValueError:
            continue
        tokens, near = _tokens(values)
        units = tokens or " ".join(_texts(values)).split()
        if not units:
            continue
        asked = print_of([one.request.path, one.request.json])
        entry = found.setdefault(asked, Said(one.key, _prompt_tokens(values) or 0, by_token=bool(tokens)))
        said = chain(units)
        entry.texts[said] = entry.texts.get(said, 0) + 1
        entry.lone = entry.lone or one.key in lone
        entry.near = entry.near or near[:MOST_NEAR]
    return {asked: entry.plain() for asked, entry in found.items()}


@dataclass
class Said:
    """What a server answered to one greedy request, as prints."""

    key: str
    prompt: int = 0
    by_token: bool = False
    lone: bool = False
    texts: dict[str, int] = field(default_factory=dict)
    near: list[int] = field(default_factory=list)

    def plain(self) -> list[Any]:
        """As a list of JSON values."""
        marks = "t" * self.by_token + "l" * self.lone
        texts: Any = (
            self.texts if len(self.texts) > 1 or set(self.texts.values()) != {1} else next(iter(self.texts))
        )
        return [self.key, self.prompt, marks, texts, *([self.near] if self.near else [])]

    @classmethod
    def of(cls, row: Sequence[Any]) -> Said:
        """What `plain` gave."""
        key, prompt, marks, texts, *near = row
        texts = {texts: 1} if isinstance(texts, str) else dict(texts)
        return cls(key, prompt, "t" in marks, "l" in marks, texts, near[0] if near else [])


def scored(recordings: Mapping[str, Recording], lone: set[str]) -> dict[str, list[Any]]:
    """Log probabilities of prompts that were scored alone: key -> [print of the request, value, …]."""
    found: dict[str, list[Any]] = {}
    for key in sorted(lone & recordings.keys()):
        body = recordings[key].request.json
        if len(found) >= MOST_SCORED or not isinstance(body, dict) or not body.get("echo"):
            continue
        try:
            values = recordings[key].json["choices"][0]["logprobs"]["token_logprobs"]
        except (LookupError, TypeError, ValueError, Undecided):
            continue
        numbers = [round(one, 3) for one in values or () if isinstance(one, int | float)]
        if numbers:
            found[key] = [print_of(body), *numbers[:MOST_VALUES]]
    return found


def prompts(recordings: Mapping[str, Recording]) -> str:
    """A print of how chats are rendered: the tokens that `/tokenize` gives of them; empty without any."""
    rendered = {}
    for key, one in sorted(recordings.items()):
        body = one.request.json
        if (
            one.request.path == "/tokenize"
            and one.status == 200
            and isinstance(body, dict)
            and "messages" in body
        ):
            try:
                rendered[print_of(body)] = json.loads(one.body)["tokens"]
            except (ValueError, LookupError, TypeError):
                rendered[print_of(body)] = key
    return print_of(rendered) if rendered else ""


def _values(recording: Recording) -> list[Any]:
    """The JSON values of an answer: one, or those of its events."""
    if not recording.header("content-type").startswith("text/event-stream"):
        return [json.loads(recording.body)]
    return [
        json.loads(one.data) for one in recording.events if not one.is_done and not one.name.endswith(_AGAIN)
    ]


def _texts(values: Sequence[Any]) -> list[str]:
    """The words of an answer, deltas joined: one text for each place that they come from."""
    places: dict[str, list[str]] = {}
    for value in values:
        for place, text in _places(value, ""):
            places.setdefault(place, []).append(text)
    return ["".join(places[place]) for place in sorted(places)]


def _places(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        # pieces name their own place; in whole answers it is where they stand
        mark = f"{place}#{value['index']}" if isinstance(value.get("index"), int) else place
        for name, inner in value.items():
            if isinstance(inner, str):
                if name in _WORDS:
                    yield f"{mark}.{name.removesuffix('_content')}", inner
            elif name not in ("logprobs", "usage", "error", "tools", "prompt_logprobs"):
                yield from _places(inner, mark)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _places(inner, f"{place}/{number}")


def _tokens(values: Sequence[Any]) -> tuple[list[str], list[int]]:
    """The generated tokens of the first choice, where the answer tells each, and which were close calls."""
    tokens: list[str] = []
    near: list[int] = []
    for value in values:
        choices = value.get("choices") if isinstance(value, Mapping) else None
        probs = (
            choices[0].get("logprobs")
            if isinstance(choices, list) and choices and isinstance(choices[0], Mapping)
            else None
        )
        if not isinstance(probs, Mapping):
            continue
        for token, rivals in _steps(probs):
            best = sorted(rivals, reverse=True)[:2]
            if len(best) == 2 and best[0] - best[1] < NEAR:
                near.append(len(tokens))
            tokens.append(token)
    return tokens, near


def _steps(probs: Mapping[str, Any]) -> Iterator[tuple[str, list[float]]]:
    """Each token with the log probabilities of the best at its place, of either API."""
    for one in probs.get("content") or ():
        if isinstance(one, Mapping):
            rivals = [top.get("logprob") for top in one.get("top_logprobs") or () if isinstance(top, Mapping)]
            yield str(one.get("token")), [top for top in rivals if isinstance(top, int | float)]
    tops = probs.get("top_logprobs") or ()
    for place, token in enumerate(probs.get("tokens") or ()):
        at = tops[place] if place < len(tops) and isinstance(tops[place], Mapping) else {}
        yield str(token), [top for top in at.values() if isinstance(top, int | float)]


def _prompt_tokens(values: Sequence[Any]) -> int | None:
    for value in reversed(values):
        inner = value.get("response", value) if isinstance(value, Mapping) else {}
        usage = inner.get("usage") if isinstance(inner, Mapping) else None
        if isinstance(usage, Mapping):
            count = usage.get("prompt_tokens", usage.get("input_tokens"))
            return count if isinstance(count, int) else None
    return None
