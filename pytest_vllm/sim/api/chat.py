"""`POST /v1/chat/completions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim import habits
from pytest_vllm.sim.api.chatchunks import ChatChunks, chat_logprobs
from pytest_vllm.sim.api.generate import Generation, check_alive, check_model
from pytest_vllm.sim.api.history import instructed, plain
from pytest_vllm.sim.api.prompts import check_room, check_sizes, encode, output_limit
from pytest_vllm.sim.api.prompttext import prompt_logprobs
from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.api.stream import Stream
from pytest_vllm.sim.check import rules
from pytest_vllm.sim.check.body import read_json, validated
from pytest_vllm.sim.check.constraints import constraint_of
from pytest_vllm.sim.check.sampling import Sampling
from pytest_vllm.sim.errors import ApiError, Invalid
from pytest_vllm.sim.persona.persona import outputs_of, thinks, turn_of
from pytest_vllm.sim.tokens.template import render
from pytest_vllm.sim.vision import pictures

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.generation import Output
    from pytest_vllm.sim.http.server import Call

Body = dict[str, Any]
NO_TEMPLATE = (
    "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat "
    "template if the tokenizer does not define one."
)
NO_MESSAGES = "Cannot apply chat template to an empty conversation. Provide at least one message."


async def chat(server: Server, call: Call) -> Reply | None:
    """Answer a chat request, whole or as a stream."""
    return await answer(server, call, server.hooks.run("body", read_json(call.request), call.request.path))


async def answer(server: Server, call: Call, body: Any) -> Reply | None:
    """Answer a chat request whose body is read."""
    if isinstance(body, dict):
        rules.chat(body)
    return await ChatRequest(
        server, call, validated("ChatCompletionRequest", body, server.settings.version)
    ).run()


class ChatRequest:
    """One chat request on its way through the server."""

    def __init__(self, server: Server, call: Call, body: Body) -> None:
        """Take a validated body. Raises ApiError."""
        self.server, self.call, self.body = server, call, body
        self.model = check_model(server, body)
        check_alive(server)
        self.prompt_text = prompt_of(server, body)
        limit = server.settings.max_model_len
        wanted, name = body.get("max_completion_tokens"), "max_completion_tokens"
        if wanted is None:
            wanted, name = body.get("max_tokens"), "max_tokens"
        check_sizes(body, limit, wanted, name)
        prompt = encode(self.prompt_text, body, server.settings, server.tokens)
        self.prompt: list[int] = server.hooks.run("prompt", prompt, body)
        logprobs = (body.get("top_logprobs") or 0) if body.get("logprobs") else None
        self.sampling = Sampling.of(
            body, output_limit(wanted, len(self.prompt), server.settings), logprobs, server.settings
        )
        if body.get("echo") and self.sampling.prompt_logprobs is None:
            self.sampling.prompt_logprobs = body.get("top_logprobs") or 0
        request_id = call.request.headers.get("x-request-id") or body.get("request_id") or server.ids.hex()
        self.id = f"chatcmpl-{request_id}"
        self.created = int(server.clock.wall())
        self.generation: Generation | None = None

    async def run(self) -> Reply | None:
        """Generate and answer."""
        if self.body.get("stream"):
            if self.body.get("use_beam_search"):
                raise ApiError("Streaming is not currently supported with beam search")
            await self.stream(lambda stream: ChatChunks(self, stream))
            return None
        answer = await self.whole()
        if answer is not None:
            self.server.send(self.call, Reply.json(answer))
        return None

    async def whole(self) -> dict[str, Any] | None:
        """The whole answer; None when the client left before it was there."""
        outputs = self._outputs()
        self.generation = generation = Generation(self.server, self.call, outputs)
        self._submit(generation, outputs)
        await generation.finished
        return None if self.call.gone else self._whole(outputs, generation)

    @property
    def told_prompt(self) -> str | None:
        """The text of its prompt, for a request that asks: none where chats are rendered to ids at once."""
        args = self.server.settings.args
        at_once = args.get("enable_prompt_embeds") or args.get("tokenizer_mode") == "mistral"
        return self.prompt_text if self.body.get("return_prompt_text") and not at_once else None

    def cancel(self) -> None:
        """Stop generating, as if the client had left."""
        self.call.gone = True
        if self.generation:
            self.generation.abort()

    async def stream(self, writer: Callable[[Stream], Any]) -> None:
        """Send the answer as the events that a writer makes of it."""
        stream = Stream(self.server, self.call, [], self.body)
        stream.writer = events = writer(stream)
        stream.begin()
        try:
            outputs = self._outputs()
            stream.expect(outputs)
            events.prepare(outputs)
            self._submit(stream, outputs)
        except ApiError as error:
            stream.refuse(error)
            return
        await stream.finished

    def _outputs(self) -> list[Output]:
        self.sampling.verify(self.server.settings, self.server.tokens.size)
        rules.engine(self.body, self.server.settings)
        constraint = constraint_of(self.body, self.server.settings)
        check_room(len(self.prompt), self.server.settings.max_model_len)
        turn = turn_of(self.server, self.body, constraint)
        return outputs_of(self.server, turn, self.sampling, self.body)

    def _submit(self, generation: Generation, outputs: list[Output]) -> None:
        for output in outputs:
            generation.add(self.id, self.prompt, output, self.sampling, self.body)
        generation.submit(self.sampling.n)

    def _whole(self, outputs: list[Output], generation: Generation) -> dict[str, Any]:
        server, body = self.server, self.body
        chunks = ChatChunks(self, None)
        chunks.outputs = outputs
        return server.shapes.of(
            "answer",
            id=self.id,
            object="chat.completion",
            created=self.created,
            model=self.model,
            choices=[self._choice(number, output, chunks) for number, output in enumerate(outputs)],
            service_tier=None,
            system_fingerprint=server.settings.fingerprint,
            usage=chunks.usage(sum(len(output.ids) for output in outputs), generation.cached),
            prompt_logprobs=prompt_logprobs(self.prompt, self.sampling, server),
            prompt_token_ids=self.prompt if body.get("return_token_ids") else None,
            prompt_text=self.told_prompt,
            kv_transfer_params=None,
            ec_transfer_params=None,
            metrics=None,
        )

    def _choice(self, number: int, output: Output, chunks: ChatChunks) -> dict[str, Any]:
        message, finish = chunks.message(output)
        return self.server.shapes.of(
            "choice",
            index=number,
            message=message,
            logprobs=chat_logprobs(self, output, 0, len(output.ids)),
            finish_reason=finish,
            stop_reason=output.stop_reason,
            token_ids=output.ids if self.body.get("return_token_ids") else None,
            routed_experts=None,
        )


def prompt_of(server: Server, body: Body) -> str:
    """The prompt text of messages, as the chat template renders them. Raises ApiError."""
    settings = server.settings
    messages = body["messages"]
    _check_tools(server, body)
    _check_media(server, body)
    kwargs = body.get("chat_template_kwargs") or {}
    given = body.get("chat_template") is not None or kwargs.get("chat_template") is not None
    if given and not settings.args.get("trust_request_chat_template"):
        text = (
            "Chat template is passed with request, but --trust-request-chat-template is not set. Refused "
            "request "
        )
        raise ApiError(text + "with untrusted chat template.")
    if not (settings.kind.template or given):
        raise ApiError(NO_TEMPLATE)
    if not messages:
        raise ApiError(NO_MESSAGES if settings.version >= "0.27.0" else "list index out of range")
    rules.continued(body)
    tools = body.get("tools")
    if body.get("tool_choice") == "none" and settings.args.get("exclude_tools_when_tool_choice_none"):
        tools = None
    given_on = instructed([plain(message, settings) for message in messages], settings)
    habits.checked(settings.environ, given_on)
    text = render(
        given_on,
        tools,
        ask=body.get("add_generation_prompt", True),
        continued=bool(body.get("continue_final_message")),
        thinking=_template_thinking(server, body),
        prefilled_think=settings.reasoning_parser == "deepseek_r1",
    )
    return habits.begun(settings.environ, text)


def _template_thinking(server: Server, body: Body) -> bool | None:
    if not server.settings.reasoning_parser or thinks(server, body):
        return None
    return False if server.settings.thinking != "none" else None


def _check_tools(server: Server, body: Body) -> None:
    choice = body.get("tool_choice")
    if (
        (server.settings.tool_parser and server.settings.auto_tools)
        or choice in (None, "none")
        or body.get("tools") is None
    ):
        return
    if choice == "auto":
        text = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
        raise ApiError(text)
    if server.settings.version >= "0.24.0" and not server.settings.tool_parser:
        shown = f'function "{choice["function"]["name"]}"' if isinstance(choice, dict) else f'"{choice}"'
        raise ApiError(f"tool_choice={shown} requires --tool-call-parser to be set")


def _check_media(server: Server, body: Body) -> None:
    if server.settings.vision is not None:
        server.settings.vision.admit(len(list(pictures(body["messages"]))))
    if server.settings.version < "0.31.0" or server.settings.args.get("trust_request_mm_kwargs"):
        return
    for name, what in (
        ("mm_processor_kwargs", "preprocessing"),
        ("media_io_kwargs", "media loading"),
    ):
        if body.get(name):
            text = (
                f"Per-request {name} are disabled by default because they can change multimodal {what} "
                "resource "
            )
            text += "usage. Start the server with --trust-request-mm-kwargs only when clients are trusted."
            raise Invalid(text, name)
