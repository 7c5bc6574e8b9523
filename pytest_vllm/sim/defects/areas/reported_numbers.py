"""Faults of public reports that show in numbers and late in an answer: scaled, miscounted, garbled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.areas.reported_again import BLOCK, OTHER, STEP, TOKEN, _generated, _output
from pytest_vllm.sim.defects.calls import asked, deltas
from pytest_vllm.sim.defects.choose import failure, in_choices, refused
from pytest_vllm.sim.defects.make import ignores
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange
    from pytest_vllm.sim.engine.sequence import Sequence

Json = dict[str, Any]
#: Tokens of the simulator's context, and those before its end at which drafts no longer fit in.
CONTEXT, NEAR = 4096, 3
#: Tokens of an answer after which a cached beginning is misread.
LATE = 10
#: Tokens of an answer that goes on behind its end.
ENDLESS = 40


def _scaled(change: Callable[[float], float]) -> Callable[[Json, Json], None]:
    """Every log probability of a choice of a completion, changed."""

    def changed(choice: Json, given: Json) -> None:
        del given
        told = choice.get("logprobs")
        if isinstance(told, dict) and told.get("token_logprobs"):
            told["token_logprobs"] = [value and change(value) for value in told["token_logprobs"]]
            told["top_logprobs"] = [
                row and {token: change(value) for token, value in row.items()}
                for row in told.get("top_logprobs") or ()
            ]

    return changed


in_choices(
    "canary.scaled-by-temperature",
    "Log probabilities are those that a high temperature leaves.",
    (COMPLETIONS,),
    _scaled(lambda value: value - 3.0),  # as a first token of many candidates loses
    lambda given: (given.get("temperature") or 0) > 1,
    faults=["vllm-project/vllm#9453"],
    catches=["canary.varied.unscaled"],
)


@defect(
    "logprobs.brim-lost",
    on="json",
    paths=(COMPLETIONS,),
    faults=["vllm-project/vllm#38711"],
    area="oracle",
    catches=["oracle.listed.likely"],
)
def brim_lost(body: Any, exchange: Exchange) -> Any:
    """At the context's end the log probabilities are those of something else."""
    used = (body.get("usage") or {}).get("total_tokens", 0) if isinstance(body, dict) else 0
    for choice in body["choices"] if used > CONTEXT - NEAR else ():
        _scaled(lambda value: value - 18.0)(choice, asked(exchange, "") or {})
    return body


@defect(
    "streaming.running-count-ahead",
    on="events",
    paths=(COMPLETIONS, CHAT),
    faults=["vllm-project/vllm#9028"],
    catches=["stream.usage.running"],
)
def running_count_ahead(events: list[Event], exchange: Exchange) -> list[Event]:
    """Behind a prompt that is read in several steps each step counts as a token of the answer."""
    options = asked(exchange, "stream_options")
    for event in events if isinstance(options, dict) and options.get("continuous_usage_stats") else ():
        usage = event.data.get("usage") if isinstance(event.data, dict) else None
        if usage and usage["prompt_tokens"] > STEP:
            usage["completion_tokens"] += usage["prompt_tokens"] // STEP
            usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
    return events


@defect(
    "cache.late-garbled",
    on="cache_hits",
    faults=["vllm-project/vllm#54490"],
    catches=["cache.repeat.same-answer"],
)
def late_garbled(blocks: int, sequence: Sequence) -> int:
    """Behind a cached beginning a longer answer goes on with something else."""
    if blocks * BLOCK > LATE and _generated(sequence) and len(sequence.output) > LATE:
        said = _output(sequence)
        other = [OTHER if one == TOKEN else TOKEN for one in said.ids[LATE:]]
        said.ids[LATE:] = sequence.output[LATE:] = other
    return blocks


@defect(
    "logprobs.taken-unlisted",
    on="json",
    paths=(COMPLETIONS,),
    faults=["vllm-project/vllm#15381"],
    area="oracle",
    catches=["oracle.listed.taken"],
)
def taken_unlisted(body: Any, exchange: Exchange) -> Any:
    """A drawn token is not among the candidates that are listed for it."""
    drawn = (asked(exchange, "temperature") or 0) > 0
    for choice in (body.get("choices") or ()) if drawn and isinstance(body, dict) else ():
        told = choice.get("logprobs") or {}
        for token, row in zip(told.get("tokens") or (), told.get("top_logprobs") or (), strict=False):
            if row and len(row) > 1:
                row.pop(token, None)
    return body


ignores(
    "chat.seed-ignored",
    "A seed binds completions and no chat.",
    ["seed"],
    (CHAT,),
    faults=["vllm-project/vllm#21310"],
    catches=["chat.seed.repeats"],
)
refused(
    "chat.endless-breaks",
    "An answer that goes on behind its end breaks the server.",
    (CHAT,),
    500,
    failure("Unexpected token 200002 while expecting start token 200006"),
    lambda given: given.get("ignore_eos") and given.get("max_tokens") == ENDLESS,
    faults=["vllm-project/vllm#50690"],
    catches=["chat.answered"],
)


@defect(
    "tools.call-streamed-as-text",
    on="events",
    paths=(CHAT,),
    faults=["vllm-project/vllm#17109"],
    catches=["tools.words.parity"],
)
def call_streamed_as_text(events: list[Event], exchange: Exchange) -> list[Event]:
    """In a stream a call that comes after words is text like them."""
    free, said = asked(exchange, "tool_choice") in (None, "auto"), False
    for _, choice, delta in deltas(events) if free else ():
        said = said or bool(delta.get("content"))
        if said and delta.get("tool_calls"):
            functions = [part.get("function") or {} for part in delta.pop("tool_calls")]
            delta["content"] = "".join(
                f"{one.get('name') or ''}{one.get('arguments') or ''}" for one in functions
            )
        if said and choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "stop"
    return events
