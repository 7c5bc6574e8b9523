"""openai for Python: whole, streamed, asynchronous, its helpers, and the Responses interface."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pydantic
from stepping import ABOUT, WEATHER, Task, Unjudged, take

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "weather", "description": ABOUT, "parameters": WEATHER, "strict": True},
}
LIMIT, ROOM = 64, 400


class Verdict(pydantic.BaseModel):
    """What a structured answer is parsed into."""

    answer: Literal["yes", "no"]
    sure: bool


def client(task: Task, kind: str = "OpenAI") -> Any:
    """A client that does not retry: a failure is to be seen."""
    import openai

    return getattr(openai, kind)(base_url=task.v1, api_key=task.key, max_retries=0, timeout=100)


def asked(task: Task, step: str, room: int = LIMIT) -> dict[str, Any]:
    """The arguments that every chat of a step has."""
    messages = [{"role": "user", "content": task.ask(step)}]
    return {"model": task.model, "messages": messages, "max_tokens": room, "temperature": 0}


def judged(task: Task, step: str, answer: Any) -> None:
    """Whether a completion is one, however it came."""
    choice = answer.choices[0]
    task.same(step, choice.message.content, choice.finish_reason)
    assert choice.finish_reason in ("stop", "length"), f"finish_reason {choice.finish_reason!r}"
    assert answer.id, "the completion has no id"
    assert answer.created > 0, f"created {answer.created!r}"


def models(task: Task) -> None:
    ids = [one.id for one in client(task).models.list()]
    assert task.model in ids, f"models.list() gives {ids} without {task.model!r}"


def chat(task: Task) -> None:
    answer = client(task).chat.completions.create(**asked(task, "chat"))
    judged(task, "chat", answer)
    used = answer.usage
    assert used, "the answer has no usage"
    assert used.total_tokens == used.prompt_tokens + used.completion_tokens, f"usage {used}"


def chat_async(task: Task) -> None:
    async def ask() -> Any:
        async with client(task, "AsyncOpenAI") as one:
            return await one.chat.completions.create(**asked(task, "chat"))

    judged(task, "chat", asyncio.run(ask()))


def stream(task: Task) -> None:
    text, ids, used, ended = "", set(), None, None
    more = {"stream": True, "stream_options": {"include_usage": True}}
    for chunk in client(task).chat.completions.create(**asked(task, "chat"), **more):
        ids.add(chunk.id)
        used = chunk.usage or used
        for choice in chunk.choices:
            text += choice.delta.content or ""
            ended = choice.finish_reason or ended
    task.same("chat", text, ended)
    assert len(ids) == 1, f"the chunks of one stream have the ids {ids}"
    assert ended in ("stop", "length"), f"no chunk told why it ended: {ended!r}"
    assert used, "no chunk brought the usage that was asked for"


def stream_context(task: Task) -> None:
    with client(task).chat.completions.stream(**asked(task, "chat")) as events:
        kinds = [event.type for event in events]
        judged(task, "chat", events.get_final_completion())
    assert kinds, "the helper gave no event"


def parse(task: Task) -> None:
    import openai

    try:
        answer = client(task).chat.completions.parse(**asked(task, "json", ROOM), response_format=Verdict)
    except openai.LengthFinishReasonError as error:
        raise Unjudged(f"the model did not end its JSON: {error}") from error
    found = answer.choices[0].message.parsed
    assert isinstance(found, Verdict), f"parse() gives {found!r}"


def tools(task: Task) -> None:
    conversation = asked(task, "call", ROOM)
    answer = client(task).chat.completions.create(**conversation, tools=[TOOL], tool_choice=task.choice)
    message = answer.choices[0].message
    assert message.tool_calls, f"no call: {message.content!r}"
    call = message.tool_calls[0]
    task.called("call", call.function.name, call.function.arguments)
    assert call.id, "the call has no id"
    result = {"role": "tool", "tool_call_id": call.id, "content": "Sunny."}
    conversation["messages"] += [message, result]  # the SDK's own object goes back, as its pages show
    after = client(task).chat.completions.create(**conversation, tools=[TOOL], tool_choice="auto")
    if task.says:
        task.same("call", after.choices[0].message.content)


def stream_tools(task: Task) -> None:
    wish = {"tools": [TOOL], "tool_choice": task.choice}
    with client(task).chat.completions.stream(**asked(task, "call", ROOM), **wish) as events:
        done = [one for one in events if one.type == "tool_calls.function.arguments.done"]
        final = events.get_final_completion().choices[0].message.tool_calls
    assert final, "the stream brought no call"
    assert done, "the helper never told that the arguments were done"
    task.called("call", final[0].function.name, final[0].function.arguments)
    assert done[0].arguments == final[0].function.arguments, "the event and the final call differ"


def responses(task: Task) -> None:
    answer = client(task).responses.create(
        model=task.model, input=task.ask("chat"), max_output_tokens=LIMIT, temperature=0
    )
    task.same("chat", answer.output_text, answer.status)
    assert answer.usage, "the response has no usage"


def responses_stream(task: Task) -> None:
    with client(task).responses.stream(
        model=task.model, input=task.ask("chat"), max_output_tokens=LIMIT, temperature=0
    ) as events:
        text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        final = events.get_final_response()
    task.same("chat", final.output_text, final.status)
    assert text == final.output_text, f"the deltas give {text!r}, the response {final.output_text!r}"


def refused(task: Task) -> None:
    import openai

    try:
        client(task).chat.completions.create(**{**asked(task, "chat"), "max_tokens": -1})
    except openai.BadRequestError as error:
        assert error.body, "the error has no body that the SDK could read"
        assert "message" in error.body, f"the error's body has no message: {error.body}"
    else:
        raise AssertionError("max_tokens = -1 was answered, and no BadRequestError raised")


if __name__ == "__main__":
    take(
        "openai",
        {
            "models": models,
            "chat": chat,
            "async": chat_async,
            "stream": stream,
            "stream-helper": stream_context,
            "parse": parse,
            "tools": tools,
            "stream-tools": stream_tools,
            "responses": responses,
            "responses-stream": responses_stream,
            "refused": refused,
        },
    )
