"""Wrong answers that no defect names: every field of every kind of answer, broken in every simple way.

    python -m tests.defects.mutations                 every kind of answer; prints what no check noticed
    python -m tests.defects.mutations --kind "POST /v1/chat/completions stream"

Defects are modelled on faults that somebody met. The next fault will be another one, so this asks how many
blind changes are caught: a field is dropped, emptied, retyped, altered, a list shortened or turned round,
in all answers of a kind at once, as a faulty build would do it. What survives is either allowed (`ALLOWED`
says why) or a check that is missing. Judged over recordings of the healthy simulator.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.verdict import Answer, Verdict, decide
from tests.defects import matrix
from tests.defects.judging import judge_changed
from tests.defects.mutators import ALTERATIONS, altered, paths_of
from tests.defects.room import own_pool
from tests.defects.tolerated import allowed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_vllm.wire.recording import Recording
    from tests.defects.judging import View

OK = 200
NOT_GO = {Answer.NO_GO: "no-go", Answer.UNDECIDED: "undecided", Answer.NOTHING_RAN: "undecided"}


@dataclass(frozen=True)
class Mutant:
    """One way in which all answers of a kind are wrong.

    Args:
        kind: method, path without query, and `stream` or the status when it is not 200.
        path: the field, list positions left out: `choices[].message.content`.
        change: name of the alteration.
    """

    kind: str
    path: str
    change: str

    def __str__(self) -> str:
        """As it is printed and as `ALLOWED` names it."""
        return f"{self.kind}  {self.path}  {self.change}"


def kind_of(recording: Recording) -> str:
    """Which kind of answer this is; empty when it is none that can be changed."""
    if recording.status is None or recording.aborted or not recording.body:
        return ""
    path = recording.request.path.partition("?")[0]
    if recording.status != OK:
        return "refused"
    return f"{recording.request.method} {path}{' stream' if is_stream(recording) else ''}"


def is_stream(recording: Recording) -> bool:
    """Whether it was answered by events."""
    return recording.status == OK and recording.header("content-type").startswith("text/event-stream")


def mutants(view: View) -> dict[str, list[Mutant]]:
    """Every mutant of these recordings, by kind."""
    fields: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for recording in view.recordings.values():
        kind = kind_of(recording)
        for value in bodies(recording) if kind else ():
            for path, leaf in paths_of(value):
                fields[kind][path].update(name for name, fits in ALTERATIONS.items() if fits(leaf))
    return {
        kind: [Mutant(kind, path, change) for path in sorted(of_kind) for change in sorted(of_kind[path])]
        for kind, of_kind in sorted(fields.items())
    }


def bodies(recording: Recording) -> Iterator[Any]:
    """The JSON values of an answer: its body, or the data of every event."""
    if is_stream(recording):
        texts = [event.data for event in recording.events if not event.is_done]
    else:
        texts = [recording.text]
    for text in texts:
        try:
            yield json.loads(text)
        except ValueError:
            continue


def broken(view: View, mutant: Mutant) -> View:
    """The recordings as this mutant would have answered."""
    changed = {
        key: _broken(one, mutant) if kind_of(one) == mutant.kind else one
        for key, one in view.recordings.items()
    }
    return replace(view, recordings=changed)


def _broken(recording: Recording, mutant: Mutant) -> Recording:
    if not is_stream(recording):
        body = json.loads(recording.text) if recording.text[:1] in "{[" else None
        if body is None or not altered(body, mutant.path, mutant.change):
            return recording
        at = recording.chunks[-1][0]
        return recording.with_response(chunks=((at, json.dumps(body).encode()),))
    pieces = []
    touched = False
    for event in recording.events:
        text = event.data
        if not event.is_done:
            value = json.loads(text)
            if altered(value, mutant.path, mutant.change):
                touched, text = True, json.dumps(value)
        name = f"event: {event.name}\n" if event.name else ""
        pieces.append((event.at, f"{name}data: {text}\n\n".encode()))
    return recording.with_response(chunks=tuple(pieces)) if touched else recording


def fate_of(mutant: Mutant) -> str:
    """What the gate would say: `no-go`, `undecided`, `advisory`, or `go`, which means nobody noticed."""
    view, results = matrix.healthy(), matrix.healthy_results()
    judged = judge_changed(matrix.recorded_only(), view, results, broken(view, mutant))
    answer = decide(judged).answer
    if answer is not Answer.GO:
        return NOT_GO[answer]
    advised = [sum(row.verdict is Verdict.ADVISORY for row in rows) for rows in (judged, results)]
    return "advisory" if advised[0] > advised[1] else "go"


def main(argv: Sequence[str] | None = None) -> int:
    """Print what no check noticed and is not allowed; 1 when there is any."""
    parser = argparse.ArgumentParser(prog="python -m tests.defects.mutations", description=__doc__)
    parser.add_argument("--kind", action="append", help="only answers of this kind; may be repeated")
    parser.add_argument("--workers", type=int, default=matrix.WORKERS)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th change")
    options = parser.parse_args(argv)
    started = time.monotonic()
    found = mutants(matrix.healthy())
    unknown = set(options.kind or ()) - set(found)
    if unknown:
        parser.error(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(found)}")
    told: Counter[str] = Counter()
    matrix.healthy_results()  # before the processes are forked, so that they share it
    with own_pool(options.workers) as pool:
        for kind in options.kind or found:
            chosen = found[kind][:: options.every]
            fates = dict(zip(chosen, pool.map(fate_of, chosen, chunksize=4), strict=True))
            told.update(fates.values())
            missed = [m for m, fate in fates.items() if fate == "go" and not allowed(str(m))]
            told["missed"] += len(missed)
            print(f"{len(chosen):5} {len(missed):5} unnoticed  {kind}", flush=True)
            for mutant in missed:
                print(f"      {mutant.path}  {mutant.change}")
    tried = sum(told.values()) - told["missed"]
    print(
        f"{tried} blind changes: {told['no-go']} no-go, {told['undecided']} undecided, {told['advisory']} "
        f"advisory, {told['go'] - told['missed']} allowed, {told['missed']} unnoticed; "
        f"{time.monotonic() - started:.0f} s"
    )
    return 1 if told["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
