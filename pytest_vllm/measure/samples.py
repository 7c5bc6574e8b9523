"""One record per request: when what came, how many tokens, what went wrong.

Definitions. TTFT: from sending to the first delta that holds text, reasoning or a tool call; response
headers and the role alone do not count. ITL: between two deltas. TPOT: (last delta - first delta) /
(tokens - 1). E2E: from sending to the end. In an open loop all of them count from the intended moment of
sending, so that a request which had to wait at the client counts its waiting. Tokens are those of `usage`: a
delta may hold several.
"""

from __future__ import annotations

import base64
import json
from array import array
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pytest_vllm.measure.wirebytes import body_pieces
from pytest_vllm.wire.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.measure.driver import Call

#: Statuses of a proxy or a server that waited for one side in vain.
WAITED = frozenset({408, 499, 502, 503, 504})
_SAID = ("content", "reasoning", "reasoning_content")


@dataclass(frozen=True)
class Sample:
    """One request. Times are the server's seconds from the start of the load.

    Args:
        kind: the kind of request.
        intended: when it was meant to be sent.
        sent: when it was.
        headers: when the first bytes of the response came; None when none did.
        deltas: when each delta that holds something came.
        end: when the response was whole, or was given up.
        status: of the response; 0 without one.
        prompt_tokens: as `usage` tells; 0 untold.
        tokens: generated ones as `usage` tells; 0 untold.
        cached: prompt tokens that came out of the prefix cache, as `usage` tells.
        asked: tokens that were asked for; None: left to the model.
        finish: the finish reason.
        error: why it is not good; empty when it is.
        text: the answer, of canaries and of a few others.
        scored: whether it lies in the scored window.
        lost: whether it failed on its way, and not by what the server said.
    """

    kind: str
    intended: float
    sent: float
    headers: float | None
    deltas: Sequence[float]
    end: float
    status: int = 200
    prompt_tokens: int = 0
    tokens: int = 0
    cached: int = 0
    asked: int | None = None
    finish: str = ""
    error: str = ""
    text: str = ""
    scored: bool = True
    lost: bool = False

    @property
    def good(self) -> bool:
        """Whether it was answered as asked."""
        return not self.error

    @property
    def ttft(self) -> float | None:
        """Seconds to the first delta."""
        return self.deltas[0] - self.intended if len(self.deltas) else None

    @property
    def tpot(self) -> float | None:
        """Seconds per token after the first."""
        if self.tokens < 2 or len(self.deltas) < 2:
            return None
        return (self.deltas[-1] - self.deltas[0]) / (self.tokens - 1)

    @property
    def e2e(self) -> float:
        """Seconds to the end."""
        return self.end - self.intended

    @property
    def queued(self) -> float:
        """Seconds that it waited at the client for its turn."""
        return self.sent - self.intended

    @property
    def per_delta(self) -> float:
        """Tokens that a delta holds on average."""
        return self.tokens / len(self.deltas) if self.tokens and len(self.deltas) else 1.0

    @property
    def gaps(self) -> list[float]:
        """Seconds between neighbouring deltas."""
        return [after - before for before, after in pairwise(self.deltas)]

    def plain(self) -> dict[str, Any]:
        """As JSON values; the moments of the deltas as microseconds, packed."""
        micro = array("I", (max(0, round((at - self.intended) * 1e6)) for at in self.deltas))
        values = {name: getattr(self, name) for name in _PLAIN}
        return {**values, "deltas": base64.b64encode(micro.tobytes()).decode()}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Sample:
        """What `plain` gave."""
        micro = array("I", base64.b64decode(values["deltas"]))
        return cls(**{**values, "deltas": array("d", (values["intended"] + one / 1e6 for one in micro))})


_PLAIN = tuple(name for name in Sample.__dataclass_fields__ if name != "deltas")


@dataclass
class Events:
    """The events of a response, and when each was whole."""

    payloads: list[bytes] = field(default_factory=list)
    times: array[float] = field(default_factory=lambda: array("d"))
    rest: bytes = b""

    @classmethod
    def of(cls, call: Call) -> Events:
        """Split the body of a call."""
        found = cls()
        if call.head is None:
            return found
        for data, at in body_pieces(call.head, call.pieces, call.times):
            text = found.rest + data
            if b"\r" in text:
                text = text.replace(b"\r\n", b"\n")
            *whole, found.rest = text.split(b"\n\n")
            for event in whole:
                if event.startswith(b"data:"):
                    found.payloads.append(event[5:].lstrip())
                    found.times.append(at)
        return found


