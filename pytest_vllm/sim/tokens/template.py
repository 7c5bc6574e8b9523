"""The chat template: messages become one prompt text (ChatML, with tools described in the first message)."""

from __future__ import annotations

import json
from typing import Any

_TOOLS = (
    "You can call these functions. To call one, write its name and arguments as JSON between the markers "
    "<tool_call> and </tool_call>.\n"
)

#: The end of a rendered chat: the assistant is to speak.
OPENED = "<|im_start|>assistant\n"


def render(
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]] | None,
    *,
    ask: bool = True,
    continued: bool = False,
    thinking: bool | None = None,
    prefilled_think: bool = False,
) -> str:
    """The prompt text.

    `ask` ends it with the assistant's opening; `continued` leaves the last message open. `thinking` False
    closes an empty thought at once; `prefilled_think` opens one, as DeepSeek R1's template does.
    """
    parts: list[str] = []
    if tools:
        head = [text_of(messages[0])] if messages and messages[0].get("role") == "system" else []
        listed = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
        parts.append(_message("system", "\n\n".join([*head, _TOOLS + listed])))
        messages = messages[1:] if head else messages
    for number, message in enumerate(messages):
        text = _spoken(message)
        if continued and number == len(messages) - 1:
            parts.append(f"<|im_start|>{message.get('role')}\n{text}")
        else:
            parts.append(_message(str(message.get("role")), text))
    if ask and not continued:
        parts.append(OPENED)
        if thinking is False:
            parts.append("<think>\n\n</think>\n\n")
        elif prefilled_think:
            parts.append("<think>\n")
    return "".join(parts)


def text_of(message: dict[str, Any]) -> str:
    """The plain text of a message whose content may be parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    return "" if content is None else str(content)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    return str(part.get("text") or part.get("refusal") or part.get("thinking") or "")


def _message(role: str, text: str) -> str:
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


def _spoken(message: dict[str, Any]) -> str:
    text = text_of(message)
    reasoning = message.get("reasoning")
    if reasoning:
        text = f"<think>\n{reasoning}\n</think>\n\n{text}"
    for call in message.get("tool_calls") or []:
        function = call.get("function", {})
        text += f"\n<tool_call>\n{json.dumps(function, ensure_ascii=False)}\n</tool_call>"
    if message.get("role") == "tool":
        text = f"<tool_response>\n{text}\n</tool_response>"
    return text
