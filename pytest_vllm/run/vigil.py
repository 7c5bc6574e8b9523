"""Watches whether the server still lives: asks it, and its launcher, when exchanges in a row say it may not.

Resets, closes, refusals and a proxy's 502 in a row with no answer between look like a death. Time limits that
pass while no token comes look like a hang. Both are asked about before anything is concluded: the launcher,
then `/health`, for a hang also one token and the server's own count of tokens.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pytest_vllm.run import pressure
from pytest_vllm.run.findings import answered
from pytest_vllm.run.heldup import broke
from pytest_vllm.run.pace import generated_tokens
from pytest_vllm.wire.glance import glance
from pytest_vllm.wire.looking import Looking
from pytest_vllm.wire.policy import UNIX
from pytest_vllm.wire.proxy import is_loopback
from pytest_vllm.wire.recording import Recording, Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.run.pressure import Pressure, Strain
    from pytest_vllm.wire.client import WireClient
    from pytest_vllm.wire.server import Server

#: So many exchanges in a row without an answer, and it is asked whether the server lives.
REFUSALS = 3
#: Seconds that an exchange must have waited, with no token meanwhile, to raise the question of a hang alone.
SILENT = 20.0
#: Statuses of a proxy, or of a dying vLLM, that say that nobody is there to answer.
GONE = frozenset({502, 503, 504})
_TOKENS = "vllm:generation_tokens_total"


@dataclass(frozen=True)
class Patience:
    """Seconds.

    Args:
        gone: for a server that gave no answer to come back, or for its end to be noticed.
        hung: for one token.
        health: for `/health`.
        pause: between two questions.
        starved: how many times as long for a token on a machine that starves its server.
        quiet: in which neither a token nor any answer came, until it is asked whether the server hangs.
    """

    gone: float = 10.0
    hung: float = 30.0
    starved: float = 4.0
    health: float = 5.0
    pause: float = 0.5
    quiet: float = 60.0


@dataclass(frozen=True)
class Still:
    """A time in which no token came although exchanges waited, and after which the server went on.

    Args:
        begin: by `time.perf_counter`.
        end: of it.
        clock: seconds since the epoch when it began.
        strain: what this machine was under meanwhile.
        here: whether the server runs on this machine.
    """

    begin: float
    end: float
    clock: float
    strain: Strain
    here: bool

    @property
    def starved(self) -> bool:
        """Whether the machine, and not the server, may be why."""
        return self.here and self.strain.starves

    @property
    def text(self) -> str:
        """In words, with the window by this machine's clock."""
        begin, end = (time.strftime("%H:%M:%S", time.localtime(at)) for at in (self.clock, self.until))
        where = "" if self.here else "; the server runs elsewhere"
        return f"the server stood still from {begin} to {end}; this machine: {self.strain.text}{where}"

    @property
    def until(self) -> float:
        """Seconds since the epoch when it was over."""
        return self.clock + self.end - self.begin


