"""LangChain: ChatOpenAI invoked, streamed, in a batch, with bound tools, with structured output."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel
from stepping import ABOUT, WEATHER, Task, take

TOOL = {"type": "function", "function": {"name": "weather", "description": ABOUT, "parameters": WEATHER}}
LIMIT, ROOM = 64, 400


class Verdict(BaseModel):
    """What a structured answer is parsed into."""

    answer: Literal["yes", "no"]
    sure: bool


def model(task: Task, room: int = LIMIT) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model=task.model,
        base_url=task.v1,
        api_key=task.key,
        max_tokens=room,
        temperature=0,
        max_retries=0,
        timeout=100,
        stream_usage=True,
        use_responses_api=False,
    )


def invoke(task: Task) -> None:
    answer = model(task).invoke(task.ask("chat"))
    task.same("chat", answer.content, answer.response_metadata.get("finish_reason"))
    assert answer.usage_metadata, "the message has no usage_metadata"


def stream(task: Task) -> None:
    whole: Any = None
    for chunk in model(task).stream(task.ask("chat")):
        whole = chunk if whole is None else whole + chunk
    assert whole is not None, "the stream gave no chunk"
    task.same("chat", whole.content, whole.response_metadata.get("finish_reason"))
    assert whole.usage_metadata, "the added chunks have no usage_metadata"


def batch(task: Task) -> None:
    for answer in model(task).batch([task.ask("chat")] * 4):
        task.same("chat", answer.content, answer.response_metadata.get("finish_reason"))


def tools(task: Task) -> None:
    from langchain_core.messages import HumanMessage, ToolMessage

    bound = model(task, ROOM).bind_tools([TOOL], tool_choice=task.choice)
    question = HumanMessage(task.ask("call"))
    answer = bound.invoke([question])
    assert answer.tool_calls, f"no call: {answer.content!r}, invalid: {answer.invalid_tool_calls}"
    call = answer.tool_calls[0]
    task.called("call", call["name"], call["args"])
    result = ToolMessage("Sunny.", tool_call_id=call["id"])
    after = model(task, ROOM).bind_tools([TOOL]).invoke([question, answer, result])
    if task.says:
        task.same("call", after.content)


def structured(task: Task) -> None:
    from openai import LengthFinishReasonError
    from stepping import Unjudged

    try:
        found = (
            model(task, ROOM).with_structured_output(Verdict, method="json_schema").invoke(task.ask("json"))
        )
    except LengthFinishReasonError as error:
        raise Unjudged(f"the model did not end its JSON: {error}") from error
    assert isinstance(found, Verdict), f"with_structured_output() gives {found!r}"


if __name__ == "__main__":
    steps = {"invoke": invoke, "stream": stream, "batch": batch, "tools": tools, "structured": structured}
    take("langchain-openai", steps)
