"""anthropic for Python: Messages whole, streamed by its helper, with tools, counted."""

from __future__ import annotations

from typing import Any

from stepping import ABOUT, WEATHER, Task, take

TOOL = {"name": "weather", "description": ABOUT, "input_schema": WEATHER}
LIMIT, ROOM = 64, 400


def client(task: Task) -> Any:
    """A client that does not retry; its key goes as vLLM reads it, in `Authorization`."""
    import anthropic

    return anthropic.Anthropic(base_url=task.url, auth_token=task.key, max_retries=0, timeout=100)


def asked(task: Task, step: str, room: int = LIMIT) -> dict[str, Any]:
    messages = [{"role": "user", "content": task.ask(step)}]
    more = {"temperature": 0}  # newer versions of the SDK take no temperature of their own
    return {"model": task.model, "messages": messages, "max_tokens": room, "extra_body": more}


def choice(task: Task) -> dict[str, str]:
    return {"type": "auto" if task.says else "any"}


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def judged(task: Task, message: Any) -> None:
    task.same("chat", text_of(message), message.stop_reason)
    assert message.stop_reason in ("end_turn", "max_tokens"), f"stop_reason {message.stop_reason!r}"
    assert message.usage.output_tokens > 0, f"usage {message.usage}"


def messages(task: Task) -> None:
    judged(task, client(task).messages.create(**asked(task, "chat")))


def stream(task: Task) -> None:
    with client(task).messages.stream(**asked(task, "chat")) as events:
        text = "".join(events.text_stream)
        final = events.get_final_message()
    judged(task, final)
    assert text == text_of(final), f"the deltas give {text!r}, the message {text_of(final)!r}"


def calls_of(message: Any) -> list[Any]:
    found = [block for block in message.content if block.type == "tool_use"]
    assert found, f"no call: {message.content!r}"
    assert message.stop_reason == "tool_use", f"stop_reason {message.stop_reason!r} beside a call"
    return found


def tools(task: Task) -> None:
    conversation = {**asked(task, "call", ROOM), "tools": [TOOL]}
    message = client(task).messages.create(**conversation, tool_choice=choice(task))
    call = calls_of(message)[0]
    task.called("call", call.name, call.input)
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "Sunny."}
    conversation["messages"] += [
        {"role": "assistant", "content": message.content},
        {"role": "user", "content": [result]},
    ]
    after = client(task).messages.create(**conversation)
    if task.says:
        task.same("call", text_of(after))


def stream_tools(task: Task) -> None:
    wish = {"tools": [TOOL], "tool_choice": choice(task)}
    with client(task).messages.stream(**asked(task, "call", ROOM), **wish) as events:
        final = events.get_final_message()
    call = calls_of(final)[0]
    task.called("call", call.name, call.input)


def count(task: Task) -> None:
    body = {key: value for key, value in asked(task, "chat").items() if key in ("model", "messages")}
    told = client(task).messages.count_tokens(**body).input_tokens
    usage = client(task).messages.create(**asked(task, "chat")).usage
    # what came out of the cache is counted apart
    used = (
        usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    )
    assert told == used, f"count_tokens() tells {told} tokens, the same prompt used {used}"


def refused(task: Task) -> None:
    import anthropic

    try:
        client(task).messages.create(**{**asked(task, "chat"), "max_tokens": -1})
    except anthropic.BadRequestError as error:
        body = error.body
    else:
        raise AssertionError("max_tokens = -1 was answered, and no BadRequestError raised")
    assert isinstance(body, dict), f"the error's body is {body!r}"
    assert body.get("error", {}).get("message"), f"the error's body has no error.message: {body}"


if __name__ == "__main__":
    take(
        "anthropic",
        {
            "messages": messages,
            "stream": stream,
            "tools": tools,
            "stream-tools": stream_tools,
            "count": count,
            "refused": refused,
        },
    )
