"""From the text that the persona wants to say to the tokens and pieces of text of one choice."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.persona.order import unlikely_pairs
from pytest_vllm.sim.tokens.tokenizer import EOS, Tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_vllm.sim.check.sampling import Sampling
    from pytest_vllm.sim.settings import Settings

BANNED, FORCED = -50.0, 50.0
UNLIKELY, FAR_DOWN = 0.004, 57
#: What logits have beyond log probabilities.
LOGITS = 21.5


@dataclass
class Output:
    """One choice, complete.

    `pieces[i]` is the text that becomes visible with token i; text that might still turn out to be a stop
    string is held back, as vLLM does. `stop_reason` is the stop string or token id.
    """

    ids: list[int]
    pieces: list[str]
    finish: str
    stop_reason: str | int | None = None

    @property
    def text(self) -> str:
        """All of the text."""
        return "".join(self.pieces)


def produce(
    text: str | list[str], filler: Callable[[], Iterator[str]], sampling: Sampling, tokens: Tokenizer
) -> Output:
    """Turn a text into an output under the request's sampling parameters; a list sets where tokens end.

    `filler` gives endless further text, for requests that go on after the end.
    """
    ids, finish, reason = _tokens(text, filler, sampling, tokens)
    return _visible(ids, finish, reason, sampling, tokens)


def _tokens(
    text: str | list[str], filler: Callable[[], Iterator[str]], sampling: Sampling, tokens: Tokenizer
) -> tuple[list[int], str, int | str | None]:
    choose = _Chooser(sampling, tokens)
    pieces = [text] if isinstance(text, str) else text
    source = choose.source([id_ for piece in pieces for id_ in tokens.encode(piece)], filler)
    ids: list[int] = []
    while len(ids) < sampling.max_tokens:
        may_end = len(ids) >= sampling.min_tokens
        id_ = choose.next(source, may_end=may_end and not sampling.ignore_eos, may_stop=may_end)
        ids.append(id_)
        if id_ == EOS and may_end and not sampling.ignore_eos:
            return ids, "stop", EOS if sampling.beams else None  # a beam names even the model's own end
        if id_ in sampling.stop_token_ids and may_end:
            return ids, "stop", id_
        if sampling.repetition and _repeats(ids, sampling.repetition):
            return ids, "repetition", "repetition_detected"
        if sampling.stop and len(ids) > sampling.min_tokens and len(ids) % 16 == 0:
            tail = tokens.decode(ids[max(sampling.min_tokens, len(ids) - 96) :])  # before that none ends it
            if any(stop in tail for stop in sampling.stop):
                break
    return ids, "length", None


def _repeats(ids: list[int], wanted: dict[str, int]) -> bool:
    """Whether the last tokens are one pattern again and again, as often as a request wants to see it."""
    least, times = max(1, wanted.get("min_pattern_size") or 0), wanted.get("min_count") or 0
    for size in range(least, (wanted.get("max_pattern_size") or 0) + 1):
        tail = ids[-size * times :]
        if len(tail) == size * times and tail == tail[:size] * times:
            return True
    return False


class _Chooser:
    """Applies biases, allowed tokens and bad words to the persona's tokens."""

    def __init__(self, sampling: Sampling, tokens: Tokenizer) -> None:
        self.tokens = tokens
        self.allowed = sorted(set(sampling.allowed_token_ids or ()))
        forced = [(bias, id_) for id_, bias in sampling.logit_bias.items() if bias >= FORCED]
        self.forced = max(forced)[1] if forced else None
        self.banned = {id_ for id_, bias in sampling.logit_bias.items() if bias <= BANNED}
        self.bad_words = sampling.bad_words
        spelt = [tokens.encode(text) for word in self.bad_words for text in (word, f" {word.lstrip()}")]
        self.worded = {ids[0] for ids in spelt if len(ids) == 1}
        self.stops = frozenset(sampling.stop_token_ids)
        self.given = 0
        penalties = (sampling.frequency_penalty, sampling.presence_penalty, sampling.repetition_penalty - 1)
        self.varies = not sampling.greedy or max(penalties) > 0
        #: A penalty is on what was said before: the first token is the one that comes without it.
        self.begin = 1 if sampling.greedy else 0

    def source(self, ids: list[int], filler: Callable[[], Iterator[str]]) -> Iterator[int]:
        """The persona's tokens, then the end, then filler for ever."""
        if self.bad_words:
            text = self.tokens.decode(ids, skip_specials=False)
            for word in self.bad_words:
                text = text.replace(word, "it")
            ids = self.tokens.encode(text)
        yield from ids
        yield EOS
        for text in filler():
            yield from self.tokens.encode(text)

    def next(self, source: Iterator[int], *, may_end: bool, may_stop: bool) -> int:
        """The next token; the end, and what else stops the answer, only where it may come."""
        self.given += 1
        barred = (set() if may_stop else self.stops) | (set() if may_end else {EOS})
        if self.forced is not None and self.forced not in barred:
            return self.forced
        if self.allowed:
            wanted = next(source)
            out = barred | self.worded | self.banned
            usable = [id_ for id_ in self.allowed if id_ not in out] or self.allowed
            turn = (self.given - self.begin) % len(usable) if self.varies else 0
            return wanted if wanted in usable else usable[turn]
        wanted = next(source)
        while wanted in barred or wanted in self.banned:
            wanted = next(source)
        return wanted


