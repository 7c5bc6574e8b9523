"""How a prompt says that the reasoning is over, where constraints wait for that: the server is asked.

With a reasoning parser vLLM holds completions to no constraint before the reasoning has ended, and a prompt
of plain words never ends it (vllm-project/vllm#57726). Which marks end it depends on the parser: each form is
tried.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_vllm.run.needs import BOUND
from pytest_vllm.wire.recording import Undecided
from pytest_vllm.wire.server import CLOSED, Capability

if TYPE_CHECKING:
    from pytest_vllm.run.findings import Findings
    from pytest_vllm.wire.recording import Recording
    from pytest_vllm.wire.server import Server

#: How reasoning that is over stands in a prompt, by families of templates.
FORMS = (
    CLOSED,
    "[THINK][/THINK]",
    "<|channel>thought\n<channel|>",
    "<|channel|>analysis<|message|><|end|><|start|>assistant<|channel|>final<|message|>",
    "<mm:think></mm:think>",
    "<seed:think></seed:think>",
    "<thought></thought>",
    "◁think▷◁/think▷",
)
WORD = '"zzq"'
THREAD = "vllm-project/vllm#57726"


async def with_thought(server: Server, ask: Findings) -> Server:
    """The server, with the form of reasoning that is over, where it reasons and can be held to a constraint.

    One request, of as many short prompts as there are forms. A server that does not answer it stays as it is.
    """
    if not all(map(server.can, ("completions", "structured-output", "reasoning"))):
        return server
    rule = {"name": "word", "schema": {"enum": [WORD.strip('"')]}}
    shape = {"type": "json_schema", "json_schema": rule}
    body = {"prompt": [f"{form}Write:" for form in FORMS], "max_tokens": 2, "response_format": shape}
    texts = _texts(await ask.trial("/v1/completions", body))
    if len(texts) != len(FORMS):
        return server
    held = [form for form, text in zip(FORMS, texts, strict=True) if text and WORD.startswith(text)]
    how = f"trial request: {len(held)} of {len(FORMS)} ways to end the reasoning first were obeyed"
    capability = Capability(BOUND, bool(held), how if held else f"{how}, {THREAD}")
    return replace(
        server, closed=held[0] if held else CLOSED, capabilities={**server.capabilities, BOUND: capability}
    )


def _texts(answer: Recording) -> list[str]:
    """The text of each choice, by its index; none where the answer is malformed."""
    try:
        choices: list[dict[str, Any]] = sorted(answer.ok["choices"], key=lambda one: one["index"])
        return [str(one["text"]).strip() for one in choices]
    except (Undecided, LookupError, TypeError):
        return []
