"""Asks again where a limit of rates, or a server that sheds load, turned a request away."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from pytest_vllm.wire.recording import Recording

#: What is answered to somebody who is to come again later.
TURNED_AWAY = frozenset({429, 503})


async def again(
    ask: Callable[[], Awaitable[Recording]], turned_away: Callable[[Recording], bool], waits: Iterable[float]
) -> Recording:
    """The answer, asked for once more behind each of these seconds as long as it is turned away."""
    recording = await ask()
    for wait in waits:
        if not turned_away(recording):
            break
        await asyncio.sleep(wait)
        recording = await ask()
    return recording
