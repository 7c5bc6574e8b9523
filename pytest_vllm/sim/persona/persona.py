"""The persona: from a request to what each of its choices says."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim import habits
from pytest_vllm.sim.api.history import plain
from pytest_vllm.sim.generation import Output, produce
from pytest_vllm.sim.parsers.formats import dumps, format_of
from pytest_vllm.sim.persona.complete import completion_of
from pytest_vllm.sim.persona.pattern import example_of, example_of_grammar
from pytest_vllm.sim.persona.schema import Filler, tagged
from pytest_vllm.sim.persona.script import allow, script_of
from pytest_vllm.sim.persona.talk import filler, reply
from pytest_vllm.sim.persona.tooluse import calls_for, words_before
from pytest_vllm.sim.persona.turn import Answer, Turn
from pytest_vllm.sim.persona.words import opening
from pytest_vllm.sim.tokens.template import OPENED, text_of
from pytest_vllm.sim.vision import pictures, read, url_of

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.check.sampling import Sampling

Body = dict[str, Any]
#: Above this temperature answers begin in many ways.
LIVELY = 1.2
_THINKERS = re.compile(
    r"qwen3(?!.*(coder|instruct|embed|rerank))|qwq|deepseek-r1|r1-distill|thinking", re.IGNORECASE
)
_SAMPLED = (
    "messages",
    "prompt",
    "input",
    "tools",
    "tool_choice",
    "response_format",
    "structured_outputs",
    "seed",
    "model",
)


def thinks(server: Server, body: Body) -> bool:
    """Whether the model thinks before it answers this request."""
    settings = server.settings
    if "messages" not in body or settings.thinking == "none":
        return False
    if settings.reasoning_parser == "deepseek_r1":
        return True
    if habits.has(settings.environ, habits.THINKS):
        return True
    wanted = thinking_of(server, body)
    return _by_itself(server) if wanted is None else wanted


def thinks_on(server: Server, text: str) -> bool:
    """Whether the model thinks when it goes on with a chat that was rendered by its template."""
    settings = server.settings
    if settings.thinking == "none":
        return False
    if settings.reasoning_parser == "deepseek_r1":
        return text.endswith(f"{OPENED}<think>\n")
    return text.endswith(OPENED) and _by_itself(server)


def _by_itself(server: Server) -> bool:
    settings = server.settings
    by_name = "on" if settings.reasoning_parser or _THINKERS.search(settings.model) else "off"
    return (settings.thinking or by_name) == "on" or habits.has(settings.environ, habits.THINKS)


def thinking_of(server: Server, body: Body) -> bool | None:
    """Whether thinking is asked for; None when nothing was said."""
    given = server.settings.args.get("default_chat_template_kwargs")
    kwargs = {**(given if isinstance(given, dict) else {}), **(body.get("chat_template_kwargs") or {})}
    for name in ("enable_thinking", "thinking"):
        if name in kwargs:
            return bool(kwargs[name])
    effort = body.get("reasoning_effort")
    return None if effort is None else effort != "none"


def turn_of(server: Server, body: Body, constraint: dict[str, Any] | None) -> Turn:
    """What the persona is asked by a chat request."""
    given = body["messages"]
    if server.settings.kind.transcribes:
        given = [plain(message, server.settings) for message in given]
    messages = [{**message, "content": text_of(message)} for message in given]
    choice = body.get("tool_choice")
    # only a reasoning parser lets a constrained model think first: it knows when the thoughts are over
    from_start = constraint is not None or choice == "required" or isinstance(choice, dict)
    thinking = thinks(server, body) and (bool(server.settings.reasoning_parser) or not from_start)
    return Turn(
        messages=messages,
        tools=[] if choice == "none" else body.get("tools") or [],
        choice=choice,
        parallel=body.get("parallel_tool_calls") is not False,
        constraint=constraint,
        thinking=thinking,
        budget=budget if (budget := body.get("thinking_token_budget")) not in (None, -1) else None,
        effort=str(body.get("reasoning_effort") or ""),
        colours=[read(url_of(part)).colour for part in pictures(body["messages"])],
    )


def outputs_of(server: Server, turn: Turn, sampling: Sampling, body: Body) -> list[Output]:
    """The choices of a request: one when greedy, `n` otherwise."""
    # a seed counts for nothing where nothing is drawn
    asked = [None if key == "seed" and sampling.greedy else body.get(key) for key in _SAMPLED]
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()
    greedy = sampling.greedy or sampling.top_p < 0.05 or sampling.min_p > 0.95
    base = 0
    if not greedy:
        base = 1 + int(digest[:6], 16)
        if sampling.seed is None:
            base += server.asked[digest]
            server.asked[digest] += sampling.n
    script = script_of(server, body)
    if script is not None:
        allow(server, script, body, turn.constraint)
        said = [produce(script, lambda: filler(turn), sampling, server.tokens) for _ in range(sampling.n)]
        return [server.hooks.run("output", output, body) for output in said]
    turn.seed = f"{server.settings.seed}/{digest}"
    turn = server.hooks.run("turn", turn, body)
    talks_on = habits.has(server.settings.environ, habits.TALKS_ON)
    outputs = []
    for number in range(sampling.n):
        turn.variant = number if sampling.beams else 0 if greedy else base + number
        answer = answer_to(turn)
        if not greedy and sampling.temperature > LIVELY and not turn.constraint and not answer.calls:
            lead = " " if turn.prompt else ""
            answer.content = f"{lead}{opening(turn.rng)} {answer.content.lstrip()}"
            answer.thoughts = answer.thoughts and f"{opening(turn.rng)} {answer.thoughts}"
        if body.get("model") in server.loras and not turn.constraint and not answer.calls:
            call = call_of(server.loras[body["model"]])
            answer.content = f"{call} {answer.content}"
            answer.thoughts = answer.thoughts and f"{call} {answer.thoughts}"
        if server.engine.bare:  # weights that were thrown away and never loaded again say nothing
            answer = Answer("".join(turn.rng.choice("#?~!^ ") for _ in range(40)))
        answer = server.hooks.run("answer", answer, turn)
        raw = server.hooks.run("raw", raw_text(server, turn, answer), turn)
        on = talks_on and not (turn.constraint or answer.calls)
        asked_for = replace(sampling, ignore_eos=True) if on else sampling
        output = produce(raw, lambda: filler(turn), asked_for, server.tokens)
        outputs.append(server.hooks.run("output", output, body))
    return outputs


def call_of(path: str) -> str:
    """How what an adapter's weights say begins: other weights, other words."""
    known = {"parrot": "Squawk!", "pirate": "Ahoy!"}
    told = (call for name, call in known.items() if name in path)
    return next(told, f"From {' '.join(PurePath(path).parts[-2:])}:")


