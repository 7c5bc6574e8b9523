"""An exchange whose client was held up, and had something to do at a moment, is recorded again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.wire.recording import Recording, Request
from tests.unit.wire.test_record import Run, planned

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from pytest_vllm.run.plan import Planned
    from tests.unit.wire.fake import Call


def held_up_once(pause: float) -> Callable[[Call], Awaitable[None]]:
    """A server of this process that keeps all of it from running, at the first request."""
    count = iter(range(9))

    async def answer(call: Call) -> None:
        if call.path == "/metrics":
            await call.answer({}, 404)
            return
        if (number := next(count)) == 0:
            time.sleep(pause)  # noqa: ASYNC251 - it is what is tested
        await call.answer({"said": number})

    return answer


@pytest.mark.parametrize(("timed", "pause", "answer"), [(True, 0.4, 1), (True, 0.05, 0), (False, 0.4, 0)])
def test_what_a_client_does_in_time_is_done_again_when_it_was_held_up(
    tmp_path: Path, timed: bool, pause: float, answer: int
) -> None:
    """It was to leave at a moment, and could not; what has no such moment is taken as it came."""

    def ask(one: Planned, done: Mapping[str, Recording]) -> Request:
        return Request("POST", f"/{one.key}", json={}, timeout=5.0 if timed else None)

    record = Run(tmp_path)
    record([planned("left", alone=True)], held_up_once(pause), build=ask)

    assert [call.path for call in record.calls].count("/left") == answer + 1
    assert record.store.get("left").ok == {"said": answer}
    assert record.progress == [("left", 1, 1)]
