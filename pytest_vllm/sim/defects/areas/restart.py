"""Servers that do not come back as they went: something stays behind, or something else comes up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.registry import add, defect

if TYPE_CHECKING:
    from pytest_vllm.sim.boot.deployment import Deployment
    from pytest_vllm.sim.persona.turn import Answer, Turn


def _comes_back_with(name: str, summary: str, check: str, *words: str, **facts: Any) -> None:
    """The second start has other arguments than the first."""

    def other(argv: list[str]) -> list[str]:
        return [*argv, *words]

    add(name, summary, {"again": other}, catches=(check,), **facts)


_comes_back_with(
    "restart.other-name",
    "After a restart the model has another name.",
    "restart.same-models",
    "--served-model-name",
    "sim-model-2",
)
_comes_back_with(
    "restart.shorter-context",
    "After a restart the context is shorter than it was.",
    "restart.same-models",
    "--max-model-len",
    "2048",
)
_comes_back_with(
    "restart.smaller-cache",
    "After a restart the cache is a part of what it was: something else took the memory meanwhile.",
    "restart.same-cache",
    "--num-gpu-blocks-override",
    "700",
    faults=("MEM-024",),
)
_comes_back_with(
    "restart.refused",
    "The server does not start a second time: what it is started with was changed meanwhile.",
    "restart.starts-again",
    "--enable-reasoning",
)


@defect("restart.memory-stays", on="left", catches=["restart.memory-given-back"], faults=["MEM-004"])
def memory_stays(left: str, deployment: Deployment) -> str:
    """The driver keeps the memory of a server that has ended; the next start finds too little."""
    del left, deployment
    return "memory"


@defect("restart.worker-stays", on="left", catches=["restart.nothing-left"], faults=["MEM-012"])
def worker_stays(left: str, deployment: Deployment) -> str:
    """A worker outlives the server that was asked to end, and holds its memory."""
    del left, deployment
    return "worker"


class _OtherWords:
    """Says something else once it was started again."""

    def __init__(self) -> None:
        self.again = False

    def start(self, argv: list[str]) -> list[str]:
        self.again = True
        return argv

    def answer(self, answer: Answer, turn: Turn) -> Answer:
        if self.again and not turn.constraint and not answer.calls:
            answer.content = f"Once more: {answer.content}"
        return answer


_WORDS = _OtherWords()
add(
    "restart.other-text",
    "After a restart the same greedy request gets another answer.",
    {"again": _WORDS.start, "answer": _WORDS.answer},
    catches=("restart.same-text",),
)


@defect("restart.deaf", on="stop", catches=["restart.ends-by-itself"])
def deaf(seconds: float, deployment: Deployment) -> float:
    """The server goes on for an hour after it was asked to end."""
    del seconds, deployment
    return 3600.0
