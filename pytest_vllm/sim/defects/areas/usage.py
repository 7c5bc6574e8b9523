"""Defects of what is billed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import asks, failure, in_body, refused
from pytest_vllm.sim.defects.make import spoil
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MESSAGES, RESPONSES, only

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

BOTH = (CHAT, COMPLETIONS)


def _bill(body: dict[str, Any], prompt: int | None = None, completion: int | None = None) -> None:
    usage = body["usage"]
    usage["prompt_tokens"] = usage["prompt_tokens"] if prompt is None else prompt
    usage["completion_tokens"] = usage["completion_tokens"] if completion is None else completion
    usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]


def _behind_the_stop(body: dict[str, Any], asked: dict[str, Any]) -> None:
    _bill(body, completion=(asked.get("max_tokens") or 16) + 5)


def _unbilled(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    _bill(body, prompt=0)


def _first_choice(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    _bill(body, completion=body["usage"]["completion_tokens"] // len(body["choices"]))


def _first_prompt(body: dict[str, Any], asked: dict[str, Any]) -> None:
    prompts = asked.get("prompt")
    if isinstance(prompts, list) and not isinstance(prompts[0], int):
        _bill(body, prompt=body["usage"]["prompt_tokens"] // len(prompts))


def _echo_billed(body: dict[str, Any], asked: dict[str, Any]) -> None:
    if asked.get("echo"):
        _bill(body, completion=body["usage"]["completion_tokens"] + body["usage"]["prompt_tokens"])


def _uncached(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    details = body["usage"].get("prompt_tokens_details") or {}
    _bill(body, prompt=max(1, body["usage"]["prompt_tokens"] - (details.get("cached_tokens") or 0)))


def _parts(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    usage = body["usage"]
    usage["prompt_tokens_details"] = {"cached_tokens": usage["prompt_tokens"] + 7}
    usage["completion_tokens_details"] = {"reasoning_tokens": usage["completion_tokens"] + 7}


def _all_but_one(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    usage = body["usage"]
    usage["prompt_tokens_details"] = {"cached_tokens": usage["prompt_tokens"] - 1}


def _responses(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    if body.get("usage"):
        body["usage"]["input_tokens"] += 1
        body["usage"]["total_tokens"] += 1


def _responses_zero(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    if body.get("usage"):
        body["usage"]["input_tokens_details"] = {"cached_tokens": 0}


in_body(
    "usage.behind-the-stop",
    "What would have come behind a stop string is billed.",
    BOTH,
    _behind_the_stop,
    asks("stop"),
    catches=["usage.within-limit"],
)
in_body(
    "usage.prompt-zero",
    "The prompt of several choices is not billed.",
    BOTH,
    _unbilled,
    asks("n"),
    catches=["usage.prompt-counted"],
)
in_body(
    "usage.first-choice",
    "Only the first choice is billed.",
    BOTH,
    _first_choice,
    asks("n"),
    catches=["usage.choices", "usage.batch"],
)
in_body(
    "usage.first-prompt",
    "Of a batch only the first prompt is billed.",
    (COMPLETIONS,),
    _first_prompt,
    catches=["usage.batch-prompts"],
)
in_body(
    "usage.echo-billed",
    "An echoed prompt is billed as generated.",
    (COMPLETIONS,),
    _echo_billed,
    catches=["usage.batch", "usage.within-limit"],
)
in_body(
    "usage.cached-unbilled",
    "Cached tokens are left out of the prompt.",
    (CHAT,),
    _uncached,
    catches=["usage.stable"],
)
in_body(
    "usage.parts-too-large",
    "Cached and thought tokens are more than there are.",
    BOTH,
    _parts,
    area="cache",
    catches=["usage.cached-part"],
)
in_body(
    "usage.cold-prompt-cached",
    "A prompt that was never seen counts as cached, all but one token.",
    BOTH,
    _all_but_one,
    faults=["USAGE-005"],
    area="cache",
    catches=["canary.usage.cold"],
)
spoil(
    "usage.details-lost",
    "Prompt token details are null, whatever was cached.",
    BOTH,
    "usage.prompt_tokens_details",
    None,
    faults=["USAGE-001", "USAGE-002", "USAGE-006"],
    area="canary",
    catches=["canary.usage.warm"],
)
spoil(
    "usage.details-empty",
    "Prompt token details lack the cached tokens.",
    BOTH,
    "usage.prompt_tokens_details.cached_tokens",
    None,
    catches=["usage.cached-tokens"],
)
in_body(
    "usage.responses-one-more",
    "Responses counts a second beginning of the prompt.",
    (RESPONSES,),
    _responses,
    faults=["TOKEN-008"],
    catches=["usage.responses-agrees"],
)
in_body(
    "usage.responses-never-cached",
    "Responses never tells of cached tokens.",
    (RESPONSES,),
    _responses_zero,
    faults=["USAGE-004"],
    area="canary",
    catches=["canary.usage.warm-response"],
)
spoil(
    "usage.messages-off",
    "Messages counts other tokens than chat.",
    (MESSAGES,),
    "usage.input_tokens",
    3,
    catches=["usage.messages-agrees"],
)
refused(
    "usage.others-crash",
    "A plain question over Responses or Messages is a server error.",
    (RESPONSES, MESSAGES),
    500,
    failure("Internal Server Error"),
    lambda asked: (
        "capital of France" in str(asked) and 1 in (asked.get("max_tokens"), asked.get("max_output_tokens"))
    ),
    catches=["usage.messages.answered", "usage.responses.answered"],
)


@defect("usage.last-not-counted", on="events", paths=(CHAT, COMPLETIONS), catches=["usage.every.running"])
def last_not_counted(events: list[Event], exchange: Exchange) -> list[Event]:
    """The running count of a stream leaves out the token that ends it."""
    del exchange
    for event in events:
        usage = event.data.get("usage") if isinstance(event.data, dict) and event.finish else None
        if usage:
            usage["completion_tokens"] -= 1
            usage["total_tokens"] -= 1
    return events


def _response_unbilled(events: list[Event], exchange: Exchange) -> list[Event]:
    del exchange
    for event in events:
        response = event.data.get("response") if isinstance(event.data, dict) else None
        if isinstance(response, dict) and response.get("status") == "completed":
            response["usage"] = None
    return events


add(
    "usage.response-stream-unbilled",
    "A streamed response ends without what it cost.",
    {"events": only((RESPONSES,), _response_unbilled)},
    catches=["usage.every.told"],
)
