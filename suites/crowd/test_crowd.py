"""What one request asks for is kept while unlike requests are computed in the same steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recording, Recordings, Server, check, error_in, listed, need, observe, only_if

from ..oracle.answers import Answer, answer_of  # noqa: TID252 - suites lie together
from ..oracle.drift import ROUNDED, SAME, per_token  # noqa: TID252 - suites lie together
from ..oracle.ties import excuse  # noqa: TID252 - suites lie together
from .kinds import DRAWN, ENDS, FORMS, MASKS, NARROWED, PENALTIES, SCORED, TOKENS, exact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Fault = Callable[[str, Answer], str]

MIXED = "fault:vllm-project/vllm/issues/9910"
BATCHED = "fault:vllm-project/vllm/issues/27034"
SCORES = "fault:vllm-project/vllm/issues/11778"
SEEDS = "fault:vllm-project/vllm/issues/51226"
NEEDS = ("completions", "tokenize")
CROWDS = ("crowd.short", "crowd.beside-long")
ALONE = "crowd.alone"
EXCHANGES = [f"{prefix}[" for prefix in (ALONE, *CROWDS)] + ["crowd.wild["]


@check("crowd.alone", MUST, spec=MIXED, needs=NEEDS, exchanges=[f"{ALONE}["])
def test_alone(vllm_recordings: Recordings) -> None:
    """Each of the unlike requests gets by itself what only it can get."""
    judged = [one for one in vllm_recordings.of(f"{ALONE}[") if one.status == 200 and not _refused(one)]
    only_if(judged, "none of these requests was answered: this server refuses them")
    wrong = []
    for one in judged:
        kind, answer = kind_of(one.key), answer_of(one)
        need(answer, f"{one.key} cannot be read: {one.text[:80]}")
        faults = [_inexact] if kind in (MASKS | ENDS | FORMS) else [_unlikely] if kind in NARROWED else []
        wrong += [f"{kind}: {fault}" for of in faults if answer and (fault := of(kind, answer))]

    assert not wrong, listed(wrong)


@check("crowd.masks", MUST, spec=MIXED, needs=NEEDS, exchanges=EXCHANGES)
def test_masks(vllm_recordings: Recordings) -> None:
    """Biases, allowed tokens and bad words bind their request beside unlike ones."""
    _judge(vllm_recordings, MASKS, _inexact)


@check("crowd.ends", MUST, spec=MIXED, needs=NEEDS, exchanges=EXCHANGES)
def test_ends(vllm_recordings: Recordings) -> None:
    """A request ends where it said, by string, id or number, beside unlike ones."""
    _judge(vllm_recordings, ENDS, _inexact)


@check("crowd.forms", MUST, spec=MIXED, needs=(*NEEDS, "structured-output"), exchanges=EXCHANGES)
def test_forms(vllm_recordings: Recordings) -> None:
    """A constraint binds its own request beside unlike ones."""
    _judge(vllm_recordings, FORMS, _inexact)


@check("crowd.penalties", MUST, spec=MIXED, needs=NEEDS, exchanges=EXCHANGES)
def test_penalties(vllm_recordings: Recordings) -> None:
    """A penalty breaks a repetition beside requests that have none."""
    _judge(vllm_recordings, PENALTIES, _repeating, _hardly_varied)


@check("crowd.narrowed", MUST, spec=MIXED, needs=(*NEEDS, "logprobs"), exchanges=EXCHANGES)
def test_narrowed(vllm_recordings: Recordings) -> None:
    """What leaves only the likeliest token does so beside requests that leave more."""
    _judge(vllm_recordings, NARROWED, _unlikely)


@check("crowd.answers", MUST, spec=BATCHED, needs=(*NEEDS, "logprobs"), exchanges=EXCHANGES)
def test_answers(vllm_recordings: Recordings) -> None:
    """A greedy answer is the same alone and beside unlike requests, near-ties aside."""
    wrong = []
    for one, alone in _pairs(vllm_recordings, SCORED):
        for mine, theirs in zip(one.choices, alone.choices, strict=False):
            tied = mine.text == theirs.text or excuse([theirs, mine], mine, theirs)
            wrong += [] if tied else [f"{one.key}: {mine.text[:60]!r}, alone {theirs.text[:60]!r}"]

    assert not wrong, listed(wrong)


@check("crowd.scores", MUST, spec=SCORES, needs=(*NEEDS, "logprobs"), exchanges=EXCHANGES)
def test_scores(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """Scores are the same alone and beside unlike requests, but for rounding."""
    apart = {}
    for one, alone in _pairs(vllm_recordings, SCORED):
        both = list(_shared(one, alone))
        need(both, f"{one.key} and {alone.key} list no token that is the same")
        apart[one.key] = per_token(both)
    observe("nats per token between beside and alone", f"{max(apart.values()):.3f} at most")
    limit = SAME if vllm_server.simulated else ROUNDED
    wrong = [f"{key}: {nats:.2f}" for key, nats in apart.items() if nats > limit]

    assert not wrong, f"nats per token between beside and alone: {listed(wrong)}"


@check("crowd.reports", MUST, spec=MIXED, needs=(*NEEDS, "logprobs"), exchanges=EXCHANGES)
def test_reports(vllm_recordings: Recordings) -> None:
    """A request gets as many tokens and candidates beside unlike ones as alone.

    What a constraint leaves may be written in other tokens of the same text, and a chat may end by itself.
    """
    wrong = []
    for one, alone in _pairs(vllm_recordings, {**SCORED, **NARROWED}):
        mine, theirs = _counts(one), _counts(alone)
        free = kind_of(one.key) == "chat" and one.choices[0].text != alone.choices[0].text
        wrong += [f"{one.key}: {mine}, alone {theirs}"] if mine != theirs and not free else []

    assert not wrong, f"(tokens, listed, candidates) of each choice: {listed(wrong)}"


@check("crowd.seeds", MUST, spec=SEEDS, needs=(*NEEDS, "logprobs"), exchanges=EXCHANGES)
def test_seeds(
    vllm_recordings: Recordings, completions_seed_first: Recording, completions_seed_again: Recording
) -> None:
    """Half of the texts that a seed draws alone it draws beside others, at least."""
    first, again = (answer_of(one) for one in (completions_seed_first, completions_seed_again))
    need(first and again and _begun(first) == _begun(again), "a seed repeats nothing when it is asked twice")
    wrong = []
    for one, alone in _pairs(vllm_recordings, DRAWN):
        same = [a == b for a, b in zip(_begun(one), _begun(alone), strict=True)]
        wrong += [] if 2 * sum(same) >= len(same) else [f"{one.key}: {_begun(one)}, alone {_begun(alone)}"]

    assert not wrong, listed(wrong)


def _judge(
    recordings: Recordings, kinds: Iterable[str], fault_of: Fault, unfit_of: Fault | None = None
) -> None:
    """Fail where a request of these kinds is wrong beside others; Undecided where it is wrong alone."""
    wrong = []
    for one, alone in _pairs(recordings, kinds):
        kind = kind_of(alone.key)
        unfit = (unfit_of or fault_of)(kind, alone)
        fault = "" if unfit else fault_of(kind, one) or _other(kind, one, alone)
        wrong += [f"{one.key}: {fault}"] if fault else []
        need(not unfit, f"{alone.key}: {unfit}")

    assert not wrong, listed(wrong)


def _other(kind: str, one: Answer, alone: Answer) -> str:
    """How an answer differs from the one that it gets alone, where no word of it is the model's."""
    texts = [[choice.text for choice in answer.choices] for answer in (one, alone)]
    return f"{texts[0]}, alone {texts[1]}"[:120] if kind in MASKS and texts[0] != texts[1] else ""


