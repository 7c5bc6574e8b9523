"""A server's parsers without the server: texts through vLLM's own parser objects, as chat answers use them.

    PYTHON pytest_vllm/scripted/alone.py < JOBS

It runs in the Python that has vLLM and imports nothing of ours. A line of input is a job: `{"tool",
"reasoning", "model", "kwargs", "tools", "cases": [{"id", "mode", "script"}]}`; a line of output is what came:
`{"tool", "reasoning", "id", "mode", "content", "thoughts", "calls": [[name, arguments]], "error"}`, or for
the whole job, without `id`, when the parsers cannot be made. Modes: whole, stream and split (token by token),
chunks (five tokens at once), once (all tokens in the event that ends the answer). A script is a text, or a
list of texts that are tokenised one by one.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 5
PROMPT = "<|im_start|>assistant\n"


def main() -> None:
    """Read jobs, write what came."""
    out = sys.stdout
    sys.stdout = sys.stderr  # vLLM's log has no place in the answers
    for line in sys.stdin:
        job = json.loads(line)
        named = {"tool": job["tool"], "reasoning": job["reasoning"]}
        for found in answers(job):
            print(json.dumps({**named, **found}), file=out, flush=True)


def answers(job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What comes for each case of a job, or the error that keeps its parsers from being made."""
    from transformers import AutoTokenizer  # type: ignore[import-not-found] # noqa: PLC0415
    from vllm.parser.parser_manager import ParserManager  # type: ignore[import-not-found] # noqa: PLC0415

    try:
        tokenizer = AutoTokenizer.from_pretrained(job["model"])
        made = ParserManager.get_parser(
            tool_parser_name=job["tool"] or None,
            reasoning_parser_name=job["reasoning"] or None,
            enable_auto_tools=bool(job["tool"]),
            model_name="scripted",
        )
        made(tokenizer, None, chat_template_kwargs=job["kwargs"])
    except Exception as error:  # noqa: BLE001 - whatever keeps a server from starting is the finding
        yield {"error": f"{type(error).__name__}: {error}"}
        return
    for case in job["cases"]:
        named = {"id": case["id"], "mode": case["mode"]}
        try:
            yield {**named, **answer(made, tokenizer, job, case)}
        except Exception as error:  # noqa: BLE001 - what breaks a request is the finding
            yield {**named, "error": f"{type(error).__name__}: {error}"}


def answer(made: Any, tokenizer: Any, job: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """What the parsers make of one script."""
    from vllm.entrypoints.openai.chat_completion.protocol import (  # type: ignore[import-not-found] # noqa: PLC0415
        ChatCompletionRequest,
    )

    request = ChatCompletionRequest(
        model="scripted",
        messages=[{"role": "user", "content": "Go on."}],
        tools=job["tools"] or None,
        chat_template_kwargs=job["kwargs"],
        stream=case["mode"] != "whole",
    )
    parser = made(tokenizer, request.tools, chat_template_kwargs=job["kwargs"])
    request = parser.adjust_request(request)
    script = [case["script"]] if isinstance(case["script"], str) else case["script"]
    ids = [number for text in script for number in tokenizer.encode(text, add_special_tokens=False)]
    skips = request.skip_special_tokens
    if case["mode"] == "whole":
        text = "".join(piece for piece, _ in steps(tokenizer, ids, 1, skips=skips))
        thoughts, content, calls = parser.parse(
            text, request, enable_auto_tools=bool(job["tool"]), model_output_token_ids=ids
        )
        return said(thoughts, content, [(call.name, call.arguments) for call in calls or ()])
    prompt = tokenizer.encode(PROMPT, add_special_tokens=False)
    pieces = list(steps(tokenizer, ids, CHUNK if case["mode"] == "chunks" else 1, skips=skips))
    events = [*pieces, ("", [tokenizer.eos_token_id])]
    if case["mode"] == "once":
        events = [("".join(text for text, _ in events), [*ids, tokenizer.eos_token_id])]
    deltas = [
        parser.parse_delta(text, some, request, prompt_token_ids=prompt, finished=number == len(events))
        for number, (text, some) in enumerate(events, 1)
    ]
    return joined([delta for delta in deltas if delta is not None])


def steps(tokenizer: Any, ids: list[int], size: int, *, skips: bool) -> Iterator[tuple[str, list[int]]]:
    """The text that each step of the engine adds, and its tokens. A character that is not whole yet waits."""
    from tokenizers.decoders import DecodeStream  # type: ignore[import-not-found] # noqa: PLC0415

    stream = DecodeStream(skip_special_tokens=skips)
    inner = tokenizer._tokenizer  # noqa: SLF001 - vLLM's own detokeniser takes it the same way
    for some in (
        ids[:1],
        *(ids[at : at + size] for at in range(1, len(ids), size)),
    ):  # the first comes by itself
        yield "".join(stream.step(inner, number) or "" for number in some), some


def joined(deltas: list[Any]) -> dict[str, Any]:
    """A stream's parts, put together as a client does it: calls by their index."""
    calls: dict[int, list[str]] = {}
    for delta in deltas:
        for part in delta.tool_calls or ():
            call = calls.setdefault(part.index, ["", ""])
            call[0] += (part.function and part.function.name) or ""
            call[1] += (part.function and part.function.arguments) or ""
    thoughts = "".join(delta.reasoning or "" for delta in deltas)
    return said(thoughts, "".join(delta.content or "" for delta in deltas), list(calls.values()))


def said(thoughts: str | None, content: str | None, calls: list[Any]) -> dict[str, Any]:
    """An answer as it is reported."""
    return {
        "content": content or "",
        "thoughts": thoughts or "",
        "calls": [[name or "", arguments or ""] for name, arguments in calls],
    }


if __name__ == "__main__":
    main()