def sample_of(call: Call, *, kind: str, asked: int | None, begin: float, speed: float, texts: bool) -> Sample:
    """The record of a call that has ended.

    Args:
        call: what was sent and what came.
        kind: its kind of request.
        asked: tokens that were asked for.
        begin: the start of the load, by perf_counter.
        speed: the server's seconds per second of ours.
        texts: whether to keep the answer.
    """

    def at(moment: float) -> float:
        return (moment - begin) * speed

    status = call.head.status if call.head else 0
    streamed = status == 200 and not call.error
    events = Events.of(call) if status == 200 else Events()
    first, last = _ends(events.payloads)
    usage, finish = _closing(events.payloads)
    tokens = _count(usage, "completion_tokens")
    error = call.error
    if not error and status != 200:
        error = f"answered with {status}: {_excerpt(call)}"
    if not error:
        error = _fault(events.payloads, tokens, asked, first)
    return Sample(
        kind=kind,
        intended=at(call.intended),
        sent=at(call.sent or call.intended),
        headers=at(call.times[0]) if len(call.times) else None,
        deltas=array("d", (at(one) for one in events.times[first : last + 1])) if first >= 0 else array("d"),
        end=at(call.ended),
        status=status,
        prompt_tokens=_count(usage, "prompt_tokens"),
        tokens=tokens,
        cached=_count(_object(usage.get("prompt_tokens_details")), "cached_tokens"),
        asked=asked,
        finish=finish,
        error=error,
        text=text_of(events.payloads) if texts and streamed else "",
        lost=(call.failure is not None and call.failure is not Failure.PROTOCOL) or status in WAITED,
    )


def text_of(payloads: Sequence[bytes]) -> str:
    """Everything that the deltas say, reasoning and arguments of calls included."""
    return "".join(said(_parsed(one)) for one in payloads)


def said(event: Mapping[str, Any]) -> str:
    """What an event adds to the answer; empty for a role, a finish or a usage alone.

    A broken server may send anything: what is not text says nothing here, checks of conformance accuse it.
    """
    found: list[Any] = []
    for choice in _objects(event.get("choices")):
        found.append(choice.get("text"))
        delta = _object(choice.get("delta"))
        found += [delta.get(name) for name in _SAID]
        for call in _objects(delta.get("tool_calls")):
            function = _object(call.get("function"))
            found += [function.get("name"), function.get("arguments")]
    return "".join(one for one in found if isinstance(one, str))


def _ends(payloads: Sequence[bytes]) -> tuple[int, int]:
    """The first and the last event that say something; (-1, -1) when none does."""
    first = next((at for at, one in enumerate(payloads) if said(_parsed(one))), -1)
    if first < 0:
        return -1, -1
    return first, next(at for at in range(len(payloads) - 1, -1, -1) if said(_parsed(payloads[at])))


def _closing(payloads: Sequence[bytes]) -> tuple[Mapping[str, Any], str]:
    """Usage and finish reason, from the end."""
    usage: Mapping[str, Any] = {}
    for payload in reversed(payloads[-6:]):
        event = _parsed(payload)
        usage = usage or _object(event.get("usage"))
        for choice in _objects(event.get("choices")):
            if choice.get("finish_reason"):
                return usage, str(choice["finish_reason"])
    return usage, ""


def _fault(payloads: Sequence[bytes], tokens: int, asked: int | None, first: int) -> str:
    broken = next((event for one in payloads[-3:] if (event := _parsed(one)).get("error")), None)
    if broken is not None:
        return f"an error in the stream: {str(broken['error'])[:240]}"
    if not payloads or payloads[-1] != b"[DONE]":
        return "the stream ended without [DONE]"
    if first < 0 and not tokens:
        return "not one token came"
    if asked is not None and tokens and tokens != asked:
        return f"{tokens} tokens instead of {asked}"
    return ""


def _parsed(payload: bytes) -> Mapping[str, Any]:
    try:
        event = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return _object(event)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _count(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def _excerpt(call: Call) -> str:
    body = b"".join(call.pieces)[call.head.ends if call.head else 0 :]
    return body[:200].decode("utf-8", "replace")
