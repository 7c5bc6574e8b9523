"""The messages of a chat request as a template takes them: text alone, calls with arguments that are JSON."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.check.body import bad_request, fields_of
from pytest_vllm.sim.errors import ApiError, Invalid
from pytest_vllm.sim.hearing import hear
from pytest_vllm.sim.tokens.template import text_of
from pytest_vllm.sim.vision import url_of

if TYPE_CHECKING:
    from pytest_vllm.sim.settings import Settings
    from pytest_vllm.sim.versions import Version
    from pytest_vllm.sim.vision import Vision

Body = dict[str, Any]
MEDIA = ("image_url", "input_audio", "audio_url", "video_url", "image_embeds", "file")
TEXT = ("text", "refusal", "thinking", "input_text", "output_text")


def plain(message: Body, settings: Settings) -> Body:
    """A message as text, pictures as what stands for them. Raises ApiError for what can't be read."""
    content, made = message.get("content"), dict(message)
    if isinstance(content, list):
        if settings.vision is not None:
            content = made["content"] = [_shown(part, settings.vision) for part in content]
        if settings.kind.transcribes:
            content = made["content"] = [_heard(part) for part in content]
        for number, part in enumerate(content):
            _readable(number, part, settings)
    if "reasoning_content" in made:
        made.setdefault("reasoning", made.pop("reasoning_content"))
    if isinstance(made.get("tool_calls"), list):
        calls = enumerate(made["tool_calls"])
        made["tool_calls"] = [_call(called, number, settings.version) for number, called in calls]
    return made


def instructed(messages: list[Body], settings: Settings) -> list[Body]:
    """A developer's messages as the system's, all in one in front: the template knows no developer."""
    if settings.version < "0.32.0" or all(message.get("role") != "developer" for message in messages):
        return messages
    orders = [message for message in messages if message.get("role") in ("developer", "system")]
    rest = [message for message in messages if message.get("role") not in ("developer", "system")]
    text = "\n\n".join(text for message in orders if (text := text_of(message)))
    return [{"role": "system", "content": text}, *rest]


def _heard(part: Any) -> Any:
    """A part of sound as the words in it; others as they are."""
    kind = part.get("type") if isinstance(part, dict) else ""
    if kind == "input_audio":
        coded = (part.get("input_audio") or {}).get("data") or ""
    elif kind == "audio_url":
        url = (part.get("audio_url") or {}).get("url") or ""
        if not url.startswith("data:"):
            raise ApiError("The URL must be a data URL: nothing is fetched by the simulated server.")
        coded = url.partition(",")[2]
    else:
        return part
    try:
        content = base64.b64decode(coded, validate=True)
    except ValueError:
        raise ApiError("Invalid base64-encoded audio.") from None
    return {"type": "text", "text": hear(content).words}


def _shown(part: Any, vision: Vision) -> Any:
    picture = isinstance(part, dict) and part.get("type") == "image_url"
    return {"type": "text", "text": vision.text(url_of(part))} if picture else part


def _readable(number: int, part: Any, settings: Settings) -> None:
    if isinstance(part, str) and settings.version < "0.32.0":
        return
    if not isinstance(part, dict):
        raise _wrong(f"{number}.ChatCompletionContentPartTextParam", "dictionary", "dict_type", part)
    kind = part.get("type", "text")
    if kind in MEDIA:
        raise ApiError(f"{settings.name} is not a multimodal model")
    if kind not in TEXT:
        raise ApiError(f"Unknown part type: {kind}")
    text = part.get("text")
    if not isinstance(text, str) and (kind == "text" or not part.keys() & {"refusal", "thinking"}):
        raise _wrong(f"{number}.ChatCompletionContentPartTextParam.text", "string", "string_type", text)


def _wrong(where: str, wanted: str, kind: str, value: Any) -> ApiError:
    shown = f"[type={kind}, input_value={value!r}, input_type={type(value).__name__}]"
    return ApiError(
        f"1 validation error for ValidatorIterator\n{where}\n  Input should be a valid {wanted} {shown}"
    )


def _call(called: Any, number: int, version: Version) -> Body:
    if not isinstance(called, dict):
        raise Invalid("assistant tool_calls entries must be objects.", "tool_calls")
    function = called.get("function")
    if not isinstance(function, dict):
        text = "chat completions only support assistant tool_calls of type 'function'."
        raise Invalid(text, "tool_calls")
    if wrong := fields_of(version.text).called(called, number):
        raise bad_request(wrong)
    arguments = function.get("arguments")
    if isinstance(arguments, str) and arguments:
        try:
            json.loads(arguments)
        except ValueError as error:
            if version < "0.32.0":
                raise ApiError(str(error)) from None
            return {**called, "function": {**function, "arguments": "{}"}}
    return called
