"""Thinking switched off, cut short, hidden, and what a user's own tag does."""

import json

from pytest_vllm import MUST, SHOULD, Recording, Server, check, need, only_if, short

from .exchanges import BUDGET
from .thoughts import Said, appends, marked, said

SPEC = "vllm:features/reasoning_outputs/"
NEEDS = ("reasoning",)
STREAM = ("reasoning", "stream")
LEAST = 2
#: From here on a model that must go on behind its budget does not begin to think again.
GOES_ON = "0.24.0"


def switched(off: Recording, plain: Recording) -> None:
    """Undecided unless thinking was switched off, as the prompt shows."""
    only_if(off.status != 400, "this server takes no template arguments")
    with_thoughts, without = said(plain), said(off)
    only_if(
        with_thoughts.usage.get("prompt_tokens") != without.usage.get("prompt_tokens"),
        "this model's template knows no switch: the prompt is the same with it",
    )
    need(without.usage.get("completion_tokens", 0) > LEAST, "the model said next to nothing")


@check("reasoning.off.quiet", MUST, spec="fault:PrimeIntellect-ai/verifiers/issues/538", needs=NEEDS)
def test_off_quiet(reasoning_plain: Recording, reasoning_off: Recording) -> None:
    """With thinking switched off there is no reasoning, under no key and in no tag."""
    switched(reasoning_off, reasoning_plain)
    answer = said(reasoning_off)
    need(answer.content or answer.ended, "the answer holds no text, which another check judges")

    assert not answer.thoughts or not answer.content, f"reasoning {short(answer.thoughts)}"
    assert not marked(answer.content), f"{marked(answer.content)} in {short(answer.content)}"


@check("reasoning.off.content", MUST, spec="fault:vllm-project/vllm/issues/19839", needs=NEEDS)
def test_off_content(reasoning_plain: Recording, reasoning_off: Recording) -> None:
    """With thinking switched off the whole answer is in the content."""
    switched(reasoning_off, reasoning_plain)
    answer = said(reasoning_off)

    assert answer.content.strip(), f"content is empty, reasoning {short(answer.thoughts)}"


@check("reasoning.off.content-stream", MUST, spec="fault:vllm-project/vllm/issues/19839", needs=STREAM)
def test_off_content_stream(reasoning_plain: Recording, reasoning_off_stream: Recording) -> None:
    """With thinking switched off the whole stream is in the content."""
    switched(reasoning_off_stream, reasoning_plain)
    answer = said(reasoning_off_stream)

    assert answer.content.strip(), f"content is empty, reasoning {short(answer.thoughts)}"
    assert not answer.thoughts, f"reasoning {short(answer.thoughts)}"


@check(
    "reasoning.off.honoured",
    MUST,
    spec="fault:PrimeIntellect-ai/verifiers/issues/538",
    needs=("reasoning", "tokenize"),
)
def test_off_honoured(reasoning_off: Recording, reasoning_off_rendered: Recording) -> None:
    """With thinking switched off the prompt is the one that `/tokenize` counts."""
    used, counted = said(reasoning_off).usage.get("prompt_tokens"), reasoning_off_rendered.ok["count"]
    need(used is not None, "the answer reports no tokens")

    assert used == counted, f"{used} prompt tokens, /tokenize counts {counted}"


@check("reasoning.off.default", MUST, spec="fault:ai-dynamo/dynamo/issues/11703", needs=NEEDS)
def test_off_default(vllm_server: Server, reasoning_default: Recording) -> None:
    """A server whose default switches thinking off gives no reasoning."""
    off = vllm_server.table("default-chat-template-kwargs").get("enable_thinking") is False
    only_if(off, "--default-chat-template-kwargs does not switch thinking off")
    answer = said(reasoning_default)

    assert not answer.thoughts, f"reasoning {short(answer.thoughts)}"


