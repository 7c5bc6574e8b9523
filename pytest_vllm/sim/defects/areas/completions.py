"""Defects of completions: the envelope, prompts, sampling, stopping."""

from __future__ import annotations

from typing import Any

from pytest_vllm.sim.defects.choose import asks, failure, in_body, in_bytes, in_choices, refused
from pytest_vllm.sim.defects.edit import set_text, text_of
from pytest_vllm.sim.defects.make import header, ignores, spoil
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import COMPLETIONS

HERE = (COMPLETIONS,)

spoil(
    "completions.object-chat",
    "A completion calls itself chat.",
    HERE,
    "object",
    "chat.completion",
    catches=["completions.schema"],
)
spoil(
    "completions.model-other",
    "A completion names another model.",
    HERE,
    "model",
    "text-davinci-003",
    catches=["completions.model"],
)
spoil("completions.created-text", "`created` is zero.", HERE, "created", 0, catches=["completions.created"])
spoil(
    "completions.id-fixed",
    "All completions have one id.",
    HERE,
    "id",
    "cmpl-0",
    catches=["completions.id.unique"],
)
spoil(
    "completions.finish-always-stop",
    "Every completion ends with `stop`, cut or not.",
    HERE,
    "choices.*.finish_reason",
    "stop",
    catches=["completions.max-tokens.exact"],
)
spoil(
    "completions.finish-foreign",
    "A completion ends with a word of the engine's own.",
    HERE,
    "choices.*.finish_reason",
    "FINISHED_LENGTH_CAPPED",
    catches=["completions.finish.agrees"],
)
spoil(
    "completions.stop-reason-always",
    "Every completion names a reason to stop.",
    HERE,
    "choices.*.stop_reason",
    "</s>",
    catches=["completions.stop.none", "completions.stop.reason", "completions.stop.token-reason"],
)
header(
    "completions.content-type",
    "Completions say text/html.",
    HERE,
    "content-type",
    "text/html",
    catches=["completions.content-type"],
)
in_bytes(
    "completions.nan",
    "The body holds NaN, which is no JSON.",
    HERE,
    lambda body: body.replace(b'"stop_reason":null', b'"stop_reason":NaN'),
    catches=["completions.json"],
)
for _name, _summary, _fields, _checks, _faults in (
    (
        "allowed-tokens-ignored",
        "Where one token is allowed, others come.",
        "allowed_token_ids",
        "completions.allowed-token-ids",
        "SAMPLE-012",
    ),
    (
        "bias-ignored",
        "Biases and penalties change nothing.",
        "logit_bias frequency_penalty presence_penalty repetition_penalty",
        "completions.logit-bias completions.frequency-penalty",
        "SAMPLE-001 SAMPLE-002",
    ),
    ("seed-ignored", "A seed changes nothing.", "seed", "completions.seed.repeats", "SAMPLE-004"),
    (
        "bounds-ignored",
        "Prompts are not truncated, and answers end however short they are.",
        "truncate_prompt_tokens min_tokens",
        "completions.prompt.truncated completions.min-tokens",
        "",
    ),
    (
        "stop-never-kept",
        "The stop string is never kept.",
        "include_stop_str_in_output",
        "completions.stop.included",
        "",
    ),
    ("stop-tokens-ignored", "Stop tokens stop nothing.", "stop_token_ids", "completions.stop.token", ""),
):
    ignores(
        f"completions.{_name}",
        _summary,
        _fields.split(),
        HERE,
        catches=_checks.split(),
        faults=_faults.split(),
    )
ignores(
    "completions.extras-ignored",
    "What OpenAI does not know is ignored: vLLM's own sampling parameters have no effect.",
    [
        "min_tokens",
        "allowed_token_ids",
        "bad_words",
        "skip_special_tokens",
        "min_p",
        "top_k",
        "stop_token_ids",
    ],
    ("/v1/",),
    catches=["completions.allowed-token-ids", "chat.bad-words"],
)


@defect("completions.seed-fixed", on="body", paths=HERE, catches=["completions.seed.matters"])
def seed_fixed(body: Any, path: str) -> Any:
    """Every request is drawn with the same seed."""
    del path
    return {**body, "seed": 1} if isinstance(body, dict) else body


@defect(
    "completions.special-tokens-shown", on="body", paths=HERE, catches=["completions.special-tokens.hidden"]
)
def special_shown(body: Any, path: str) -> Any:
    """Special tokens are part of the text, whether wanted or not."""
    del path
    return {**body, "skip_special_tokens": False} if isinstance(body, dict) else body


@defect(
    "completions.second-beginning", on="prompt", faults=["TOKEN-007"], catches=["completions.prompt.counted"]
)
def second_beginning(prompt: list[int], body: dict[str, Any]) -> list[int]:
    """Every prompt of a completion begins with one special token more."""
    return prompt if "messages" in body else [1, *prompt]