@dataclass
class Vigil:
    """What is known of the server's life.

    Args:
        server: which.
        client: asks it.
        died: how it ended, in words; empty while its launcher knows of no end. May take a while.
        crowd: how many exchanges are open at once.
        patience: how long is waited for what.
        read: this machine's pressure now.
        told: why this run is to end, in words; empty while it is not.
    """

    server: Server
    client: WireClient
    died: Callable[[], str] = str
    crowd: int = 1
    patience: Patience = field(default_factory=Patience)
    read: Callable[[], Pressure] = pressure.read
    told: Callable[[], str] = str
    stopped: str = ""
    stills: list[Still] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Nothing has come yet."""
        self._lost = self._silent = 0
        #: What failed, and when by the wall clock, since a request was sent that was answered.
        self._unanswered: dict[str, float] = {}
        self._token_at = self._heard_at = time.perf_counter()
        self._before = self.read()
        self._asking = asyncio.Lock()
        #: What was asked to see whether it computes, and is not answered yet though it does.
        self._signs: set[asyncio.Task[Recording]] = set()

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Keys of what failed with nothing answered afterwards: the server's end explains it."""
        return tuple(self._unanswered)

    async def gone(self) -> str:
        """Why the server is gone or hangs, asked at once; empty when it answers and computes."""
        why = await self._gone()
        return self.client.redactor.text(why or await self._hung(still=False))

    async def clear(self) -> None:
        """Wait while it is asked whether the server lives: what is sent meanwhile may fail for that alone."""
        async with self._asking:
            pass

    async def over(self, *, cancel: bool = False) -> bool:
        """Wait until nothing that the vigil asked is under way any more; whether something was."""
        await self.clear()
        under_way = set(self._signs)
        for sign in under_way if cancel else ():
            sign.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        return bool(under_way)

    async def saw(self, recording: Recording) -> None:
        """An exchange is over. Sets `stopped` when the server turns out to be gone or to hang."""
        self._count(recording)
        if self.stopped or not self._doubtful(recording):
            return
        hangs = self._lost < REFUSALS
        async with self._asking:
            if self.stopped or not (self._lost or self._silent):
                return  # somebody else has asked meanwhile
            why = await (self._hung() if hangs else self._gone())
            if why:
                self.stopped = self.client.redactor.text(why)
                return
            self._lost = self._silent = 0
            self._unanswered.clear()

    async def watch(self, waits: Callable[[], bool]) -> None:
        """Ask whether the server hangs when it has been quiet for long; return once `stopped` is set.

        Args:
            waits: whether anything waits for the server.
        """
        quiet, idle_at = self.patience.quiet, time.perf_counter()
        while not self.stopped:
            await asyncio.sleep(min(0.5, quiet / 4))
            if told := self.told():
                self.stopped = told
                return
            now = time.perf_counter()
            idle_at = idle_at if waits() else now
            heard = max(self._token_at, self._heard_at, self.client.pulse.at, idle_at)
            if now - heard >= quiet and not self._asking.locked():
                async with self._asking:
                    self.stopped = self.client.redactor.text(await self._hung(still=False))
                # one that computes without a word is given more time before it is asked again
                quiet, self._heard_at = quiet * 2, time.perf_counter()

    def stood_still(self, begin: float, end: float) -> Still | None:
        """The time in which the server stood still that touches a stretch; None when none does."""
        return next((one for one in self.stills if one.begin < end and one.end > begin), None)

    def _count(self, recording: Recording) -> None:
        now, slow = time.perf_counter(), recording.late
        self._token_at = max(self._token_at, self.client.pulse.at)
        if generated_tokens(recording) and not slow:
            self._silent, self._token_at = 0, now
            if time.monotonic() - self._before.at > 1:
                self._before = self.read()
        elif slow:
            self._silent += 1
        self._heard_at = now if recording.status is not None else self._heard_at
        if slow or _gone(recording):
            self._lost += not slow
            self._unanswered[recording.key] = recording.sent + recording.seconds
        elif recording.status is not None:
            self._lost = 0
            self._forget(recording)

    def _forget(self, recording: Recording) -> None:
        """The server answered what was sent after a failure: its end does not explain that failure."""
        if self._silent and not generated_tokens(recording):
            return  # a hung engine still refuses
        ended = {key: at for key, at in self._unanswered.items() if at >= recording.sent}
        self._unanswered = ended

    def _doubtful(self, recording: Recording) -> bool:
        if self._lost >= REFUSALS or self._silent >= self.crowd + REFUSALS:
            return True
        if not (recording.late and recording.seconds >= SILENT):
            return False
        return time.perf_counter() - self._token_at >= SILENT

    async def _gone(self) -> str:
        """Why the server is gone; empty when it answers."""
        lost, looking = self._lost, self._looks(1)
        looking.at(time.perf_counter())
        while True:
            if died := await asyncio.to_thread(self.died):
                return died
            health = await self._health()
            if _lives(health):
                return ""
            if looking.at(time.perf_counter()) > self.patience.gone:
                which = f"{lost} exchanges in a row" if lost else "the last requests"
                found = f"{which} found no server at {self.server.url}"
                return f"{found}: GET /health: {answered(health)}"
            await asyncio.sleep(self.patience.pause)

    async def _hung(self, *, still: bool = True) -> str:
        """That the server hangs; empty when it computes, late as it is.

        Args:
            still: whether it stood still then: something was cut by that.
        """
        asked = asyncio.create_task(self._sign())
        counted = await self._tokens()
        looking, hung = self._looks(2), self.patience.hung
        health: Recording | None = None
        try:
            while (waited := looking.at(time.perf_counter())) < hung or (
                waited < hung * self.patience.starved and self._starved
            ):
                if died := await asyncio.to_thread(self.died):
                    return died
                await asyncio.wait([asked], timeout=self.patience.pause)
                if asked.done() and _lives(asked.result()):
                    return self._stood(asked, still=still)
                health = await self._health()
                tokens = await self._tokens()
                if counted is not None and tokens is not None and tokens > counted:
                    return self._stood(asked, still=still)
                if asked.done():  # refused at once, say: what /health says decides
                    await asyncio.sleep(self.patience.pause)
            silent = time.perf_counter() - max(self._token_at, self.client.pulse.at)
            said = answered(health) if health else "not asked"
            while_ = f"; this machine: {self._strain.text}" if self._starved else ""
            return f"the server hangs: GET /health: {said}, no token for {silent:.0f} s{while_}"
        finally:
            if asked not in self._signs:
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)

    def _looks(self, questions: int) -> Looking:
        """How long is looked, turn by turn of so many questions: what a turn takes beyond them is our own."""
        return Looking(questions * (self.patience.health + self.patience.pause))

    @property
    def _strain(self) -> pressure.Strain:
        """What this machine was under since tokens came."""
        return pressure.between(self._before, self.read())

    @property
    def _here(self) -> bool:
        """Whether the server runs on this machine."""
        return self.server.kind.starts or _here(self.server.url)

    @property
    def _starved(self) -> bool:
        """Whether the machine, and not the server, may be why nothing comes."""
        return self._here and self._strain.starves

    def _stood(self, asked: asyncio.Task[Recording], *, still: bool) -> str:
        """The server computes: it stood still until now, if it did for long enough to say so.

        What it was asked is left to be answered: a client that leaves is one more thing that is counted late.
        """
        if not asked.done():
            self._signs.add(asked)
            asked.add_done_callback(self._signs.discard)
        now = time.perf_counter()
        begin = max(self._token_at, self.client.pulse.at)
        if still and now - begin >= SILENT:
            self._token_at = now
            self.stills.append(Still(begin, now, time.time() - (now - begin), self._strain, self._here))
        self._before = self.read()
        return ""

    async def _health(self) -> Recording:
        request = Request("GET", "/health", timeout=self.patience.health, expect=None)
        return await self.client.send("sign of life GET /health", request)

    async def _tokens(self) -> float | None:
        """How many tokens the server has generated, by its own count; None where it does not say."""
        request = Request("GET", "/metrics", timeout=self.patience.health, expect=None)
        scraped = await self.client.send("sign of life GET /metrics", request)
        values = glance(scraped.text, {_TOKENS}).get(_TOKENS) if scraped.status == 200 else None
        return sum(values) if values else None

    async def _sign(self) -> Recording:
        """The smallest answer that makes the server compute."""
        return await self.client.send("sign of life", self._smallest())

    def _smallest(self) -> Request:
        server, limit = self.server, self.patience.hung
        bodies: dict[str, tuple[str, dict[str, object]]] = {
            "completions": ("/v1/completions", {"prompt": "Hello", "max_tokens": 1}),
            "chat": (
                "/v1/chat/completions",
                {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1},
            ),
            "embeddings": ("/v1/embeddings", {"input": "Hello"}),
            "rerank": ("/rerank", {"query": "Hello", "documents": ["Hello"]}),
            "score": ("/score", {"text_1": "Hello", "text_2": "Hello"}),
            "classify": ("/classify", {"input": "Hello"}),
        }
        path, body = next((found for name, found in bodies.items() if server.can(name)), ("", {}))
        if not path:
            return Request("GET", "/v1/models", timeout=limit, expect=None)
        return Request("POST", path, json={"model": server.model, **body}, timeout=limit, expect=None)


def _gone(recording: Recording) -> bool:
    """Whether it looks as if nobody was there: a reset, a close, a refusal, a proxy that found nobody."""
    nobody = recording.failure is not None or recording.status in GONE
    return nobody and broke(recording) and not recording.late


def _lives(recording: Recording) -> bool:
    """Whether somebody answered who is not a proxy in front of nobody."""
    return recording.status is not None and recording.status not in GONE


def _here(url: str) -> bool:
    return url.startswith(UNIX) or is_loopback(urlsplit(url).hostname or "")
