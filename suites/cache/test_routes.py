"""What one route tells of the cache, beside what others tell of the same prompts."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

from pytest_vllm import MUST, Recording, Recordings, check, observe, only_if

from ..oracle.answers import CHAT, ROUTES, answer_of, usages  # noqa: TID252 - suites lie together
from ..oracle.likeness import as_chat  # noqa: TID252 - suites lie together
from .scrapes import block
from .told import told, way

if TYPE_CHECKING:
    from collections.abc import Iterator


@check(
    "cache.every.routes",
    MUST,
    spec="vllm:design/prefix_caching/",
    needs=["metrics", "prefix-cache", "cached-tokens"],
    exchanges=["cache.config", "messages.again", "responses.again", "*"],
)
def test_routes(cache_config: Recording, vllm_recordings: Recordings) -> None:
    """A route that tells what was cached finds prompts that other routes find, too."""
    block(cache_config)  # each of several engines has a cache of its own
    ways: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for group in _alike(vllm_recordings):
        if any(count for _, _, count in group):
            for asked_by, key, count in group:
                ways[asked_by].append((key, count))
    only_if(len(ways) > 1, "no prompt was asked over several routes after it was known")
    observe(
        "answers to known prompts", ", ".join(f"{asked_by}: {len(rows)}" for asked_by, rows in ways.items())
    )
    wrong = [
        f"{asked_by}: none of {', '.join(key for key, _ in rows)}"
        for asked_by, rows in ways.items()
        if len(rows) > 1 and not any(count for _, count in rows)
    ]

    assert not wrong, f"found in the cache over other routes, and here never told: {'; '.join(wrong)}"


def _alike(recordings: Recordings) -> Iterator[list[tuple[str, str, int]]]:
    """For each prompt the answers to it that came after another: way, key, cached tokens that are told."""
    prompts: dict[str, list[tuple[Recording, str, int | None]]] = defaultdict(list)
    for one in recordings.of(""):
        answer = answer_of(one) if one.request.path.partition("?")[0] in ROUTES else None
        path, asked = as_chat(answer.path, answer.asked) if answer else ("", {})
        if answer and path == CHAT and set(asked) <= {"model", "messages", "temperature", "max_tokens"}:
            asked_by = way(answer.path, answer.streams)
            counts = [count for usage in usages(one) for count in told(usage)]
            spelt = json.dumps([asked.get("model"), asked["messages"]], sort_keys=True)
            prompts[spelt].append((one, asked_by, counts[-1] if counts else None))
    for rows in prompts.values():
        known = min(one.sent + one.seconds for one, _, _ in rows)
        yield [(asked_by, one.key, n) for one, asked_by, n in rows if n is not None and one.sent > known]
