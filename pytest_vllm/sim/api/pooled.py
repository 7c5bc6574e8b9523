"""What all pooling routes share: reading texts, the way through the engine, the frame of answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.chat import prompt_of
from pytest_vllm.sim.api.generate import Generation, check_alive
from pytest_vllm.sim.api.prompts import encode, fit
from pytest_vllm.sim.check import rules
from pytest_vllm.sim.check.body import read_json, validated_as_any
from pytest_vllm.sim.errors import ApiError, Invalid

if TYPE_CHECKING:
    from pytest_vllm.sim.api.reply import Reply
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.http.server import Call

Body = dict[str, Any]
_REMOVED = {
    "score": "`score` task was removed; use `classify` instead.",
    "encode": "`encode` task was removed; use `token_embed` or `token_classify` instead.",
}


@dataclass
class PooledRequest:
    """One request to a pooling route.

    Args:
        server: who is asked.
        call: the request and the way to answer it.
        body: validated.
        prefix: of its id.
    """

    server: Server
    call: Call
    body: Body
    prefix: str
    id: str = field(init=False)
    model: str = field(init=False)

    def __post_init__(self) -> None:
        """Check model, salt and truncation. Raises ApiError."""
        self.model = self._model()
        check_alive(self.server)
        given = self.call.request.headers.get("x-request-id") or self.body.get("request_id")
        self.id = f"{self.prefix}-{given or self.server.ids.hex()}"
        keep = self.body.get("truncate_prompt_tokens")
        if keep is not None and keep > self.server.settings.max_model_len:
            text = "truncate_prompt_tokens value is greater than max_model_len. Please request a smaller "
            raise ApiError(f"{text}truncation size.")

    def _model(self) -> str:
        wanted, settings = self.body.get("model"), self.server.settings
        if not wanted or wanted in settings.names:
            return settings.name
        if wanted in self.server.loras:
            return str(wanted)
        raise ApiError(f"The model `{wanted}` does not exist.", 404, "NotFoundError")

    def text_prompts(self) -> list[list[int]]:
        """Token ids of each text, list of ids or conversation. Raises ApiError."""
        body = self.body
        given: Any = body["messages"] if "messages" in body else body["input"]
        if _is_messages(given):
            return [self._chat(given)]
        if isinstance(given, list) and given and all(_is_messages(part) for part in given):
            return [self._chat(part) for part in given]
        parts = given if isinstance(given, list) else [given]
        if parts and all(type(part) is int for part in parts):
            parts = [parts]
        if not parts:
            raise ApiError("You must pass at least one prompt")
        return [self._encoded(part) for part in parts]

    def _chat(self, messages: list[Body]) -> list[int]:
        body = {"add_generation_prompt": False, **self.body, "messages": messages}
        return encode(prompt_of(self.server, body), body, self.server.settings, self.server.tokens)

    def _encoded(self, part: Any) -> list[int]:
        server = self.server
        if isinstance(part, str):
            ids = encode(part, self.body, server.settings, server.tokens)
        else:
            wrong = [id_ for id_ in part if not 0 <= id_ < server.tokens.size]
            if wrong:
                raise ApiError(f"Token id {wrong[0]} is out of vocabulary")
            ids = fit(part, self.body, server.settings)
        if not ids:
            raise Invalid("The decoder prompt cannot be empty")
        return ids

    async def run(self, prompts: list[list[int]], *, by_token: bool = False) -> bool:
        """Let the engine compute the prompts; False when the client left meanwhile."""
        generation = Generation(self.server, self.call, [])
        for number, prompt in enumerate(prompts):
            generation.pool(f"{self.id}-{number}", prompt, self.body, skip_cache=by_token)
        generation.submit(1)
        await generation.finished
        return not self.call.gone

    def answer(self, tokens: int, **more: Any) -> Body:
        """A list, as these routes send it."""
        return {
            "id": self.id,
            "object": "list",
            "created": int(self.server.clock.wall()),
            "model": self.model,
            **more,
            "usage": self.server.shapes.usage(tokens, 0),
        }


def asked(server: Server, call: Call, names: tuple[str, ...]) -> Body:
    """The body of a request as the first of these classes that takes it. Raises ApiError."""
    return checked(server, server.hooks.run("body", read_json(call.request), call.request.path), names)


def checked(server: Server, body: Any, names: tuple[str, ...]) -> Body:
    """A body that is read already, likewise."""
    version = server.settings.version
    if isinstance(body, dict):
        if version >= "0.20.0" and "normalize" in body and names[0] != "RerankRequest":
            raise Invalid("Parameter `normalize` was removed; use `use_activation` instead.", "normalize")
        if version >= "0.20.0" and body.get("task") in _REMOVED:
            raise Invalid(_REMOVED[body["task"]], "task")
        rules.cache_salt(body)
        rules.generation_prompt(body)
    return validated_as_any(names, body, version)


def unsupported(name: str) -> Any:
    """A handler that says that the model has no such interface."""

    async def refuse(server: Server, call: Call) -> Reply:
        del call
        text = f"The model does not support {name} API"
        if server.settings.version < "0.16.0":
            raise ApiError(text)
        raise ApiError(text, 501, "NotImplementedError")

    return refuse


def _is_messages(given: Any) -> bool:
    return (
        isinstance(given, list)
        and bool(given)
        and all(isinstance(part, dict) and isinstance(part.get("role"), str) for part in given)
    )
