"""Rules that vLLM applies to a raw request body before its fields are checked, first refusal wins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.errors import Invalid

if TYPE_CHECKING:
    from pytest_vllm.sim.settings import Settings
    from pytest_vllm.sim.versions import Version

Body = dict[str, Any]
MAX_PROMPTS = 1024
MAX_SALT = 128
_USAGE = 'Correct usage: `{"type": "function", "function": {"name": "my_function"}}`'


def chat(body: Body) -> None:
    """The rules of `/v1/chat/completions`, in vLLM's order."""
    generation_prompt(body)
    tool_choice(body)
    _one_constraint(body, with_tools=True)
    _logprobs(body, "top_logprobs")
    _stream_options(body)
    _response_format(body)
    cache_salt(body)
    _thinking_budget(body)
    if isinstance(body.get("messages", []), bool | int | float | None):
        raise Invalid(f"{type(body['messages']).__name__!r} object is not iterable")


def completion(body: Body, version: Version) -> None:
    """The rules of `/v1/completions`."""
    _prompt_count(body)
    _prompt_present(body)
    _stream_options(body)
    _logprobs(body, "logprobs", all_of_them=version >= "0.29.0")
    _one_constraint(body, with_tools=False)
    _response_format(body)
    cache_salt(body)
    _thinking_budget(body)


def no_tools(body: Body) -> None:
    """Of Responses: without tools the choice among them is none, and later refusals count it as sent."""
    if not body.get("tools") and body.get("tool_choice", "auto") in ("auto", "none"):
        body["tool_choice"] = "none"


def generation_prompt(body: Body) -> None:
    """A message is either continued or answered."""
    if body.get("continue_final_message") and body.get("add_generation_prompt"):
        raise Invalid("Cannot set both `continue_final_message` and `add_generation_prompt` to True.")


def continued(body: Body) -> None:
    """A template can't continue a message and open another one, which is what it does by default."""
    if body.get("continue_final_message") and body.get("add_generation_prompt") is not False:
        text = (
            "continue_final_message and add_generation_prompt are not compatible. Use continue_final_message "
            "when you want the model to continue the final message, and add_generation_prompt when you want "
            "to add a header that will prompt it to start a new assistant message instead."
        )
        raise Invalid(text)


def tool_choice(body: Body) -> None:
    """`tool_choice` fits `tools`; sets "auto" where tools come alone."""
    if body.get("tools") == []:
        text = (
            "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely."
        )
        raise Invalid(text, "tools")
    if "tool_choice" not in body and body.get("tools"):
        body["tool_choice"] = "auto"
    choice = body.get("tool_choice")
    if choice is None or choice == "none":
        return
    if body.get("tools") is None:
        raise Invalid("When using `tool_choice`, `tools` must be set.", "tool_choice")
    if choice not in ("auto", "required") and not isinstance(choice, dict):
        text = f'Invalid value for `tool_choice`: {choice}! Only named tools, "none", "auto" or "required" '
        raise Invalid(text + "are supported.", "tool_choice")
    if isinstance(choice, dict):
        _named_tool(choice, body["tools"])


def _named_tool(choice: dict[str, Any], tools: Any) -> None:
    function = choice.get("function")
    if not isinstance(function, dict):
        text = f"Invalid value for `function`: `{function}` in `tool_choice`! {_USAGE}"
        raise Invalid(text, "tool_choice.function")
    if "name" not in function:
        text = f"Expected field `name` in `function` in `tool_choice`! {_USAGE}"
        raise Invalid(text, "tool_choice.function.name")
    name = function["name"]
    if not isinstance(name, str) or not name:
        text = f"Invalid `name` in `function`: `{name}` in `tool_choice`! {_USAGE}"
        raise Invalid(text, "tool_choice.function.name")
    if not any(_name_of(tool) == name for tool in tools):
        raise Invalid(
            "The tool specified in `tool_choice` does not match any of the specified `tools`", "tool_choice"
        )


def _name_of(tool: Any) -> Any:
    function = tool.get("function") if isinstance(tool, dict) else None
    return function.get("name") if isinstance(function, dict) else None


def _one_constraint(body: Body, *, with_tools: bool) -> None:
    wanted = body.get("structured_outputs")
    if not isinstance(wanted, dict):
        return
    count = sum(wanted.get(kind) is not None for kind in ("json", "regex", "choice"))
    if count > 1:
        text = (
            "You can only use one kind of constraints for structured outputs ('json', 'regex' or 'choice')."
        )
        raise Invalid(text, None if with_tools else "structured_outputs")
    if with_tools and count and body.get("tool_choice", "none") not in ("none", "auto", "required"):
        raise Invalid("You can only either use constraints for structured outputs or tools, not both.")


