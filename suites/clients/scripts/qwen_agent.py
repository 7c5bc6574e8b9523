"""Qwen Code without a person: one task over chat completions, its home in a temporary folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents import WISH, at_work, done, serve

if TYPE_CHECKING:
    from stepping import Task


def work(task: Task, program: str) -> None:
    """The task, as `qwen --yolo` does it; the key comes by the environment."""
    words = [program, "--yolo", "--output-format", "text", "--model", task.model, "--auth-type", "openai"]
    more = {"OPENAI_API_KEY": task.key, "OPENAI_BASE_URL": task.v1, "OPENAI_MODEL": task.model}
    folder, printed, _ = at_work("qwen-code", [*words, WISH.format("qwen-code")], more)
    done(task, "qwen-code", folder, printed)


if __name__ == "__main__":
    serve("qwen", work)
