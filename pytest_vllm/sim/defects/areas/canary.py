"""Defects of the engine's sanity: gibberish, requests that run into each other, drafts that go wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import broken_off, failure, in_choices, refused
from pytest_vllm.sim.defects.edit import set_text, text_of
from pytest_vllm.sim.defects.make import metric
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS

if TYPE_CHECKING:
    from pytest_vllm.sim.api.reply import Exchange
    from pytest_vllm.sim.persona.turn import Answer, Turn

BOTH = (CHAT, COMPLETIONS)
HERE = (COMPLETIONS,)
SALAD = "to1 to10 can1 ToVerifyTo uessuess qzr lobLob vex13 nurn prtToVer kanx ulu ver9 "
SPECULATING = ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}']


def _bound(asked: dict[str, Any]) -> bool:
    """Requests whose text something else reads."""
    names = ("tools", "response_format", "structured_outputs", "stop", "echo", "allowed_token_ids", "n")
    return any(asked.get(name) for name in names)


def _prose(asked: dict[str, Any]) -> bool:
    return bool(asked.get("messages")) and not _bound(asked) and (asked.get("max_tokens") or 64) > 20


def _listed(choice: dict[str, Any]) -> dict[str, Any]:
    """The parallel lists of a completion's log probabilities; empty when there are none."""
    found = choice.get("logprobs") or {}
    return found if "tokens" in found else {}


