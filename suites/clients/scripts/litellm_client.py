"""LiteLLM's SDK by its provider for vLLM: whole, asynchronous, streamed, with tools."""

from __future__ import annotations

import asyncio
from typing import Any

from stepping import ABOUT, WEATHER, Task, take

TOOL = {"type": "function", "function": {"name": "weather", "description": ABOUT, "parameters": WEATHER}}
LIMIT, ROOM = 64, 400


def asked(task: Task, step: str, room: int = LIMIT) -> dict[str, Any]:
    return {
        "model": f"hosted_vllm/{task.model}",
        "api_base": task.v1,
        "api_key": task.key,
        "messages": [{"role": "user", "content": task.ask(step)}],
        "max_tokens": room,
        "temperature": 0,
        "num_retries": 0,
        "timeout": 100,
    }


def judged(task: Task, answer: Any) -> None:
    choice = answer.choices[0]
    task.same("chat", choice.message.content, choice.finish_reason)
    assert choice.finish_reason in ("stop", "length"), f"finish_reason {choice.finish_reason!r}"
    assert answer.usage.total_tokens > 0, f"usage {answer.usage}"


def completion(task: Task) -> None:
    import litellm

    judged(task, litellm.completion(**asked(task, "chat")))


def completion_async(task: Task) -> None:
    import litellm

    judged(task, asyncio.run(litellm.acompletion(**asked(task, "chat"))))


def stream(task: Task) -> None:
    import litellm

    chunks = list(litellm.completion(**asked(task, "chat"), stream=True))
    text = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    ended = [one.choices[0].finish_reason for one in chunks if one.choices and one.choices[0].finish_reason]
    assert ended, "no chunk told why the stream ended"
    task.same("chat", text, ended[-1])
    judged(task, litellm.stream_chunk_builder(chunks))


def tools(task: Task) -> None:
    import litellm

    conversation = asked(task, "call", ROOM)
    answer = litellm.completion(**conversation, tools=[TOOL], tool_choice=task.choice)
    message = answer.choices[0].message
    assert message.tool_calls, f"no call: {message.content!r}"
    call = message.tool_calls[0]
    task.called("call", call.function.name, call.function.arguments)
    result = {"role": "tool", "tool_call_id": call.id, "content": "Sunny."}
    conversation["messages"] += [message, result]
    after = litellm.completion(**conversation, tools=[TOOL])
    if task.says:
        task.same("call", after.choices[0].message.content)


if __name__ == "__main__":
    take("litellm", {"completion": completion, "async": completion_async, "stream": stream, "tools": tools})
