"""`POST /v1/completions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.events import DONE, Event, quoted, template, wire
from pytest_vllm.sim.api.generate import Generation, broken, check_alive, check_model
from pytest_vllm.sim.api.prompts import check_room, check_sizes, encode, fit, output_limit
from pytest_vllm.sim.api.prompttext import prompt_logprobs
from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.api.shapes import without_null
from pytest_vllm.sim.api.stream import Stream
from pytest_vllm.sim.check import rules
from pytest_vllm.sim.check.body import read_json, validated
from pytest_vllm.sim.check.constraints import constraint_of
from pytest_vllm.sim.check.sampling import Sampling
from pytest_vllm.sim.errors import ApiError, Invalid
from pytest_vllm.sim.generation import behind, logprobs
from pytest_vllm.sim.persona.persona import outputs_of, thinks_on
from pytest_vllm.sim.persona.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.generation import Output
    from pytest_vllm.sim.http.server import Call

Body = dict[str, Any]


async def completion(server: Server, call: Call) -> Reply | None:
    """Answer a completion request."""
    return await answer(server, call, server.hooks.run("body", read_json(call.request), call.request.path))


async def answer(server: Server, call: Call, body: Any) -> Reply | None:
    """Answer a completion request whose body is read."""
    if isinstance(body, dict):
        rules.completion(body, server.settings.version)
        body = {**body, "max_tokens": 16 if body.get("max_tokens") is None else body["max_tokens"]}
    return await CompletionRequest(
        server, call, validated("CompletionRequest", body, server.settings.version)
    ).run()


class CompletionRequest:
    """One completion request: one or more prompts, `n` choices each."""

    def __init__(self, server: Server, call: Call, body: Body) -> None:
        """Take a validated body. Raises ApiError."""
        self.server, self.call, self.body = server, call, body
        if body.get("suffix"):
            if server.settings.version < "0.32.0":
                raise ApiError("suffix is not currently supported")
            raise ApiError(
                "suffix is only supported for models with FIM completion rendering", param="suffix"
            )
        if body.get("prompt_embeds"):
            raise Invalid("You must set `--enable-prompt-embeds` to input `prompt_embeds`.", "prompt_embeds")
        self.model = check_model(server, body)
        check_alive(server)
        limit = server.settings.max_model_len
        wanted = body["max_tokens"]
        check_sizes(body, limit, wanted, "max_tokens")
        self.prompts = [self._encoded(prompt) for prompt in _prompts(body["prompt"])]
        self.echo = bool(body.get("echo"))
        self.only_echo = self.echo and wanted == 0
        self.samplings = [self._sampling(len(prompt)) for prompt in self.prompts]
        self.n = self.samplings[0].n
        request_id = call.request.headers.get("x-request-id") or body.get("request_id") or server.ids.hex()
        self.id = f"cmpl-{request_id}"
        self.created = int(server.clock.wall())
        self.outputs: list[Output] = []
        as_ids = body.get("return_tokens_as_token_ids")
        self.as_ids = server.settings.args.get("return_tokens_as_token_ids") if as_ids is None else as_ids

    def _encoded(self, prompt: str | list[int]) -> list[int]:
        tokens = self.server.tokens
        if isinstance(prompt, str):
            ids = encode(prompt, self.body, self.server.settings, tokens)
        else:
            wrong = [id_ for id_ in prompt if id_ >= tokens.size]
            if wrong:
                raise ApiError(f"Token id {max(wrong)} is out of vocabulary")
            ids = fit(prompt, self.body, self.server.settings)
        found: list[int] = self.server.hooks.run("prompt", ids, self.body)
        return found

    def _sampling(self, prompt: int) -> Sampling:
        wanted = 1 if self.only_echo else self.body["max_tokens"]
        sampling = Sampling.of(
            self.body,
            output_limit(wanted, prompt, self.server.settings),
            self.body.get("logprobs"),
            self.server.settings,
        )
        if self.echo and sampling.prompt_logprobs is None:
            sampling.prompt_logprobs = self.body.get("logprobs")
        return sampling

    async def run(self) -> Reply | None:
        """Generate and answer."""
        if self.body.get("stream"):
            if self.body.get("use_beam_search"):
                raise ApiError("Streaming is not currently supported with beam search")
            await self._stream()
            return None
        self._produce()
        generation = Generation(self.server, self.call, self.outputs)
        self._submit(generation)
        await generation.finished
        if not self.call.gone:
            self.server.send(self.call, Reply.json(self._whole(generation)))
        return None

    async def _stream(self) -> None:
        stream = Stream(self.server, self.call, [], self.body)
        stream.writer = CompletionChunks(self, stream)
        stream.begin()
        try:
            self._produce()
            stream.expect(self.outputs)
            self._submit(stream)
        except ApiError as error:
            stream.refuse(error)
            return
        await stream.finished

    def _produce(self) -> None:
        rules.engine(self.body, self.server.settings)
        constraint = constraint_of(self.body, self.server.settings)
        for prompt, sampling in zip(self.prompts, self.samplings, strict=True):
            sampling.verify(self.server.settings, self.server.tokens.size)
            check_room(len(prompt), self.server.settings.max_model_len)
            text = self.server.tokens.decode(prompt, skip_specials=False)
            turn = Turn(
                messages=[], prompt=text, constraint=constraint, thinking=thinks_on(self.server, text)
            )
            self.outputs += outputs_of(self.server, turn, sampling, {**self.body, "prompt": prompt})

    def _submit(self, generation: Generation) -> None:
        for number, output in enumerate(self.outputs):
            at = number // self.n
            generation.add(f"{self.id}-{at}", self.prompts[at], output, self.samplings[at], self.body)
        generation.submit(self.n)

    def _whole(self, generation: Generation) -> Body:
        server = self.server
        return server.shapes.of(
            "answer",
            id=self.id,
            object="text_completion",
            created=self.created,
            model=self.model,
            choices=[self._choice(number, output) for number, output in enumerate(self.outputs)],
            service_tier=None,
            system_fingerprint=server.settings.fingerprint,
            usage=self.usage(generation),
            kv_transfer_params=None,
            ec_transfer_params=None,
            metrics=None,
        )

    def _choice(self, number: int, output: Output) -> Body:
        prompt, sampling = self.prompts[number // self.n], self.samplings[number // self.n]
        ids = self.body.get("return_token_ids")
        return self.server.shapes.of(
            "choice",
            index=number,
            text=self.text(prompt, "" if self.only_echo else output.text, begin=True),
            logprobs=self.logprobs(prompt, output, 0, len(output.ids), 0),
            finish_reason=output.finish,
            stop_reason=output.stop_reason,
            token_ids=output.ids if ids else None,
            prompt_logprobs=prompt_logprobs(prompt, sampling, self.server),
            prompt_token_ids=prompt if ids else None,
            routed_experts=None,
        )

    def text(self, prompt: list[int], text: str, *, begin: bool) -> str:
        """What is shown: with the prompt in front where it is echoed."""
        if not (self.echo and begin) or self.body.get("return_token_ids"):
            return text
        return self.server.tokens.decode(prompt) + text

    def logprobs(self, prompt: list[int], output: Output, begin: int, end: int, offset: int) -> Body | None:
        """Log probabilities of tokens `begin` to `end`, the echoed prompt's in front of the first."""
        number = self.body.get("logprobs")
        if number is None:
            return None
        tokens, settings = self.server.tokens, self.server.settings
        rows: list[tuple[list[int], int]] = []
        if self.echo and begin == 0:
            rows += [(prompt, position) for position in range(len(prompt))]
        if not self.only_echo:
            rows += [(output.ids, position) for position in range(begin, end)]
        made: Body = {"text_offset": [], "token_logprobs": [], "tokens": [], "top_logprobs": []}
        texts = {id(ids): tokens.pieces(ids, skip_specials=False) for ids in (prompt, output.ids)}
        for ids, position in rows:
            text = texts[id(ids)][position]
            if self.as_ids:
                text = f"token_id:{ids[position]}"
            first = ids is prompt and position == 0
            known, begins = (ids, 0) if ids is prompt else behind(prompt, ids)
            wanted = tokens.size if number == -1 else number
            found = logprobs(known, begins + position, wanted, tokens, settings)
            made["text_offset"].append(offset)
            made["tokens"].append(text)
            made["token_logprobs"].append(None if first else found[ids[position]][0])
            made["top_logprobs"].append(None if first else self._top(found, ids[position], text))
            offset += len(text)
        return made

    def _top(self, found: dict[int, Any], chosen: int, text: str) -> dict[str, float]:
        if self.as_ids:
            return {f"token_id:{id_}": chance for id_, (chance, _) in found.items()}
        tokens = self.server.tokens
        return {
            text if id_ == chosen else tokens.token_text(id_): chance for id_, (chance, _) in found.items()
        }

    def usage(self, generation: Generation) -> Body:
        """Token counts of all prompts and choices."""
        # a search over beams counts no cached tokens
        details = (
            self.server.settings.args.get("enable_prompt_tokens_details") and not self.samplings[0].beams
        )
        return self.server.shapes.usage(
            sum(map(len, self.prompts)),
            sum(len(output.ids) for output in self.outputs),
            cached=max(0, generation.sequences[-1].cached) if details else None,
        )


