"""The same token behind the same words is as likely over any route, said or read."""

from __future__ import annotations

from typing import Any

from pytest_vllm import MUST, Recording, Server, check, need, only_if

from ..oracle.drift import apart  # noqa: TID252 - suites lie together

ROUTES = "fault:vllm-project/vllm/issues/11778"
READ = "fault:vllm-project/vllm/pull/41411"
NEEDS = ["logprobs", "completions"]
#: Prompts are read by other kernels than answers are written by.
KERNELS = 0.06


@check("logprobs.routes.agree", MUST, spec=ROUTES, needs=[*NEEDS, "chat", "tokenize"])
def test_routes(logprobs_chat: Recording, logprobs_rendered: Recording, vllm_server: Server) -> None:
    """A chat's tokens are as likely as over completions of the same prompt."""
    rows = (logprobs_chat.ok["choices"][0].get("logprobs") or {}).get("content") or []
    told = [
        (row["token"], {top["token"]: top["logprob"] for top in [row, *row["top_logprobs"]]}) for row in rows
    ]
    found = logprobs_rendered.ok["choices"][0]["logprobs"]
    pairs: list[tuple[float, float]] = []
    for (token, mine), other, theirs in zip(told, found["tokens"], found["top_logprobs"], strict=False):
        pairs += [(mine[name], theirs[name]) for name in mine.keys() & theirs.keys() if name]
        if token != other:
            break
    need(len(pairs) > 1, "the two answers share no candidates")
    fault = apart(pairs, exact=vllm_server.simulated)

    assert not fault, f"over chat {fault} over completions"


@check("logprobs.read.deep", MUST, spec=READ, needs=[*NEEDS, "tokenize"])
def test_deep(logprobs_deep: Recording, logprobs_deep_read: Recording, vllm_server: Server) -> None:
    """What was drawn behind a long prompt is as likely when it is read as its end."""
    only_if(not vllm_server.drafts or vllm_server.at_least("0.12.0"), "drafts had scores of their own")
    said, read = _scores(logprobs_deep), _scores(logprobs_deep_read)
    begin = len(logprobs_deep.request.json["prompt"])
    again = read[begin : begin + len(said)]
    need(said and len(again) == len(said) and None not in again, f"{len(again)} of {len(said)} tokens scored")
    pairs = list(zip(again, said, strict=True))
    fault = apart(pairs, exact=vllm_server.simulated, factor=KERNELS)

    assert not fault, f"read behind {begin} tokens {fault} said"
    told = logprobs_deep_read.ok["choices"][0].get("prompt_logprobs") or []
    ids = logprobs_deep_read.request.json["prompt"]
    entries = [(row or {}).get(str(id_)) for row, id_ in zip(told, ids, strict=False)]
    rows = [(entry["logprob"], score) for entry, score in zip(entries, read, strict=False) if entry]
    fault = apart(rows, exact=True)

    assert not fault, f"as prompt_logprobs {fault} echoed"


def _scores(answer: Recording) -> list[Any]:
    found: list[Any] = answer.ok["choices"][0]["logprobs"]["token_logprobs"]
    return found
