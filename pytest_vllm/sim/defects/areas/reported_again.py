"""Faults of public reports that show where a request is computed otherwise: put back, in steps, held back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import asked, deltas, joined, spread, threads, turns
from pytest_vllm.sim.defects.choose import failure, refused
from pytest_vllm.sim.defects.edit import choices
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MESSAGES

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.generate import Generation
    from pytest_vllm.sim.api.reply import Exchange
    from pytest_vllm.sim.engine.sequence import Sequence
    from pytest_vllm.sim.generation import Output

Json = dict[str, Any]
#: A cache that a few requests fill.
SMALL = ["--num-gpu-blocks-override", "600"]
#: Tokens of a prompt that are read at once, tokens of a block, and two tokens that any vocabulary has.
STEP, BLOCK, TOKEN, OTHER = 2048, 16, 1100, 1101


def _output(sequence: Sequence) -> Output:
    """What a sequence says, of which the engine knows the ids alone."""
    made: Generation = sequence.listener  # type: ignore[assignment]
    return made.outputs[made.sequences.index(sequence)]


def _generated(sequence: Sequence) -> bool:
    return bool(sequence.output)


@defect(
    "memory.put-back-cut",
    on="cache_hits",
    faults=["vllm-project/vllm#16832"],
    needs=SMALL,
    catches=["memory.crowd.same"],
)
def put_back_cut(blocks: int, sequence: Sequence) -> int:
    """A request that was put back lacks the text of the tokens that come after."""
    if sequence.preemptions and _generated(sequence):
        pieces = _output(sequence).pieces
        pieces[max(1, sequence.done) :] = [""] * (len(pieces) - max(1, sequence.done))
    return blocks


@defect(
    "memory.put-back-other",
    on="cache_hits",
    faults=["vllm-project/vllm-gaudi#524"],
    needs=SMALL,
    catches=["memory.crowd.same"],
)
def put_back_other(blocks: int, sequence: Sequence) -> int:
    """A request that was put back goes on as if it had said something else."""
    if sequence.preemptions and _generated(sequence):
        ids = sequence.output
        ids[sequence.done :] = [OTHER if id_ == TOKEN else TOKEN for id_ in ids[sequence.done :]]
    return blocks


@defect(
    "memory.several-put-back-end",
    on="cache_hits",
    faults=["vllm-project/vllm#8844"],
    needs=SMALL,
    catches=["memory.crowd.choices"],
)
def several_put_back_end(blocks: int, sequence: Sequence) -> int:
    """One of several choices that is put back ends with the next token."""
    made: Generation = sequence.listener  # type: ignore[assignment]
    if sequence.preemptions and _generated(sequence) and made.n > 1:
        del sequence.output[sequence.done + 1 :]
    return blocks


@defect(
    "memory.put-back-end",
    on="cache_hits",
    faults=["vllm-project/vllm#16832"],
    needs=SMALL,
    catches=["memory.crowd.whole"],
)
def put_back_end(blocks: int, sequence: Sequence) -> int:
    """A request that was put back ends with the next token."""
    if sequence.preemptions and _generated(sequence):
        del sequence.output[sequence.done + 1 :]
    return blocks


@defect(
    "messages.results-lost",
    on="body",
    paths=(MESSAGES,),
    faults=["BerriAI/litellm#22841"],
    profile="sim-agents",
    catches=["messages.result.told"],
)
def results_lost(body: Any, path: str) -> Any:
    """Over Messages what a tool brought does not reach the prompt."""
    del path
    for turn in turns(body):
        for block in turn["content"] if isinstance(turn.get("content"), list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_result":
                block["content"] = ""
    return body


@defect(
    "streaming.held-ids-lost",
    on="events",
    paths=(COMPLETIONS,),
    area="oracle",
    faults=["vllm-project/vllm#36830"],
    catches=["oracle.tokens.listed"],
)
def held_ids_lost(events: list[Event], exchange: Exchange) -> list[Event]:
    """Where a stop string is given, the ids of tokens whose text is held back are not streamed."""
    for _, choice in choices(events) if asked(exchange, "stop") else ():
        if choice.get("token_ids") and not choice.get("text"):
            choice["token_ids"] = []
    return events


@defect(
    "cache.steps-garbled",
    on="cache_hits",
    faults=["vllm-project/vllm#26042", "vllm-project/vllm#36580"],
    catches=["cache.steps.same-answer"],
)
def steps_garbled(blocks: int, sequence: Sequence) -> int:
    """A prompt of which more than one step is computed is answered with something else."""
    if len(sequence.prompt) - blocks * BLOCK > STEP and _generated(sequence):
        said = _output(sequence)
        said.ids[:] = sequence.output[:] = [OTHER if id_ == TOKEN else TOKEN for id_ in said.ids]
    return blocks


def _to_first_bracket(text: str) -> str:
    """A JSON object up to the bracket that ends it, for a reader who takes those in texts for its own."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if character == "}" and not depth:
            return text[: at + 1]
    return text


@defect(
    "tools.brackets-in-texts",
    on="events",
    paths=(CHAT,),
    faults=["vllm-project/vllm#45389"],
    catches=["tools.odd"],
)
def brackets_in_texts(events: list[Event], exchange: Exchange) -> list[Event]:
    """Streamed, the arguments of a required call end where brackets in their texts seem to end them."""
    if asked(exchange, "tool_choice") == "required":
        for parts in threads(events).values():
            spread(parts, _to_first_bracket(joined(parts)))
    return events


@defect(
    "reasoning.stop-mixes",
    on="events",
    paths=(CHAT,),
    faults=["vllm-project/vllm#51641"],
    catches=["reasoning.stop.apart"],
)
def stop_mixes(events: list[Event], exchange: Exchange) -> list[Event]:
    """Where a stop string is given, the end of streamed reasoning comes as text."""
    if asked(exchange, "stop"):
        for delta in [delta for _, _, delta in deltas(events) if delta.get("reasoning")][-2:]:
            delta["content"] = delta.pop("reasoning")
    return events


@defect(
    "completions.penalty-counts-prompt",
    on="output",
    faults=["vllm-project/vllm-metal#69"],
    catches=["completions.penalty-begins"],
)
def penalty_counts_prompt(output: Output, body: Json) -> Output:
    """A frequency penalty counts the tokens of the prompt as generated."""
    from pytest_vllm.sim.tokens.tokenizer import load  # noqa: PLC0415 - a vocabulary is read

    prompt = body.get("prompt") or ()
    allowed = [one for one in body.get("allowed_token_ids") or () if one not in prompt]
    if (body.get("frequency_penalty") or 0) > 0 and allowed and output.ids[0] in prompt:
        output.ids[0], output.pieces[0] = allowed[0], load().decode(allowed[:1])
    return output


refused(
    "tools.empty-calls-refused",
    "A history with an empty list of calls is refused.",
    (CHAT,),
    400,
    failure("This model only supports single tool-calls at once!", 400),
    lambda given: any(turn.get("tool_calls") == [] for turn in turns(given)),
    faults=["vllm-project/vllm#13978"],
    catches=["tools.history.same"],
)
