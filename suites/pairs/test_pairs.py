"""What is right on its own is right together."""

from __future__ import annotations

from typing import Any

from pytest_vllm import MUST, Case, Recording, Recordings, check, need, only_if, server_errors

from .exchanges import ELSEWHERE, VALUES

CREATE = "openai:chat/create"
VLLM = "vllm:serving/openai_compatible_server/"
ALONE = ("pairs.alone[", "pairs.alone-count[", "streaming.two[", "streaming.batch[")
#: All that a constraint leaves.
KEPT = {
    "json": {'"heron"'},
    "choice": {"heron", "crane"},
    "regex": {f"{number:02}" for number in range(100)},
}


@check("pairs.answered", MUST, spec=CREATE, exchanges=ALONE)
def test_answered(free_row: Case, pairs_free: Recording, vllm_recordings: Recordings) -> None:
    """Two things that are served on their own are served together."""
    pairs_free.answered()
    _refusable(free_row, pairs_free)
    _each_alone(free_row, vllm_recordings, answer_fault)
    fault = answer_fault(free_row["constraint"], pairs_free)

    assert not fault, f"{_named(free_row)}: {fault}"


@check("pairs.counted", MUST, spec=CREATE, needs=["tokenize"], exchanges=(*ALONE, "pairs.count-bare["))
def test_counted(
    free_row: Case, pairs_free: Recording, pairs_count: Recording, vllm_recordings: Recordings
) -> None:
    """A prompt has as many tokens as `/tokenize` counts, whatever else is asked."""
    only_if(pairs_count.status not in (400, 404), f"the count is refused: {pairs_count.text[:120]}")
    need(pairs_free.status == 200, f"answered with {pairs_free.status}")
    right = {pairs_count.ok["count"]}
    if free_row["tools"] == "unused":  # which the server may leave out
        right.add(vllm_recordings.get(f"pairs.count-bare[{free_row.id}]").ok["count"])
    for key in _names(free_row):
        if "unused" not in key:
            counted = vllm_recordings.get(f"pairs.alone-count[{key}]").ok["count"]
            used = _usage(vllm_recordings.get(f"pairs.alone[{key}]")).get("prompt_tokens")
            need(used == counted, f"{key} alone: {used} tokens in the usage, /tokenize counts {counted}")
    used = _usage(pairs_free).get("prompt_tokens")

    assert used in right, f"{_named(free_row)}: {used} tokens in the usage, /tokenize counts {sorted(right)}"


@check("pairs.bound", MUST, spec=VLLM, needs=["completions", "structured-output"], exchanges=ALONE)
def test_bound(bound_row: Case, pairs_bound: Recording, vllm_recordings: Recordings) -> None:
    """A constraint is kept, whatever else is asked."""
    pairs_bound.answered()
    _refusable(bound_row, pairs_bound)
    _each_alone(bound_row, vllm_recordings, answer_fault)
    fault = answer_fault(bound_row["constraint"], pairs_bound)

    assert not fault, f"{_named(bound_row)}: {fault}"


def answer_fault(constraint: str, answer: Recording) -> str:
    """What is wrong with an answer: status, choices, length or constraint; empty when nothing is."""
    asked = answer.request.json
    number = asked.get("n", 1)
    if answer.status != 200:
        return f"{answer.status} {answer.text[:160]}"
    texts = _texts(answer)
    if sorted(texts) != list(range(number)):
        return f"choices {sorted(texts)} for n={number}"
    right, tokens = number * asked["max_tokens"], _usage(answer).get("completion_tokens")
    if asked["ignore_eos"] and tokens != right:
        return f"{right} tokens were asked for, the usage says {tokens}"
    wrong = [text for text in texts.values() if constraint != "none" and text.strip() not in KEPT[constraint]]
    return f"{constraint} is not kept: {wrong[0]!r:.120}" if wrong else ""


@check("pairs.served", MUST, spec="openai:chat/object", needs=["chat"], exchanges=["pairs.alone"])
def test_served(vllm_recordings: Recordings) -> None:
    """No usual request ends in a server error."""
    wrong = server_errors(vllm_recordings.of("pairs.alone"))

    assert not wrong, f"{len(wrong)} requests: {'; '.join(wrong[:3])}"


def _refusable(row: Case, answer: Recording) -> None:
    """Raise NotRun where a server refuses what other suites ask for on its own: drafting ones do."""
    rare = any(row[name] != VALUES[name][0] for name in ELSEWHERE)
    only_if(not rare or answer.status != 400, f"refused: {answer.text[:120]}")


def _each_alone(row: Case, recordings: Recordings, fault_of: Any) -> None:
    """Raise Undecided where one of the things fails by itself: the check of that thing says so."""
    if row["answer"] == "stream" and row["choices"] != "1":  # a pair that has checks of its own
        other = "streaming.two" if row["route"] == "chat" else "streaming.batch"
        texts = _texts(recordings.get(other))
        need(len(texts) == 2 and all(texts.values()), f"{other} fails too: {texts}")
    for key in _names(row):
        alone = recordings.get(f"pairs.alone[{key}]")
        constraint = row["constraint"] if "-constraint-" in key else "none"
        fault = fault_of(constraint, alone)
        need(not fault, f"{key} alone: {fault}")


def _names(row: Case) -> list[str]:
    """The requests that have each of these values alone."""
    return [f"{row['route']}-{name}-{row[name]}" for name in VALUES if name not in ("route", *ELSEWHERE)]


def _named(row: Case) -> str:
    """What a request asked beside the usual."""
    asked = {name: row[name] for name in VALUES if row[name] != VALUES[name][0]}
    return ", ".join(f"{name} {value}" for name, value in asked.items()) or "nothing unusual"


def _usage(recording: Recording) -> dict[str, Any]:
    found = [answer["usage"] for answer in recording.bodies if answer.get("usage")]
    return found[-1] if found else {}


def _texts(recording: Recording) -> dict[int, str]:
    """The text of every choice, by its index."""
    texts: dict[int, str] = {}
    for answer in recording.bodies:
        for choice in answer.get("choices") or ():
            said = choice.get("delta") or choice.get("message") or choice
            thought = said.get("reasoning") or said.get("reasoning_content") or ""
            piece = f"{thought}{said.get('content') or said.get('text') or ''}"
            texts[choice["index"]] = texts.get(choice["index"], "") + piece
    return texts
