"""What is asked of a server to find out what it can do, each thing once, and what the answers mean."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_vllm.declare.capabilities import OWN, every_capability
from pytest_vllm.declare.raised import raised_at
from pytest_vllm.run.heldup import TRIES, held_for
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Recording, Request, Undecided
from pytest_vllm.wire.server import Capability, Server

if TYPE_CHECKING:
    from pytest_vllm.declare.capabilities import OwnCapability
    from pytest_vllm.run.lag import Lag
    from pytest_vllm.wire.client import WireClient

#: Seconds for one trial request: the first structured answer may compile a grammar.
TRIAL_SECONDS = 120.0
FACT_SECONDS = 20.0
#: Seconds for one trial of a server that ran before: it has compiled what it has to.
ATTACHED_SECONDS = 40.0
#: The same for what is asked of it once the time of the first trials has passed without an answer.
AGAIN_SECONDS = 6.0

TRIAL = "trial request"
NO_ANSWER = f"{TRIAL}: no answer"
#: How it begins that a probe of the project's own could not be made.
PROBE_FAILED = "its probe failed"

Finding = tuple[bool, str]
Probes = Mapping[str, Callable[["Findings"], Awaitable[Finding]]]

#: How a token begins that is named by its id.
_BY_ID = '"token_id:'
#: The first log probability of an answer, where it is above zero.
_SCORE = re.compile(r'"(?:logprob|token_logprobs)":\s*\[?\s*(\d+\.?\d*)')
UNKNOWN = (404, 405, 501)
#: So many scrapes at once show whether one server answers, by when its process started.
TURNS = 4
#: How the fingerprint of vLLM begins from 0.21 on, unless it was told otherwise (`--fingerprint-mode`).
_PRINT = re.compile(r'"system_fingerprint":\s*"vllm-(\d+\.\d+[^"-]*)-')
_STARTED = re.compile(r"(?m)^process_start_time_seconds (\S+)")
_LACKS = re.compile(
    r"not support|unsupported|not enabled|chat template|does not have|no such|--enable|not found|multimodal",
    re.IGNORECASE,
)


class Findings:
    """What is asked of one server, each thing once.

    Args:
        client: sends the requests.
        server: the server as far as it is known: name and models are.
        args: the serve arguments the server was started with; None when somebody else started it.
        probes: how each capability is found out.
        lag: when this process is held up.
    """

    def __init__(
        self, client: WireClient, server: Server, args: Mapping[str, Any] | None, probes: Probes, lag: Lag
    ) -> None:
        """Nothing is asked yet."""
        self.client, self.server, self.args, self.probes = client, server, args, probes
        self._lag = lag
        self._asked: dict[Any, asyncio.Task[Any]] = {}
        self._names_by_id = self._logits = False
        #: Seconds for a trial, and what became of each.
        self.patience = TRIAL_SECONDS if server.kind.starts else ATTACHED_SECONDS
        self.answers: list[Recording] = []
        self._began = 0.0
        self._given_up = False
        #: As its answers tell it, where `/version` does not.
        self.version = ""

    async def all(self) -> dict[str, Capability]:
        """Every capability: the bundled ones in the order of their list, then the project's own."""
        names = every_capability()
        return dict(zip(names, await asyncio.gather(*map(self.find, names)), strict=True))

    async def find(self, name: str) -> Capability:
        """One capability."""
        found: Capability = await self._once(name, self._find(name))
        return found

    async def get(self, path: str, *, key: bool = True) -> Recording:
        """A GET, with the API key or without."""
        headers: dict[str, str | None] = {} if key else {"authorization": None}
        patience = AGAIN_SECONDS if self._mute else FACT_SECONDS
        request = Request("GET", path, headers=headers, timeout=patience, expect=None)
        found: Recording = await self._once((path, key), self.send(f"probe GET {path}", request))
        return found

    async def by_turns(self) -> str:
        """Whether several servers answer by turns, in words: what one counts says nothing of the others.

        Only one that ran before can be several. Asked at once, each scrape has a connection of its own.
        """
        first = await self.get("/metrics")
        if self.server.kind.starts or first.failure or not _STARTED.search(first.text):
            return ""
        started: set[str] = await self._once("by turns", self._started())
        return f"{len(started)} servers answer by turns at one URL" if len(started) > 1 else ""

    async def _started(self) -> set[str]:
        request = Request("GET", "/metrics", timeout=FACT_SECONDS, expect=None)
        scraped = await asyncio.gather(*[self.send("probe GET /metrics", request) for _ in range(TURNS)])
        told = [_STARTED.search(one.text) for one in scraped if one.status == 200]
        return {found[1] for found in told if found}

    async def trial(self, path: str, body: Mapping[str, Any], **more: Any) -> Recording:
        """A tiny request of the real kind."""
        built = self.server.post(path, body, expect=None)
        self._began = self._began or time.perf_counter()
        mute = self._mute
        patience = AGAIN_SECONDS if mute else self.patience
        request = Request("POST", path, json=built.json, timeout=patience, expect=None, **more)
        if self._given_up:
            words = "not sent: nothing that this server answered so far could be read"
            return Recording(path, request, error=words, failure=Failure.NOT_SENT)
        answer = await self.send(f"probe POST {path}", request)
        self._given_up = mute and not _read(answer)
        self.answers.append(answer)
        self._names_by_id = self._names_by_id or _BY_ID in answer.text
        told = _PRINT.search(answer.text)
        self.version = self.version or (told[1] if told else "")
        self._logits = self._logits or any(float(value) > 1 for value in _SCORE.findall(answer.text))
        return answer

    @property
    def named_by_id(self) -> bool:
        """Whether tokens come by their ids: as the server was told; where that is unknown, as they came."""
        if self.args is not None:
            return bool(self.args.get("return-tokens-as-token-ids"))
        return self._names_by_id

    @property
    def logits(self) -> bool:
        """Whether log probabilities are logits: as the server was told; if that is unknown, as they came."""
        if self.args is not None:
            return str(self.args.get("logprobs-mode", "")).endswith("_logits")
        return self._logits

    @property
    def _mute(self) -> bool:
        """Whether the first trials of a server that ran before had their time, and none was answered."""
        served = [one for one in self.answers if one.status == 200 and one.request.path != "/tokenize"]
        waited = bool(self._began) and time.perf_counter() - self._began >= self.patience
        return waited and not self.server.kind.starts and not any(map(_read, served))

    @property
    def hung(self) -> list[Recording]:
        """The trials that were given up, whole answers or streams, where none of that kind came."""
        found: list[Recording] = []
        for streams in (False, True):
            kind = [one for one in self.answers if one.request.streams is streams]
            worked = [one for one in kind if one.request.path != "/tokenize"]
            late = [one for one in worked if one.late]
            if not any(one.status == 200 and one not in late and _read(one) for one in worked):
                found += late
        return found

    @property
    def broken(self) -> bool:
        """Whether all that was to make the engine compute failed; refusals say nothing of it."""
        worked = [one.status for one in self.answers if one.request.path != "/tokenize"]
        return 200 not in worked and any(status is None or status >= 500 for status in worked)

    async def chat(self, content: Any = "Hi", **params: Any) -> Recording:
        """A chat of one token, unless told otherwise."""
        messages = [{"role": "user", "content": content}]
        return await self.trial("/v1/chat/completions", {"messages": messages, "max_tokens": 1, **params})

    async def has_route(self, path: str) -> Finding:
        """Whether a route exists. No route of vLLM takes PUT: one that exists answers 405, no more."""
        patience = AGAIN_SECONDS if self._mute else FACT_SECONDS
        request = Request("PUT", path, timeout=patience, expect=None)
        recording = await self.send(f"probe PUT {path}", request)
        return recording.status not in (404, None), f"PUT {path}: {answered(recording)}"

    def served(self, recording: Recording, *, refusable: bool = False) -> Finding:
        """What the answer to a trial request means.

        Args:
            recording: the answer.
            refusable: whether any 4xx means that the capability is absent; otherwise only one that says so.
        """
        how = f"{TRIAL}: {answered(recording)}"
        status = recording.status
        if status == 404 and self.server.model in recording.text:
            return True, how  # the route is there; that the model is not is a fault to be shown
        if status is None or not 400 <= status < 500 or status in (401, 403, 408, 429):
            return status not in UNKNOWN, how
        return not (refusable or status in UNKNOWN or _LACKS.search(recording.text)), how

    async def send(self, key: str, request: Request) -> Recording:
        """Send a request, and again where what came may be the doing of this process, which was held up."""
        for _ in range(TRIES):
            begin = time.perf_counter()
            answer = await self.client.send(key, request)
            if not held_for(answer, self._lag, begin, time.perf_counter()):
                break
        return answer

    async def _find(self, name: str) -> Capability:
        present, how = await (self._own(OWN[name]) if name in OWN else self.probes[name](self))
        return Capability(name, present, how)

    async def _own(self, own: OwnCapability) -> Finding:
        """A capability of the project's own; what its functions raise says nothing about the server."""
        try:
            request = own.probe(self.server)
            sent = replace(request, timeout=request.timeout or self.patience, expect=None)
            answer = await self.send(f"probe {sent.method} {sent.path}", sent)
            asked = own.present is not None and answer.status is not None and answer.status < 400
            if not asked:
                return self.served(answer)
            said = bool(own.present and own.present(answer))
        except Exception as error:  # noqa: BLE001 - a person's own code; the run goes on
            return False, f"{PROBE_FAILED}: {raised_at(error, own.file)}"
        return said, f"{TRIAL}: {answered(answer)}, which {'has' if said else 'lacks'} what was looked for"

    async def _once(self, name: Any, asking: Any) -> Any:
        if name in self._asked:
            asking.close()
        else:
            self._asked[name] = asyncio.create_task(asking)
        return await self._asked[name]


def _read(answer: Recording) -> bool:
    """Whether a client can read it: JSON, or a stream, that is not packed in a way nobody asked for."""
    if answer.header("content-encoding") not in ("", "identity"):
        return False
    try:
        return answer.request.streams or answer.json is not None
    except Undecided:
        return False


def answered(recording: Recording) -> str:
    """The status of an answer, and the message of a refusal; why there was none."""
    if recording.status is None or recording.late:
        return f"no answer ({recording.error})"
    if recording.status < 300:
        return str(recording.status)
    return f"{recording.status} {_message(recording)}".strip()


def _message(recording: Recording) -> str:
    try:
        body = recording.json
    except Undecided:
        body = recording.text
    while isinstance(body, dict) and body.keys() & {"error", "message", "detail"}:
        body = body.get("error") or body.get("message") or body.get("detail") or ""
    words = " ".join(str(body or "").split())
    return words if len(words) <= 120 else f"{words[:119]}…"
