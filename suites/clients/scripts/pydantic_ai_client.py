"""Pydantic AI: an agent that runs, streams, and calls a Python function as its tool."""

from __future__ import annotations

import asyncio
from typing import Any

from stepping import Task, take

LIMIT, ROOM = 64, 400


def agent(task: Task, room: int = LIMIT, **more: Any) -> Any:
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    carrier = AsyncOpenAI(base_url=task.v1, api_key=task.key, max_retries=0, timeout=100)
    model = OpenAIChatModel(task.model, provider=OpenAIProvider(openai_client=carrier))
    return Agent(model, model_settings={"max_tokens": room, "temperature": 0, **more}, retries=0)


def run(task: Task) -> None:
    result = agent(task).run_sync(task.ask("chat"))
    task.same("chat", result.output)


def stream(task: Task) -> None:
    async def texts() -> str:
        async with agent(task).run_stream(task.ask("chat")) as result:
            return str([text async for text in result.stream_text(delta=False, debounce_by=None)][-1])

    task.same("chat", asyncio.run(texts()))


def tools(task: Task) -> None:
    from pydantic_ai.usage import UsageLimits

    called: list[str] = []
    one = agent(task, ROOM)

    @one.tool_plain
    def weather(city: str) -> str:
        """The weather of a city."""
        called.append(city)
        return "Sunny."

    result = one.run_sync(task.ask("call"), usage_limits=UsageLimits(request_limit=4))
    if task.says:
        task.called("call", "weather", {"city": called[0]} if called else None)
        task.same("call", result.output)


if __name__ == "__main__":
    take("pydantic-ai-slim", {"run": run, "stream": stream, "tools": tools})
