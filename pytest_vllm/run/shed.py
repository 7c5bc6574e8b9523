"""Requests that a server turns away because of what it has in hand: it sheds load, as it was told to.

vLLM does from `--max-num-queued-reqs` and `--max-num-queued-tokens` on, gateways do by rate limits. What is
turned away is asked again a little later, and so is what names the time to come again (`Retry-After`).
A request for several answers at once may be more than such a server ever takes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.wire.again import TURNED_AWAY, again

if TYPE_CHECKING:
    from pytest_vllm.wire.client import WireClient
    from pytest_vllm.wire.recording import Recording, Request
    from pytest_vllm.wire.server import Server

OK = 200
#: Arguments by which vLLM sheds.
LIMITS = ("max-num-queued-reqs", "max-num-queued-tokens")
#: Seconds before what was turned away is asked again; nobody waits longer, whatever `Retry-After` says.
WAITS = (0.3, 1.0, 3.0, 6.0)
#: So many that were turned away each time, and none that was taken later: asking again helps nobody.
HOPELESS = 6
#: How such a refusal is worded; it is no longer than this.
_WORDS = re.compile(
    r"currently busy|backlog limit|too many requests|rate.?limit|overloaded|over capacity"
    r"|temporarily unavailable",
    re.IGNORECASE,
)
_SHORT = 4096


class Shedding:
    """What became of requests that were asked again.

    Args:
        server: a server that is known to shed nothing is not excused.
    """

    def __init__(self, server: Server) -> None:
        """Nothing was turned away yet."""
        self.may = not server.flags_known or any(server.args.get(name) for name in LIMITS)
        self._lost = 0

    async def taken(self, client: WireClient, key: str, request: Request) -> Recording:
        """The answer to a request, which is asked again where it was turned away."""
        return await again(
            lambda: client.send(key, request),
            lambda recording: self._lost < HOPELESS and self.turned_away(recording),
            WAITS,
        )

    def turned_away(self, recording: Recording) -> bool:
        """Whether a server that may shed says that it has too much in hand; in a stream by an event."""
        if not self.may or len(recording.body) > _SHORT or recording.status not in (OK, *TURNED_AWAY):
            return False
        if recording.status == OK and not (recording.request.streams and '"error"' in recording.text):
            return False
        meant = recording.status != OK and recording.request.expect == recording.status
        return not meant and bool(recording.header("retry-after") or _WORDS.search(recording.text))

    def ended(self, recording: Recording) -> str:
        """What is to be said of a request that was asked again; empty for one that is judged as it is."""
        if not self.turned_away(recording):
            self._lost = 0
            return ""
        self._lost += 1
        count = sequences(recording.request)
        if count < 2:
            return ""
        return f"it asks for {count} answers at once, and the server, which sheds load, takes fewer"


def sequences(request: Request) -> int:
    """How many sequences a request is for the engine: prompts times choices."""
    asked = request.json.get("n") if isinstance(request.json, dict) else None
    return request.prompts * max(1, asked if isinstance(asked, int) else 1)