def _written(text: str) -> Any:
    def changed(choice: dict[str, Any], asked: dict[str, Any]) -> None:
        del asked
        length = max(120, len(text_of(choice)))
        set_text(choice, (text * (length // len(text) + 1))[:length])

    return changed


for _name, _summary, _text, _faults in (
    ("exclamation", "Answers are nothing but exclamation marks.", "!", ["GIB-001", "GIB-006", "GIB-007"]),
    ("letter-run", "Answers run into one letter.", "Rachel uess " + "f" * 200, ["GIB-004"]),
    ("salad", "Answers are pieces of words.", SALAD, ["GIB-005", "GIB-008", "GIB-010", "CONC-002"]),
    ("stutter", "Answers end in one word over and over.", "The boat is the " + "the " * 60, ["SPEC-003"]),
):
    _caught = ["canary.words.language" if _name == "salad" else "canary.words.runs"]
    in_choices(f"canary.{_name}", _summary, (CHAT,), _written(_text), _prose, faults=_faults, catches=_caught)


def _one_token(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    found = _listed(choice)
    count = len(found.get("tokens") or ())
    if count:
        found["tokens"], found["token_logprobs"] = ["!"] * count, [-0.6931] * count
        found["top_logprobs"] = [{"!": -0.6931} for _ in range(count)]
        set_text(choice, "!" * count)


def _free(asked: dict[str, Any]) -> bool:
    return not _bound(asked)


def _flat(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    found = _listed(choice)
    for number, value in enumerate(found.get("token_logprobs") or ()):
        if value is not None:
            found["token_logprobs"][number] = -10.8
            found["top_logprobs"][number] = dict.fromkeys(found["top_logprobs"][number] or {}, -10.8)


def _same_total(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    found = _listed(choice)
    values = found.get("token_logprobs") or []
    scored = max(1, sum(value is not None for value in values) - 1)
    found["token_logprobs"] = [None if value is None else -40.0 / scored for value in values]


def _outranked(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    found = _listed(choice)
    for number, top in enumerate(found.get("top_logprobs") or ()):
        if top and number % 2:
            top["\u2581other"] = 0.0
            found["token_logprobs"][number] -= 1.5


def _echoed_ids(asked: dict[str, Any]) -> bool:
    return bool(asked.get("echo")) and isinstance(asked.get("prompt"), list)


def _confident(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    found = _listed(choice)
    if found:
        found["token_logprobs"] = [value - 4.0 for value in found["token_logprobs"]]
        found["top_logprobs"] = [{key: v - 4.0 for key, v in top.items()} for top in found["top_logprobs"]]


def _decoded(asked: dict[str, Any]) -> bool:
    return bool(asked.get("return_token_ids")) and not asked.get("echo")


def _leaked(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    set_text(choice, f"{text_of(choice)} QX7-4182")


def _codes(asked: dict[str, Any]) -> bool:
    return "Repeat this code" in str(asked.get("messages"))


def _crossed(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    found = _listed(choice)
    if asked.get("echo") and "locker" in str(asked.get("prompt")) and found:
        found["tokens"] = [token.replace("7", "1").replace("4", "9") for token in found["tokens"]]
        found["tokens"] = [token.swapcase() for token in found["tokens"]]


def _shared_mask(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    found = _listed(choice)
    if asked.get("return_tokens_as_token_ids") and found:
        found["tokens"] = ["token_id:7", *found["tokens"][1:]]


in_choices(
    "canary.one-token",
    "All logits are NaN: one token, one log probability, at every position.",
    HERE,
    _one_token,
    _free,
    faults=["GIB-001", "GIB-006", "GIB-007", "CONC-009"],
    catches=["canary.varied.sampled", "canary.varied.greedy", "canary.varied.values"],
)
in_choices(
    "canary.flat",
    "All tokens are equally likely, whatever was written: the weights were read wrong.",
    HERE,
    _flat,
    lambda asked: "logprobs" in asked,
    faults=["GIB-008"],
    catches=["canary.language", "canary.varied.values"],
)
in_choices(
    "canary.input-lost",
    "Every prompt has the log probabilities of the same one.",
    HERE,
    _same_total,
    lambda asked: "locker" in str(asked.get("prompt")),
    catches=["canary.input-matters"],
)
in_choices(
    "canary.drafts-believed",
    "Drafted tokens are taken unchecked: read again, other tokens are far likelier.",
    HERE,
    _outranked,
    _echoed_ids,
    faults=["SPEC-002", "SPEC-004"],
    catches=["canary.read-again.best", "canary.read-again.exact"],
)
in_choices(
    "canary.decode-differs",
    "Decoding computes something else than reading does.",
    HERE,
    _confident,
    _decoded,
    faults=["GIB-005", "SPEC-002", "SPEC-004"],
    catches=["canary.read-again.agrees"],
)
in_choices(
    "canary.leak",
    "Answers hold a piece of another request's.",
    (CHAT,),
    _leaked,
    _codes,
    faults=["CONC-003", "CONC-004", "CONC-005"],
    catches=["canary.needle.foreign"],
)
in_choices(
    "canary.prompts-crossed",
    "Prompts of a batch are scored under each other's tokens.",
    HERE,
    _crossed,
    faults=["CONC-003"],
    catches=["canary.batch.prompts"],
)
in_choices(
    "canary.mask-shared",
    "The first token of a batch is bound by another request's allowed tokens.",
    HERE,
    _shared_mask,
    faults=["CONC-009"],
    catches=["canary.batch.masks"],
)
broken_off(
    "canary.long-crashes",
    "A long prompt beside short ones, longer than the draft model's context, is a server error.",
    HERE,
    "EngineCore encountered an issue.",
    lambda asked: isinstance(asked.get("prompt"), list) and len(asked["prompt"]) > 1000,
    faults=["SPEC-012", "SPEC-014", "SPEC-015", "CONC-010"],
    catches=["canary.long"],
)
refused(
    "canary.questions-crash",
    "Two questions in one batch end in a server error.",
    (CHAT,),
    500,
    failure("tuple object has no attribute shape"),
    lambda asked: (
        _prose(asked) and "?" in str(asked.get("messages")) and asked.get("max_tokens") in (40, 600)
    ),
    faults=["CONC-010"],
    catches=["canary.answered"],
)
metric(
    "canary.drafts-rejected",
    "Next to no drafted token is accepted any more.",
    "vllm:spec_decode_num_accepted_tokens_total",
    lambda value: value // 100,
    needs=SPECULATING,
    faults=["SPEC-005", "SPEC-010"],
    catches=["canary.drafts"],
)

_scored: set[str] = set()


@defect(
    "canary.batch-drifts",
    on="json",
    paths=HERE,
    faults=["CONC-001", "CONC-002"],
    catches=["canary.batch.numbers"],
)
def batch_drifts(body: Any, exchange: Exchange) -> Any:
    """The first time, among others, a prompt is computed wrong; alone, later, it is right."""
    asked = exchange.body if isinstance(exchange.body, dict) else {}
    prompt = str(asked.get("prompt"))
    if asked.get("echo") and "locker" in prompt and prompt not in _scored:
        _scored.add(prompt)
        for choice in body.get("choices") or ():
            found = _listed(choice)
            found["token_logprobs"] = [None if v is None else v - 2.0 for v in found["token_logprobs"]]
    return body


@defect(
    "canary.forgets-codes",
    on="answer",
    faults=["CONC-001"],
    catches=["canary.needle.own", "canary.needle.foreign"],
)
def forgets_codes(answer: Answer, turn: Turn) -> Answer:
    """In a batch every request is answered with the code of one of them."""
    if "Repeat this code" in turn.asked:
        answer.content = "LM2-9037"
    return answer


@defect(
    "canary.knows-nothing",
    on="answer",
    faults=["GIB-008"],
    catches=["canary.questions", "canary.words.language"],
)
def knows_nothing(answer: Answer, turn: Turn) -> Answer:
    """Plain questions are answered with random tokens."""
    if not turn.constraint and not turn.tools and not answer.calls and not turn.prompt:
        answer.content = f"{turn.variant} " + SALAD * (4 if "paragraph" in turn.asked else 1)
    return answer