def _visible(
    ids: list[int], finish: str, reason: str | int | None, sampling: Sampling, tokens: Tokenizer
) -> Output:
    shown = ids[:-1] if finish == "stop" and not sampling.include_stop else ids
    pieces = tokens.pieces(shown, skip_specials=sampling.skip_specials)
    pieces += [""] * (len(ids) - len(shown))
    if not sampling.stop:
        return Output(ids, pieces, finish, reason)
    held = 0 if sampling.include_stop else max(map(len, sampling.stop)) - 1
    return _until_stop(Output(ids, pieces, finish, reason), sampling, held)


def _until_stop(output: Output, sampling: Sampling, held: int) -> Output:
    text, out = "", 0
    pieces: list[str] = []
    for number, piece in enumerate(output.pieces):
        checked = len(text)
        text += piece
        found = _first_stop(text, checked, sampling) if number >= sampling.min_tokens else None
        if found is not None:
            at, stop = found
            text = text[: at + (len(stop) if sampling.include_stop else 0)]
            return Output(output.ids[: number + 1], [*pieces, text[out:]], "stop", stop)
        upto = max(out, len(text) - held)
        pieces.append(text[out:upto])
        out = upto
    pieces[-1] += text[out:]
    return Output(output.ids, pieces, output.finish, output.stop_reason)


def _first_stop(text: str, checked: int, sampling: Sampling) -> tuple[int, str] | None:
    for stop in sampling.stop:
        at = text.find(stop, max(0, checked - len(stop) + 1))
        if at >= 0:
            return at, stop
    return None


def behind(prompt: list[int], ids: list[int]) -> tuple[list[int], int]:
    """The ids of an answer behind the last one of its prompt, and the place at which the answer begins."""
    return [*prompt[-1:], *ids], len(prompt[-1:])


def logprobs(
    ids: list[int], position: int, number: int, tokens: Tokenizer, settings: Settings
) -> dict[int, Any]:
    """Log probabilities at one position, {id: (logprob, rank)}: the chosen token first, `number` in all.

    Deterministic, at most zero, and the probabilities of the candidates stay below one; logits where the
    server was told so. A token is as likely in an answer as in a prompt that holds that answer: `ids` of an
    answer begin with the prompt's last one (`behind`).
    """
    found = _chances(ids, position, number, tokens, settings.seed)
    if not str(settings.args.get("logprobs_mode")).endswith("_logits"):
        return found
    return {id_: (round(chance + LOGITS, 6), rank) for id_, (chance, rank) in found.items()}


def _chances(ids: list[int], position: int, number: int, tokens: Tokenizer, seed: int) -> dict[int, Any]:
    chosen = ids[position]
    rng = random.Random(  # noqa: S311 - repeatable, not secret
        f"{seed}/{chosen}/{ids[position - 1] if position else -1}"
    )
    best = 0.55 + 0.44 * rng.random()
    found = {chosen: (round(math.log(best), 6), 1)}
    left, rank = 1 - best, 2
    if position and (ids[position - 1], chosen) in unlikely_pairs(tokens):
        found = {chosen: (round(math.log(UNLIKELY), 6), FAR_DOWN)}
        left, rank, number = 1 - UNLIKELY, 1, number + bool(number)
    while len(found) < max(1, number):
        id_ = rng.randrange(64, tokens.size)
        if id_ in found:
            continue
        share = left * 0.5
        found[id_] = (round(math.log(share), 6) if share > 1e-300 else -690.0, rank)
        left, rank = left - share, rank + 1
    return found