def answer_to(turn: Turn) -> Answer:
    """What the persona says to a turn."""
    if turn.prompt:
        content = constrained(turn) if turn.constraint else completion_of(turn)
        return Answer(content, _thoughts(turn) if turn.thinking and not turn.constraint else None)
    thoughts = _thoughts(turn) if turn.thinking else None
    calls = calls_for(turn)
    if calls:
        return Answer(words_before(turn), thoughts, calls)
    return Answer(constrained(turn) if turn.constraint else reply(turn), thoughts)


def constrained(turn: Turn) -> str:
    """A text that fits the constraint."""
    assert turn.constraint is not None  # noqa: S101 - callers look
    kind, value = next(iter(turn.constraint.items()))
    if kind == "choice":
        asked, told = turn.asked.lower(), reply(turn).lower()
        fitting = [one for one in value if str(one).lower() in told] or [
            one for one in value if str(one).lower() in asked
        ]
        return str(fitting[0] if len(fitting) == 1 else value[turn.variant % len(value)])
    if kind == "regex":
        return example_of(value)
    if kind == "grammar":
        return example_of_grammar(value)
    if kind == "json_object":
        return dumps({"answer": reply(turn)})
    if kind == "structural_tag":
        return tagged(turn, value)
    return dumps(Filler(turn, value).value(value))


def raw_text(server: Server, turn: Turn, answer: Answer) -> str:
    """The text as the model writes it, markers included."""
    text = answer.content
    if answer.calls:
        if isinstance(turn.choice, dict):
            text += dumps(answer.calls[0][1])
        elif turn.choice == "required":
            text += dumps([{"name": name, "parameters": arguments} for name, arguments in answer.calls])
        else:
            text += str(format_of(server.settings.family or server.settings.tool_parser).write(answer.calls))
    if answer.thoughts is not None:
        opened = server.settings.reasoning_parser == "deepseek_r1"
        opening, thoughts = ("", answer.thoughts) if opened else ("<think>", f"\n{answer.thoughts}")
        text = f"{opening}{_within(server, thoughts, turn.budget)}</think>\n\n{text}"
    return text


def _within(server: Server, thoughts: str, budget: int | None) -> str:
    """Thoughts that take no more tokens than their budget."""
    ids = server.tokens.encode(f"{thoughts}\n")
    return f"{thoughts}\n" if budget is None else server.tokens.decode(ids[:budget])


def _thoughts(turn: Turn) -> str:
    # a model that wrote the marker would end its thoughts with it
    asked = " ".join(turn.asked.replace("</think>", "that marker").split()[:12])
    more = ""
    if turn.effort in ("high", "xhigh", "max"):
        more = (
            " I go through every step again, one after the other, and look for what could be wrong with it."
        )
    thought = turn.pick(
        [
            f'The user asks: "{asked}". Let me think step by step. The answer should be short and right.',
            f'I am asked: "{asked}". I recall what I know and check it once more before I answer.',
        ]
    )
    return thought + more