def _pairs(recordings: Recordings, kinds: Iterable[str]) -> Iterator[tuple[Answer, Answer]]:
    """Answers to requests of these kinds, beside others and alone. Raises NotRun where none was answered."""
    found = False
    for kind in kinds:
        alone = recordings.get(f"{ALONE}[{kind}]")
        if alone.status is None or _refused(alone):
            continue
        told = answer_of(alone)
        need(told, f"{alone.key} cannot be read: {alone.status} {alone.text[:80]}")
        for one in _beside(recordings, kind):
            one.answered()
            need(not one.shed, f"{one.key} was shed with {one.status}")
            answer = answer_of(one)
            assert answer, f"{one.key}: {one.status or one.error} {one.text[:120]}, alone it is answered"
            found = True
            yield answer, told  # type: ignore[misc]
    only_if(found, "none of these requests was answered: this server refuses them")


def _refused(one: Recording) -> bool:
    """Whether a server says that it does not do this, in a stream perhaps by its first event."""
    if one.status != 200:
        return one.status == 400
    return one.request.streams and any(error_in(part) for part in one.bodies)


def _beside(recordings: Recordings, kind: str) -> list[Recording]:
    """The recordings of a kind beside others."""
    keys = {f"{crowd}[{kind}]" for crowd in CROWDS}
    return [one for one in recordings.of("crowd.") if one.key in keys]