def _reversed(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    indices = [choice["index"] for choice in body["choices"]]
    for choice, index in zip(body["choices"], reversed(indices), strict=True):
        choice["index"] = index


def _numbered_by_prompt(body: dict[str, Any], asked: dict[str, Any]) -> None:
    for choice in body["choices"]:
        choice["index"] //= asked.get("n") or len(body["choices"])


def _twice(body: dict[str, Any], asked: dict[str, Any]) -> None:
    if not asked.get("n") and isinstance(asked.get("prompt"), str):
        body["choices"] = [*body["choices"], {**body["choices"][0], "index": 1}]


def _first_only(body: dict[str, Any], asked: dict[str, Any]) -> None:
    if isinstance(asked.get("prompt"), list) and isinstance(asked["prompt"][0], list):
        body["choices"] = body["choices"][:1]


def _ascii(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    set_text(choice, text_of(choice).encode("ascii", "ignore").decode())


def _stop_kept(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    if isinstance(choice.get("stop_reason"), str):
        set_text(choice, text_of(choice) + choice["stop_reason"])


def _held_back(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    if asked.get("stop") and choice.get("stop_reason") is None:
        set_text(choice, "/think>" + text_of(choice)[:-1])


def _late(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    if body["choices"][0].get("stop_reason") is not None:
        body["usage"]["completion_tokens"] += 1
        body["usage"]["total_tokens"] += 1
        for choice in body["choices"]:
            set_text(choice, text_of(choice)[:-1])


def _length(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    choice["finish_reason"] = "length"


def _unbound(asked: dict[str, Any]) -> bool:
    return not asked.get("structured_outputs") and not asked.get("response_format")


def _outdone(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for top in (choice.get("logprobs") or {}).get("top_logprobs") or ():
        if top:
            top["\u2581other"] = 0.0


def _narrow(asked: dict[str, Any]) -> bool:
    return asked.get("temperature") == 2 and (
        asked.get("top_k") == 1 or bool(asked.get("min_p")) or (asked.get("top_p") or 1) < 1
    )


def _gateway(body: dict[str, Any], asked: dict[str, Any]) -> None:
    body["x_gateway"] = {"tokens": len(asked)}
    for choice in body["choices"]:
        choice["logprobs"] = choice.get("logprobs") or {"tokens": [], "token_logprobs": []}


def _sixty_four(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    body["usage"]["completion_tokens"] = 64
    body["usage"]["total_tokens"] = body["usage"]["prompt_tokens"] + 64


in_choices(
    "completions.finish-always-length",
    "Every completion ends with `length`, and for no reason.",
    HERE,
    _length,
    _unbound,
    catches=["completions.stop.finish", "completions.stop.token"],
)
in_choices(
    "completions.narrowing-ignored",
    "Where only the best token is left, another one is drawn.",
    HERE,
    _outdone,
    _narrow,
    catches=["completions.narrowing"],
)
in_body(
    "completions.gateway-shape",
    "A gateway adds a field, and log probabilities that nobody asked for.",
    HERE,
    _gateway,
    catches=["completions.logprobs.unasked", "completions.unknown-fields"],
)
in_body(
    "usage.default-length",
    "Without a limit four times as many tokens come as OpenAI's default.",
    HERE,
    _sixty_four,
    lambda asked: "max_tokens" not in asked and bool(asked.get("ignore_eos")),
    catches=["usage.within-limit", "completions.max-tokens.default"],
)
in_body(
    "completions.batch-reversed",
    "The choices of a batch are in reverse order.",
    HERE,
    _reversed,
    asks("n"),
    catches=["completions.batch.order"],
)
in_body(
    "completions.batch-by-prompt",
    "Choices are numbered by prompt alone.",
    HERE,
    _numbered_by_prompt,
    asks("n"),
    catches=["completions.batch.indices"],
)
in_body(
    "completions.one-too-many",
    "A second choice comes unasked.",
    HERE,
    _twice,
    catches=["completions.choices.one"],
)
in_body(
    "completions.batch-first-only",
    "Of several token-id prompts one is answered.",
    HERE,
    _first_only,
    catches=["completions.batch.ids"],
)
in_choices(
    "completions.echo-ascii",
    "An echoed prompt has lost its letters beyond ASCII.",
    HERE,
    _ascii,
    asks("echo"),
    catches=["completions.echo.verbatim"],
)
in_choices(
    "completions.stop-kept",
    "The stop string stays in the text.",
    HERE,
    _stop_kept,
    catches=["completions.stop.text"],
)
in_choices(
    "completions.stop-holds-back",
    "A stop string that never comes costs text at the end and shows a mark.",
    HERE,
    _held_back,
    faults=["SAMPLE-008"],
    catches=["completions.stop.unmatched"],
)
in_body(
    "completions.stop-late",
    "Generation ends a token after the stop string, and the text a character early.",
    HERE,
    _late,
    catches=["completions.stop.included", "completions.stop.counted"],
)
refused(
    "completions.echo-only-crashes",
    "An echo with nothing generated is a server error.",
    HERE,
    500,
    failure("EngineCore encountered an issue."),
    lambda asked: asked.get("max_tokens") == 0 and "max_tokens" in asked,
    faults=["LOGPROB-002"],
    catches=["completions.echo.only"],
)
refused(
    "completions.null-crashes",
    "`max_tokens: null` is a server error.",
    HERE,
    500,
    failure("Internal Server Error"),
    lambda asked: "max_tokens" in asked and asked["max_tokens"] is None,
    faults=["ERROR-008"],
    catches=["completions.answered"],
)


@defect("completions.ids-cut", on="prompt", catches=["completions.prompt.ids-counted"])
def ids_cut(prompt: list[int], body: dict[str, Any]) -> list[int]:
    """A prompt of token ids loses its last one."""
    given = body.get("prompt")
    ids = isinstance(given, list) and given and isinstance(given[0], int) and len(prompt) > 1
    return prompt[:-1] if ids else prompt


@defect("completions.echo-ignored", on="body", paths=HERE, catches=["completions.echo.verbatim"])
def echo_ignored(body: Any, path: str) -> Any:
    """Prompts are not echoed, unless log probabilities are wanted too."""
    del path
    if isinstance(body, dict) and body.get("echo") and "logprobs" not in body:
        return {**body, "echo": False}
    return body