@check("reasoning.cut.finish", MUST, spec="fault:vllm-project/vllm/issues/28266", needs=NEEDS)
def test_cut_finish(reasoning_cut: Recording) -> None:
    """Reasoning that the limit of tokens cuts finishes with `length`."""
    answer = said(reasoning_cut)
    limit = reasoning_cut.request.json["max_tokens"]
    need(answer.usage.get("completion_tokens") == limit, "nothing was cut")

    assert answer.finish == "length", f"finish_reason {answer.finish!r} after {limit} tokens"


@check("reasoning.cut.place", MUST, spec="fault:vllm-project/vllm/issues/28266", needs=NEEDS)
def test_cut_place(vllm_server: Server, reasoning_plain: Recording, reasoning_cut: Recording) -> None:
    """What the limit of tokens cuts in the reasoning is reasoning, and not text."""
    only_if(not appends(vllm_server), "an append_think parser leaves the reasoning in the content on purpose")
    thoughts, answer = said(reasoning_plain).thoughts, said(reasoning_cut)
    need(answer.finish == "length", "nothing was cut")
    need(len(thoughts) > len(answer.content), "a whole answer has no reasoning that could have been cut")
    need(answer.content or answer.thoughts, "what was generated in so few tokens shows nowhere")

    assert not answer.content, f"content {short(answer.content)}, reasoning {short(answer.thoughts)}"


@check("reasoning.cut.parity", MUST, spec="fault:vllm-project/vllm/issues/41691", needs=STREAM)
def test_cut_parity(
    reasoning_plain: Recording, reasoning_cut: Recording, reasoning_cut_stream: Recording
) -> None:
    """Reasoning that the limit of tokens cuts is the same in both modes."""
    whole, stream = said(reasoning_cut), said(reasoning_cut_stream)
    need(said(reasoning_plain).thoughts, "there was no reasoning")
    need(whole.finish == "length" or stream.finish == "length", "nothing was cut")
    both = [(one.thoughts, one.content, one.finish) for one in (stream, whole)]

    assert both[0] == both[1], f"streamed {both[0]}, whole {both[1]}"


@check("reasoning.hidden.none", MUST, spec=SPEC, needs=NEEDS)
def test_hidden(vllm_server: Server, reasoning_hidden: Recording) -> None:
    """With `include_reasoning` false there is no reasoning in an answer."""
    only_if(vllm_server.at_least("0.10.1"), "include_reasoning is known since 0.10.1")
    answer = said(reasoning_hidden)

    assert not answer.thoughts, f"reasoning {short(answer.thoughts)}"


@check("reasoning.hidden.none-stream", MUST, spec=SPEC, needs=STREAM)
def test_hidden_stream(vllm_server: Server, reasoning_hidden_stream: Recording) -> None:
    """With `include_reasoning` false there is no reasoning in a stream."""
    only_if(vllm_server.at_least("0.10.1"), "include_reasoning is known since 0.10.1")
    answer = said(reasoning_hidden_stream)

    assert not answer.thoughts, f"reasoning {short(answer.thoughts)}"


@check("reasoning.hidden.content", MUST, spec="fault:vllm-project/vllm/issues/48863", needs=NEEDS)
def test_hidden_content(reasoning_plain: Recording, reasoning_hidden: Recording) -> None:
    """Hiding the reasoning leaves the text."""
    plain, hidden = said(reasoning_plain), said(reasoning_hidden)
    only_if(plain.ended and hidden.ended, "the model did not end both answers by itself")
    need(plain.content, "no text follows the reasoning")

    assert hidden.content.strip(), f"content is empty; with the reasoning shown it is {short(plain.content)}"


@check("reasoning.typed-tag", MUST, spec=SPEC, needs=NEEDS)
def test_typed_tag(vllm_server: Server, reasoning_cut: Recording, reasoning_typed_tag: Recording) -> None:
    """A tag in the user's own message does not end the reasoning of the answer."""
    only_if(not appends(vllm_server), "an append_think parser leaves the reasoning in the content on purpose")
    usual, answer = said(reasoning_cut), said(reasoning_typed_tag)
    need(usual.thoughts and not usual.content, "an answer as short as this holds no reasoning anyway")
    need(answer.thoughts or answer.content.strip(), "nothing was said")

    assert answer.thoughts, f"content {short(answer.content)}, no reasoning"


