"""What chat, completions, responses and messages share: model check, engine hand-over, streaming, waiting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.admission import admit
from pytest_vllm.sim.api.events import DONE, Event
from pytest_vllm.sim.engine.core import Engine, EngineDead
from pytest_vllm.sim.engine.sequence import Sequence
from pytest_vllm.sim.errors import ApiError, envelope
from pytest_vllm.sim.vision import marks

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.check.sampling import Sampling
    from pytest_vllm.sim.generation import Output
    from pytest_vllm.sim.http.server import Call

DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."


def check_model(server: Server, body: dict[str, Any]) -> str:
    """The name that the answer carries. Raises ApiError for a model that is not served."""
    settings, wanted = server.settings, body.get("model")
    if not wanted or wanted in settings.names:
        return settings.name
    if wanted in server.loras:
        return str(wanted)
    text = f"The model `{wanted}` does not exist."
    if settings.version >= "0.32.0":
        text += f" Valid aliases: {', '.join(settings.names)}."
    param = "model" if settings.version >= "0.13.0" else None
    raise ApiError(text, 404, "NotFoundError", param)


def check_alive(server: Server) -> None:
    """Refuse when the engine is dead."""
    if any(engine.dead for engine in server.engines):
        raise ApiError(DEAD, 500, "InternalServerError")


class Generation:
    """The sequences of one request in the engine, and who listens to them."""

    def __init__(self, server: Server, call: Call, outputs: list[Output]) -> None:
        """One sequence per choice and prompt; `submit` hands them over."""
        self.server, self.call, self.outputs = server, call, outputs
        self.sequences: list[Sequence] = []
        self.engines: list[Engine] = []
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.open = 0
        self.n = 1

    def add(
        self, request_id: str, prompt: list[int], output: Output, sampling: Sampling, body: dict[str, Any]
    ) -> None:
        """Prepare the sequence of one choice."""
        server = self.server
        # the weights tell blocks apart, not the name: another adapter may be loaded under it
        lora = server.loras.get(str(body.get("model")))
        sequence = Sequence(
            id=request_id,
            prompt=prompt,
            output=output.ids,
            finish=output.finish,
            listener=self,
            salt=(body.get("cache_salt"), lora, *marks(body.get("messages"))),
            priority=body.get("priority") or 0,
            skip_cache=sampling.prompt_logprobs is not None,
            max_tokens=sampling.max_tokens,
        )
        self.sequences.append(sequence)

    def pool(self, request_id: str, prompt: list[int], body: dict[str, Any], *, skip_cache: bool) -> None:
        """Prepare a sequence of which only the prompt is computed."""
        sequence = Sequence(
            id=request_id,
            prompt=prompt,
            output=[],
            finish="stop",
            listener=self,
            salt=(
                body.get("cache_salt"),
                body.get("model") if body.get("model") in self.server.loras else None,
            ),
            priority=body.get("priority") or 0,
            skip_cache=skip_cache,
        )
        self.sequences.append(sequence)

    def submit(self, n: int) -> None:
        """Hand all sequences to the engine. Raises ApiError when it is dead or has too much to do."""
        admit(self.server, len(self.sequences))
        self.n = n
        self.open = len(self.sequences)
        self.call.on_gone.append(self.abort)
        try:
            for sequence in self.sequences:
                self.engines.append(engine := self.server.least_busy())
                engine.submit(sequence)
        except EngineDead:
            raise ApiError(DEAD, 500, "InternalServerError") from None

    def abort(self) -> None:
        """The client left."""
        for engine, sequence in zip(self.engines, self.sequences, strict=False):
            engine.abort(sequence)
        self._done()

    def progressed(self, sequence: Sequence) -> None:
        """Count sequences that ended; wake whoever waits for all."""
        if sequence.ended:
            self.open -= 1
            if sequence.error is not None and not self.finished.done():
                self.finished.set_exception(ApiError(DEAD, 500, "InternalServerError"))
            elif self.open <= 0:
                self._done()

    def _done(self) -> None:
        if not self.finished.done():
            self.finished.set_result(None)
            self._count()
            self.server.generations += 1
            self.server.hooks.run("finished", self.server.generations, self.server)

    def _count(self) -> None:
        stats = (self.engines or self.server.engines)[0].stats
        for number in range(0, len(self.sequences), self.n):
            group = self.sequences[number : number + self.n]
            if all(sequence.ended and sequence.ended != "abort" for sequence in group):
                stats.observe("request_params_n", self.n)
                stats.observe("request_max_num_generation_tokens", max(sequence.done for sequence in group))

    @property
    def cached(self) -> int:
        """Prompt tokens that the first sequence found in the cache."""
        return max(0, self.sequences[0].cached) if self.sequences else 0


def broken(error: ApiError, server: Server) -> list[Event]:
    """An OpenAI-style stream that breaks: the error object, then the end mark."""
    return [Event(envelope(error, server.settings.version)), Event(DONE)]
