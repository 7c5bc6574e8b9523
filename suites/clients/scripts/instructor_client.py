"""Instructor: answers as Python objects, by a forced tool and by a JSON schema."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel
from stepping import Task, take

ROOM = 400


class Verdict(BaseModel):
    """What an answer is parsed into."""

    answer: Literal["yes", "no"]
    sure: bool


def asked(task: Task, mode: str, step: str) -> Verdict:
    import instructor
    import openai

    carrier = openai.OpenAI(base_url=task.v1, api_key=task.key, max_retries=0, timeout=100)
    client: Any = instructor.from_openai(carrier, mode=instructor.Mode[mode])
    messages = [{"role": "user", "content": task.ask(step)}]
    found = client.chat.completions.create(
        model=task.model,
        messages=messages,
        response_model=Verdict,
        max_retries=0,
        max_tokens=ROOM,
        temperature=0,
    )
    assert isinstance(found, Verdict), f"the client gives {found!r}"
    return found


def tools(task: Task) -> None:
    found = asked(task, "TOOLS", "form")
    if task.says:
        said = task.says["form"][0]["calls"][0]["arguments"]
        assert found.model_dump() == said, f"the client gives {found!r}, the model said {said}"


def schema(task: Task) -> None:
    asked(task, "JSON_SCHEMA", "json")


if __name__ == "__main__":
    take("instructor", {"tools": tools, "schema": schema})
