"""Answers mutilated at random, every one of a run in another way at once: does a check crash on any?

    python -m tests.defects.crashes --seeds 40

A check that crashes says nothing of the server, and a server whose every answer is malformed must not be
undecided. One that crashes on an answer which its schema forbids is a failure that names the answer
(`declare/wholeness.py`); whatever crash is left is a hole in the bones or in the schemas.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.wire.failure import Failure
from tests.defects import matrix
from tests.defects.judging import verdict_of
from tests.defects.mutations import is_stream
from tests.defects.mutators import altered, paths_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.wire.recording import Recording
    from tests.defects.judging import View

FIELDS = ("dropped", "null", "retyped", "emptied", "last-gone")
BODIES = (
    b"",
    b"[]",
    b"null",
    b"{}",
    b"5",
    b'"hello"',
    b"<html>welcome</html>",
    b'{"choices": []}',
    b"\xff\xfe{",
)
EVENTS = (
    "[1, 2]",
    "5",
    "null",
    '"x"',
    "nonsense",
    '{"choices": 5}',
    '{"choices": [null]}',
    '{"error": "x"}',
    "{}",
)
METRICS = ("", "nonsense {", "vllm:a NaN\n", 'vllm:num_requests_running{} -Inf\nvllm:z_bucket{le="x"} 1\n')
FAILURES = (
    Failure.TRUNCATED,
    Failure.RESET,
    Failure.PROTOCOL,
    Failure.TIMEOUT_TOTAL,
    Failure.TIMEOUT_SILENCE,
)
#: How many of a hundred recordings are left as they were.
WHOLE = 40


def mutilated(view: View, seed: int) -> View:
    """The recordings, most of them broken in some way that the seed and their key choose."""
    changed = {key: _mutilated(one, _dice(f"{seed} {key}")) for key, one in view.recordings.items()}
    return replace(view, recordings=changed)


def crashes(view: View) -> list[str]:
    """The checks that crash on these recordings, each with why."""
    found = []
    for check in matrix.recorded_only():
        _, why = verdict_of(check, view)
        if why.startswith("the check crashed"):
            found.append(f"{check.key}: {why}")
    return found


def _dice(seed: str | float) -> random.Random:
    return random.Random(seed)  # noqa: S311 - the same again for the same seed


def _mutilated(one: Recording, chance: random.Random) -> Recording:
    if one.status is None or one.aborted or chance.randrange(100) < WHOLE:
        return one
    if one.metrics_after is not None and chance.randrange(3) == 0:
        return one.with_response(metrics_after=chance.choice(METRICS))
    if chance.randrange(6) == 0:
        return _cut_off(one, chance)
    way = _stream if is_stream(one) else _whole
    return way(one, chance)


def _cut_off(one: Recording, chance: random.Random) -> Recording:
    """What the connection let through, at times not even a head."""
    failure = chance.choice(FAILURES)
    if chance.randrange(4) == 0:
        return one.with_response(status=None, headers=(), chunks=(), error=str(failure), failure=failure)
    body = one.body[: chance.randrange(len(one.body) + 1)]
    return one.with_response(chunks=((one.seconds, body),), error=str(failure), failure=failure)


def _whole(one: Recording, chance: random.Random) -> Recording:
    body = one.body
    if chance.randrange(4) == 0:
        body = chance.choice((*BODIES, body[: len(body) // 2]))
    else:
        body = _field(body.decode(errors="replace"), chance).encode()
    return one.with_response(chunks=((one.seconds, body),))


def _stream(one: Recording, chance: random.Random) -> Recording:
    events = [(event.at, event.name, event.data) for event in one.events]
    at = chance.randrange(len(events)) if events else 0
    way = chance.choice(("cut", "unmarked", "odd", "empty", "field", "field", "every", "every", "torn"))
    if way == "cut":
        events = events[:at]
    elif way == "unmarked":
        events = [event for event in events if event[2] != "[DONE]"]
    elif way == "odd":
        events[at:at] = [(0.0, "", chance.choice(EVENTS))]
    elif way == "empty":
        events = events[-1:]
    elif events:
        seed = chance.random()
        events = [
            (when, name, _field(data, _dice(seed)) if way == "every" or number == at else data)
            for number, (when, name, data) in enumerate(events)
        ]
    chunks = [(when, _written(name, data)) for when, name, data in events]
    if way == "torn" and chunks:
        chunks[-1] = (chunks[-1][0], chunks[-1][1][:-5])
    return one.with_response(chunks=tuple(chunks))


def _written(name: str, data: str) -> bytes:
    lines = [*([f"event: {name}"] if name else []), f"data: {data}", "", ""]
    return "\n".join(lines).encode()


def _field(text: str, chance: random.Random) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    paths = sorted({path for path, _ in paths_of(value)})
    if not paths:
        return text
    altered(value, chance.choice(paths), chance.choice(FIELDS))
    return json.dumps(value)


def main(argv: Sequence[str] | None = None) -> int:
    """Print every crash; 1 when there is any."""
    parser = argparse.ArgumentParser(prog="python -m tests.defects.crashes", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args(argv)
    total = 0
    for seed in range(options.first, options.first + options.seeds):
        found = crashes(mutilated(matrix.healthy(), seed))
        total += len(found)
        print(f"seed {seed}: {len(found)} crashes", *found, sep="\n    ", flush=True)
    return bool(total)


if __name__ == "__main__":
    sys.exit(main())