@check("reasoning.budget.tags", SHOULD, spec="fault:vllm-project/vllm/issues/39697", needs=NEEDS)
def test_budget_tags(reasoning_budget: Recording) -> None:
    """Where a budget ends the reasoning, no tag of it is left in the text."""
    only_if(reasoning_budget.status != 400, f"refused: {reasoning_budget.text[:120]}")
    answer = said(reasoning_budget)
    need(answer.thoughts.strip() and answer.content.strip(), "there is no reasoning with a text after it")

    assert not marked(answer.content), f"{marked(answer.content)} in {short(answer.content)}"


@check("reasoning.budget.kept", MUST, spec="vllm:features/reasoning_outputs/#thinking-budget", needs=NEEDS)
def test_budget(reasoning_plain: Recording, reasoning_budget: Recording, vllm_server: Server) -> None:
    """A budget of thinking tokens ends the reasoning, and no more."""
    only_if(bool(vllm_server.version) and vllm_server.at_least("0.22.0"), "budgets hold from 0.22.0")
    only_if(reasoning_budget.status != 400, f"refused: {reasoning_budget.text[:120]}")
    _marked(reasoning_plain)
    whole = said(reasoning_plain).thoughts.split()
    only_if(len(whole) > 2 * BUDGET, f"without a budget the model thinks {len(whole)} words")
    words = said(reasoning_budget).thoughts.split()

    # a word is a token at least
    assert len(words) <= BUDGET, f"{len(words)} words of reasoning with a budget of {BUDGET} tokens"


def _marked(plain: Recording) -> None:
    """NotRun where the model ends within its reasoning: budgets count from a mark, which it may not write."""
    usual = said(plain)
    only_if(usual.content or not usual.ended or usual.called, "the model ends within its reasoning by itself")


def spent(server: Server, *answers: Recording) -> list[Said]:
    """What is said where a budget holds. NotRun where none does."""
    only_if(bool(server.version) and server.at_least(GOES_ON), f"budgets hold to the end from {GOES_ON}")
    taken = [one for one in answers if one.status != 400]
    only_if(taken, f"refused: {answers[0].text[:120]}")
    return [said(one) for one in taken]


@check("reasoning.budget.answered", MUST, spec="fault:vllm-project/vllm/pull/43757", needs=NEEDS)
def test_budget_answered(
    vllm_server: Server,
    reasoning_plain: Recording,
    reasoning_budget: Recording,
    reasoning_budget_goes_on: Recording,
) -> None:
    """Behind a budget of thinking tokens comes an answer, unless the model ends there."""
    _marked(reasoning_plain)
    told = spent(vllm_server, reasoning_budget, reasoning_budget_goes_on)
    need(any(one.thoughts.strip() for one in told), "there is no reasoning")
    silent = [one for one in told if not (one.content or one.ended or one.called)]
    wrong = [f"{one.key}: reasoning {short(one.thoughts)}, no text" for one in silent]

    assert not wrong, "; ".join(wrong)


@check(
    "reasoning.budget.call",
    MUST,
    spec="fault:vllm-project/vllm/issues/44676",
    needs=("reasoning", "tools"),
)
def test_budget_call(vllm_server: Server, reasoning_budget_call: Recording) -> None:
    """A budget of thinking tokens leaves the arguments of a call alone."""
    (answer,) = spent(vllm_server, reasoning_budget_call)
    need(answer.called and answer.ended, "the model made no call")
    calls = reasoning_budget_call.ok["choices"][0]["message"]["tool_calls"]
    wrong = [text for call in calls if (text := call["function"]["arguments"]) and not sound(text)]

    assert not wrong, f"arguments {short(wrong[0])}"


def sound(arguments: str) -> bool:
    """Whether arguments are an object, and no mark of reasoning stands in them."""
    try:
        return isinstance(json.loads(arguments), dict) and not marked(arguments)
    except ValueError:
        return False
