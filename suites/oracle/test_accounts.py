"""What every answer of the run is billed.

An answer's own numbers are held to the server's tokenizer and to each other. Equality is asked for where it
must hold: prompts that `/tokenize` takes as they are; tokens of an answer that lists them, or that its limit
ended. What a text alone is worth in tokens is not asked: stop strings, special tokens and markers of
reasoning or calls are generated and not shown, and a text has more than one spelling in tokens.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recordings, Server, check, listed, need, observe, only_if

from .answers import COMPLETIONS, MESSAGES, RESPONSES, answers
from .counting import given_ids, questions, texts_of

if TYPE_CHECKING:
    from .answers import Answer

SPEC = "openai:chat/object#usage"
COUNT, EVERY = ["oracle.count[", "*"], ["oracle.every-count[", "*"]
#: How the routes say that the limit of tokens ended an answer.
CUT = ("length", "max_tokens", "max_output_tokens")
#: Tokens that may show nothing: the marks of empty reasoning, a blank line, the end.
MARKS = 12
LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")


@check("oracle.prompt.counted", MUST, spec=SPEC, needs=["tokenize"], exchanges=COUNT)
def test_prompt(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """Prompts of each kind are billed the tokens that the server counts in them."""
    wrong = _miscounted(vllm_recordings, vllm_server, COUNT[0])

    assert not wrong, listed(wrong)


@check("oracle.prompt.each-counted", MUST, spec=SPEC, needs=["tokenize"], tier="soak", exchanges=EVERY)
def test_each_prompt(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """Every prompt of the run is billed the tokens that the server counts in it."""
    wrong = _miscounted(vllm_recordings, vllm_server, EVERY[0])

    assert not wrong, listed(wrong)


@check("oracle.tokens.total", MUST, spec=SPEC, exchanges=["*"])
def test_total(vllm_recordings: Recordings) -> None:
    """Over every route, whole or streamed, all tokens are those of prompt and answer."""
    told = [(one.key, one.usage) for one in answers(vllm_recordings) if one.usage]
    summed = [(key, usage) for key, usage in told if usage[2] is not None]
    only_if(summed, "no answer tells its total")
    wrong = [f"{key}: {usage}" for key, usage in summed if usage[0] + usage[1] != usage[2]]

    assert not wrong, f"(prompt, answer, total): {listed(wrong)}"


@check("oracle.tokens.length", MUST, spec=SPEC, exchanges=["*"])
def test_length(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """An answer that its limit ended is billed that limit, or fills the context."""
    cut = [(one, limit) for one in answers(vllm_recordings) if (limit := _limit(one)) is not None]
    only_if(cut, "no answer was ended by its limit")
    wrong = [
        f"{one.key}: {one.usage[1]} tokens, its limit is {limit}"
        for one, limit in cut
        if one.usage and one.usage[1] != limit and not _full(one, vllm_server)
    ]

    assert not wrong, listed(wrong)


@check("oracle.tokens.listed", MUST, spec=SPEC, exchanges=["*"])
def test_listed(vllm_recordings: Recordings) -> None:
    """An answer that lists its tokens is billed as many as it lists."""
    rows = [(one, counted) for one in answers(vllm_recordings) if (counted := _listed(one)) is not None]
    only_if(rows, "no answer lists its tokens")
    wrong = [
        f"{one.key}: {one.usage[1]} tokens, {counted} listed"
        for one, counted in rows
        if one.usage and one.usage[1] != counted
    ]

    assert not wrong, listed(wrong)


@check("oracle.tokens.said", MUST, spec=SPEC, exchanges=["*"])
def test_said(vllm_recordings: Recordings) -> None:
    """An answer that says something is billed for it, and never more than the context."""
    said = [one for one in answers(vllm_recordings) if one.usage and not one.asked.get("echo")]
    only_if(said, "no answer was billed")
    wrong = [f"{one.key}: {one.usage}" for one in said if one.usage and one.text.strip() and one.usage[1] < 1]

    assert not wrong, f"text without tokens: {listed(wrong)}"


@check("oracle.tokens.shown", MUST, spec="fault:vllm-project/vllm/issues/41902", exchanges=["*"])
def test_shown(vllm_recordings: Recordings) -> None:
    """An answer that ended by itself after more than a dozen tokens says something."""
    ended = [one for one in answers(vllm_recordings) if _showing(one)]
    only_if(ended, "no answer of a run of tokens ended by itself")
    observe("answers that ended by themselves", len(ended))
    wrong = [f"{one.key}: nothing, for {one.usage[1]} tokens" for one in ended if one.usage and _mute(one)]

    assert not wrong, listed(wrong)


def _showing(one: Answer) -> bool:
    """Whether an answer ended by itself, and so late that something of it has to show.

    What a request hides, or leaves to special tokens, need not; and a parser drops calls of unknown tools.
    """
    asked = one.asked
    hidden = asked.get("include_reasoning") is False or (asked.get("reasoning") or {}).get("exclude")
    hollow = any(asked.get(name) for name in ("stop", "allowed_token_ids", "logit_bias", "use_beam_search"))
    ended = all(choice.finish and choice.finish[-1] not in CUT for choice in one.choices)
    late = one.usage is not None and one.usage[1] > MARKS * _many(one)
    return bool(one.choices) and ended and late and not (hidden or hollow or asked.get("tools"))


def _mute(one: Answer) -> bool:
    """Whether a text of an answer is empty."""
    return any(not choice.text and not choice.calls for choice in one.choices)


def _miscounted(recordings: Recordings, server: Server, asked: str) -> list[str]:
    """The prompts that are billed otherwise than the tokenizer counts, of those that it was asked about."""
    found = answers(recordings)
    countable = [one for one in found if not isinstance(questions(one.path, one.asked, server), str)]
    only_if(countable, "the tokenizer can be asked about no prompt of this run")
    counts = _counts(recordings, asked)
    skipped: Counter[str] = Counter()
    wrong, judged = [], 0
    for answer in found:
        bodies = questions(answer.path, answer.asked, server)
        if isinstance(bodies, str):
            skipped[bodies] += 1
            continue
        told = [counts.get(_spelt(body)) for body in bodies]
        if answer.usage is None or None in told:
            continue
        judged += 1
        wanted = sum(one for one in told if one is not None) + given_ids(answer.asked)
        if answer.usage[0] != wanted:
            wrong.append(f"{answer.key}: {answer.usage[0]} prompt tokens, the server counts {wanted}")
    observe("prompts counted", judged)
    observe("prompts not counted", "; ".join(f"{count}: {why}" for why, count in skipped.items()) or "none")
    need(judged, "no prompt was counted")
    return wrong


def _counts(recordings: Recordings, asked: str) -> dict[str, int]:
    """What was asked of the tokenizer, spelt out -> how many tokens it said."""
    found = {}
    for one in recordings.of(asked):
        if one.status == 200 and isinstance(one.json, dict):
            count = one.json.get("count", one.json.get("input_tokens"))
            if isinstance(count, int):
                found[_spelt(one.request.json)] = count
    return found


def _spelt(body: Any) -> str:
    shown = {name: value for name, value in body.items() if name not in ("model", "temperature")}
    return json.dumps([body.get("model"), shown], sort_keys=True)


def _limit(one: Answer) -> int | None:
    """The tokens of an answer of which every choice was ended by its limit; None for any other."""
    limits = [one.asked[name] for name in LIMITS if isinstance(one.asked.get(name), int)]
    if one.usage is None or not limits or not one.choices or one.asked.get("use_beam_search"):
        return None
    if not all(choice.finish[-1:] and choice.finish[-1] in CUT for choice in one.choices):
        return None
    return int(max(limits[0], 1) * _many(one))


def _many(one: Answer) -> int:
    """How many choices were asked for."""
    prompts = len(texts_of(one.asked.get("prompt")) or [""]) if one.path == COMPLETIONS else 1
    return int(one.asked.get("n") or 1) * prompts


def _full(one: Answer, server: Server) -> bool:
    """Whether prompt and answer fill the context."""
    return one.usage is not None and server.max_model_len == one.usage[0] + one.usage[1]


def _listed(one: Answer) -> int | None:
    """How many tokens an answer lists; None where it lists none, or a part of them."""
    if one.path in (RESPONSES, MESSAGES) or one.usage is None or one.asked.get("echo"):
        return None
    ids = [choice.ids for choice in one.choices]
    if ids and all(each is not None for each in ids):
        return sum(len(each or ()) for each in ids)
    plain = not one.asked.get("tools") and not one.asked.get("use_beam_search")
    tokens = [len(choice.tokens) for choice in one.choices]
    return sum(tokens) if tokens and all(tokens) and plain and not one.streams else None