_MARK = "\u0000text\u0000"


class CompletionChunks:
    """Makes `text_completion` events."""

    def __init__(self, request: CompletionRequest, stream: Stream) -> None:
        """For one request."""
        self.request, self.stream = request, stream
        body, settings = request.body, request.server.settings
        options = body.get("stream_options") or {}
        default = settings.version < "0.18.0" and body.get("stream_options") is not None
        self.include_usage = bool(options.get("include_usage", default))
        self.each_usage = self.include_usage and bool(options.get("continuous_usage_stats"))
        if settings.args.get("enable_force_include_usage"):
            self.include_usage = self.each_usage = True
        self.offsets: dict[int, int] = {}
        self.plain = not (self.each_usage or body.get("return_token_ids") or body.get("logprobs") is not None)
        self._templates: dict[int, tuple[bytes, bytes]] = {}

    def head(self) -> Iterator[Event]:
        """Nothing comes before the first token."""
        return iter(())

    def advance(self, choice: int, begin: int, end: int) -> Iterator[Event]:
        """A chunk per group of tokens."""
        request, output = self.request, self.request.outputs[choice]
        body = request.body
        prompt = request.prompts[choice // request.n]
        finished = end >= len(output.ids)
        chances = request.logprobs(prompt, output, begin, end, self.offsets.get(choice, 0))
        if chances and chances["tokens"]:
            self.offsets[choice] = chances["text_offset"][-1] + len(chances["tokens"][-1])
        ids = body.get("return_token_ids")
        text = "" if request.only_echo else "".join(output.pieces[begin:end])
        entry = request.server.shapes.of(
            "choice",
            index=choice,
            text=request.text(prompt, text, begin=begin == 0),
            logprobs=chances,
            finish_reason=output.finish if finished else None,
            stop_reason=output.stop_reason if finished else None,
            prompt_token_ids=prompt if (ids or request.echo) and begin == 0 else None,
            token_ids=output.ids[begin:end] if ids else None,
        )
        data: Body = {
            "id": request.id,
            "object": "text_completion",
            "created": request.created,
            "model": request.model,
            "choices": [entry],
        }
        if self.each_usage:
            data["usage"] = without_null(request.server.shapes.usage(len(prompt), end))
        fingerprint = request.server.settings.fingerprint
        if finished and not self.include_usage and fingerprint is not None:
            data["system_fingerprint"] = fingerprint
        yield Event(data)

    def quick(self, choice: int, begin: int, end: int) -> bytes | None:
        """The bytes of an ordinary chunk; None for requests whose chunks carry more than text."""
        if not self.plain or begin == 0:
            return None if not self.plain else wire(next(self.advance(choice, begin, end)))
        if choice not in self._templates:
            data = next(self.advance(choice, begin, end)).data
            data["choices"][0]["text"] = _MARK
            self._templates[choice] = template(data, _MARK)
        before, after = self._templates[choice]
        return before + quoted("".join(self.request.outputs[choice].pieces[begin:end])) + after

    def tail(self) -> Iterator[Event]:
        """The usage when asked for, and the end mark."""
        request = self.request
        if self.include_usage:
            yield Event(
                without_null(
                    request.server.shapes.of(
                        "chunk",
                        id=request.id,
                        object="text_completion",
                        created=request.created,
                        model=request.model,
                        choices=[],
                        usage=request.usage(self.stream),
                        system_fingerprint=request.server.settings.fingerprint,
                    )
                )
            )
        yield Event(DONE)

    def failure(self, error: ApiError) -> list[Event]:
        """The stream breaks."""
        return broken(error, self.request.server)


def _prompts(prompt: Any) -> list[Any]:
    if isinstance(prompt, str):
        return [prompt]
    if not prompt:
        raise ApiError("You must pass at least one prompt")
    if all(isinstance(part, int) for part in prompt):
        return [prompt]
    if any(not part for part in prompt):
        raise ApiError("The decoder prompt cannot be empty")
    return list(prompt)