def engine(body: Body, settings: Settings) -> None:
    """What the engine refuses: odd repetition limits, a budget of thoughts where none are known."""
    _repetition(body)
    if settings.version < "0.22.0" or settings.reasoning_parser or settings.args.get("reasoning_config"):
        return
    if body.get("thinking_token_budget") not in (None, -1):
        text = (
            "thinking_token_budget is set but reasoning_config is not configured. Please set "
            "--reasoning-parser and/or --reasoning-config to use thinking_token_budget."
        )
        raise Invalid(text)


def _repetition(body: Body) -> None:
    wanted = body.get("repetition_detection")
    if not isinstance(wanted, dict):
        return
    most, least = wanted.get("max_pattern_size") or 0, wanted.get("min_pattern_size") or 0
    if most < 0 or least < 0 or least > most:
        text = (
            "max_pattern_size, min_pattern_size must be >=0, with min_pattern_size <= max_pattern_size. Set "
            "both to 0 to disable repetitive pattern detection."
        )
        raise Invalid(text)
    if most > 0 and (wanted.get("min_count") or 0) < 2:
        text = (
            "min_count must be >= 2 to detect repetitive patterns in engine output. If you do not wish to "
            "detect repetitive patterns, set max_pattern_size to 0."
        )
        raise Invalid(text)


def _thinking_budget(body: Body) -> None:
    budget = body.get("thinking_token_budget")
    if budget is not None and (type(budget) is not int or budget < -1):
        text = "`thinking_token_budget` must be a non-negative integer or -1 for unlimited."
        raise Invalid(text, "thinking_token_budget", budget)


def _logprobs(body: Body, field: str, *, all_of_them: bool = True) -> None:
    if body.get("logprob_token_ids") and not body.get("logprobs"):
        how = "set to true" if field == "top_logprobs" else "set"
        text = f"when using `logprob_token_ids`, `logprobs` must be {how}."
        raise Invalid(text, "logprob_token_ids")
    for name in ("prompt_logprobs", field):
        if body.get(name) is not None and not isinstance(body[name], int | float):
            raise Invalid(f"`{name}` must be an integer.", name, body[name])
    prompt = body.get("prompt_logprobs")
    if prompt is not None:
        if body.get("stream") and (prompt > 0 or prompt == -1):
            raise Invalid("`prompt_logprobs` are not available when `stream=True`.", "prompt_logprobs")
        if prompt < 0 and prompt != -1:
            raise Invalid("`prompt_logprobs` must be a positive value or -1.", "prompt_logprobs", prompt)
    number = body.get(field)
    if number is None:
        return
    if number < 0 and not (number == -1 and all_of_them):
        text = f"`{field}` must be a positive value"
        raise Invalid(f"{text}{' or -1' * all_of_them}.", field, number)
    if field == "top_logprobs" and number != 0 and not body.get("logprobs"):
        raise Invalid("when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs")


def _stream_options(body: Body) -> None:
    if body.get("stream_options") and not body.get("stream"):
        raise Invalid("Stream options can only be defined when `stream=True`.", "stream_options")


def _response_format(body: Body) -> None:
    wanted = body.get("response_format")
    if isinstance(wanted, dict) and wanted.get("type") == "json_schema" and wanted.get("json_schema") is None:
        text = "When response_format type is 'json_schema', the 'json_schema' field must be provided."
        raise Invalid(text, "response_format")


def cache_salt(body: Body) -> None:
    """A salt is a short text without separators."""
    salt = body.get("cache_salt")
    if salt is None:
        return
    if not isinstance(salt, str) or not salt:
        raise Invalid("Parameter 'cache_salt' must be a non-empty string if provided.", "cache_salt")
    if len(salt) > MAX_SALT or any(char in "@/\\\x00" for char in salt):
        text = (
            "Parameter 'cache_salt' must be at most 128 characters and must not contain '@', '/', '\\\\', "
            "or NUL."
        )
        raise Invalid(text, "cache_salt")


def _prompt_present(body: Body) -> None:
    if body.get("prompt") in (None, "") and body.get("prompt_embeds") in (None, []):
        raise Invalid("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")


def _prompt_count(body: Body) -> None:
    prompt = body.get("prompt")
    if (
        isinstance(prompt, list)
        and len(prompt) > MAX_PROMPTS
        and not all(type(part) is int for part in prompt)
    ):
        text = (
            f"prompt list length {len(prompt)} exceeds the maximum allowed count of {MAX_PROMPTS}. To "
            "increase "
        )
        raise Invalid(
            text + "this limit, set the VLLM_MAX_COMPLETION_PROMPTS environment variable.", "prompt"
        )
