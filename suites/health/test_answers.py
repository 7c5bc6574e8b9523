"""Answers that are whole, on every route: one that a client cannot read is a failure, whatever its status."""

import re
from collections import defaultdict

from pytest_vllm import MUST, Recordings, check, need, unwhole


@check("answers.whole", MUST, spec="openai:chat/object", exchanges=("health.", "*"))
def test_whole(vllm_recordings: Recordings) -> None:
    """Every 200 is a whole answer: JSON where it is due, choices, an end."""
    answered = [r for r in vllm_recordings.of("") if r.status == 200]
    need(answered, "no request was answered with 200")
    broken: dict[str, list[str]] = defaultdict(list)
    for recording in answered:
        if fault := unwhole(recording):
            broken[re.sub(r"\[\d+\]|\d+ events|event \d+", "…", fault)].append(f"{fault} ({recording.key})")
    kinds = sorted(broken.values(), key=len, reverse=True)
    said = [f"{found[0]}" + (f" and {len(found) - 1} more" if found[1:] else "") for found in kinds[:5]]

    assert not broken, (
        f"{sum(map(len, kinds))} of {len(answered)} answers with status 200 are malformed: {'; '.join(said)}"
    )