def kind_of(key: str) -> str:
    """The kind of a request, by the key of its recording."""
    return key.partition("[")[2].rstrip("]")


def _inexact(kind: str, answer: Answer) -> str:
    """What is wrong with an answer that is determined; empty when nothing is."""
    texts = [choice.text for choice in answer.choices]
    if kind not in TOKENS and not exact(kind, texts):
        return f"{texts}"[:100]
    tokens = answer.usage[1] if answer.usage else None
    right = TOKENS.get(kind, answer.asked["max_tokens"])
    if (kind in TOKENS or kind in MASKS) and tokens not in (None, right):
        return f"{tokens} tokens for {right}: {texts}"[:100]
    end = ("length",) if kind in MASKS else ("stop",)
    ends = {choice.finish for choice in answer.choices}
    return "" if ends == {end} else f"ends with {sorted(ends)}, not {end}"


def _repeating(kind: str, answer: Answer) -> str:
    """The one token that a penalised answer repeats; empty where it has two."""
    del kind
    tokens = [token for token, _ in answer.choices[0].tokens]
    return "" if len(set(tokens)) > 1 else f"{tokens}"[:100]


def _hardly_varied(kind: str, answer: Answer) -> str:
    """What is wrong with an answer that a penalty varies; one that varies by a hair may not beside others."""
    tokens = [token for token, _ in answer.choices[0].tokens]
    rare = min((tokens.count(token) for token in set(tokens)), default=0) < 2
    return _repeating(kind, answer) or ("varied once alone" if rare else "")


def _unlikely(kind: str, answer: Answer) -> str:
    """A token that is not the likeliest of those listed; empty where there is none."""
    del kind
    for token, candidates in answer.choices[0].tokens:
        best = max(candidates.values(), default=0.0)
        if token in candidates and candidates[token] < best - SAME:
            return f"{token!r} at {candidates[token]:.2f}, the likeliest is at {best:.2f}"
    return ""


def _shared(one: Answer, alone: Answer) -> Iterator[tuple[float, float]]:
    """Scores of the same token at the same place behind the same words, of answers and of prompts."""
    for mine, theirs in zip(one.choices, alone.choices, strict=False):
        for (token, candidates), (other, known) in zip(mine.tokens, theirs.tokens, strict=False):
            yield from ((candidates[text], known[text]) for text in candidates.keys() & known.keys())
            if token != other:
                break


def _counts(answer: Answer) -> list[tuple[Any, ...]]:
    spent = answer.usage[1] if answer.usage else None
    return [(spent, len(one.tokens), [len(tops) for _, tops in one.tokens][:3]) for one in answer.choices]


def _begun(answer: Answer) -> list[list[str]]:
    """The first two tokens of each choice."""
    return [[token for token, _ in choice.tokens[:2]] for choice in answer.choices]
