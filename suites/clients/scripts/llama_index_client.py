"""LlamaIndex: OpenAILike that chats, streams, completes, and calls a function as its tool."""

from __future__ import annotations

from typing import Any

from stepping import Task, take

LIMIT, ROOM = 64, 400


def model(task: Task, room: int = LIMIT, *, chats: bool = True) -> Any:
    from llama_index.llms.openai_like import OpenAILike

    return OpenAILike(
        model=task.model,
        api_base=task.v1,
        api_key=task.key,
        max_tokens=room,
        temperature=0,
        max_retries=0,
        timeout=100,
        is_chat_model=chats,
        is_function_calling_model=True,
        context_window=4096,
    )


def messages(task: Task, step: str) -> list[Any]:
    from llama_index.core.llms import ChatMessage

    return [ChatMessage(role="user", content=task.ask(step))]


def chat(task: Task) -> None:
    answer = model(task).chat(messages(task, "chat"))
    task.same("chat", answer.message.content, answer.raw.choices[0].finish_reason)


def stream(task: Task) -> None:
    last, text = None, ""
    for last in model(task).stream_chat(messages(task, "chat")):
        text += last.delta or ""
    assert last is not None, "the stream gave nothing"
    task.same("chat", last.message.content, "length")
    assert text == last.message.content, f"the deltas give {text!r}, the message {last.message.content!r}"


def complete(task: Task) -> None:
    answer = model(task, chats=False).complete("Once upon a time [[say:plain]]")
    assert isinstance(answer.text, str), f"the client gives {answer.text!r} for a text"
    if not task.says:
        assert answer.text, "the client gives an empty text"


def tools(task: Task) -> None:
    from llama_index.core.tools import FunctionTool

    def weather(city: str) -> str:
        """The weather of a city."""
        return f"Sunny in {city}."

    one = model(task, ROOM)
    tool = FunctionTool.from_defaults(weather)
    answer = one.chat_with_tools(
        [tool], chat_history=messages(task, "call"), tool_required=not task.says, strict=False
    )
    calls = one.get_tool_calls_from_response(answer, error_on_no_tool_call=False)
    assert calls, f"no call: {answer.message!r}"
    task.called("call", calls[0].tool_name, calls[0].tool_kwargs)


if __name__ == "__main__":
    steps = {"chat": chat, "stream": stream, "complete": complete, "tools": tools}
    take("llama-index-llms-openai-like", steps)
