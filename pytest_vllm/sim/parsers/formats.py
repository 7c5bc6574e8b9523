"""How models of different families write tool calls, and how their parsers read them.

A format writes calls (`write`) and reads text that comes in pieces (`reader`): pieces of content, the name of
a call, and pieces of its arguments.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pytest_vllm.sim.check.constraints import resolve
from pytest_vllm.sim.parsers.scan import JsonValue, held_back

Call = tuple[str, dict[str, Any]]
Part = tuple[str, int, str]  # ("text" | "name" | "arguments", number of the call, text)
_BEGIN, _CALL = "<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581call\u2581begin\uff5c>"
_SEP, _CALL_END = "<\uff5ctool\u2581sep\uff5c>", "<\uff5ctool\u2581call\u2581end\uff5c>"
_END = "<\uff5ctool\u2581calls\u2581end\uff5c>"


def dumps(value: Any) -> str:
    """JSON as models write it."""
    return json.dumps(value, ensure_ascii=False)


class Reader:
    """Base of all readers: content passes until an opening marker comes."""

    markers: tuple[str, ...] = ()

    def __init__(self) -> None:
        """Nothing read."""
        self.rest = ""
        self.number = -1
        self.inside = False

    def feed(self, piece: str, *, finished: bool = False) -> list[Part]:
        """What this piece brings."""
        self.rest += piece
        parts: list[Part] = []
        while True:
            before = (self.rest, self.inside)
            parts += self.inner() if self.inside else self._outside(finished=finished)
            if (self.rest, self.inside) == before:
                return [part for part in parts if part[2] or part[0] == "name"]

    def inner(self) -> list[Part]:
        """Read inside of a call; leave `self.rest` unchanged when more is needed."""
        raise NotImplementedError

    def _outside(self, *, finished: bool) -> list[Part]:
        found = min(
            ((self.rest.find(marker), marker) for marker in self.markers if marker in self.rest),
            default=(-1, ""),
        )
        if found[0] >= 0:
            text, self.rest = self.rest[: found[0]], self.rest[found[0] + len(found[1]) :]
            self.inside = True
            self.opened()
            return [("text", -1, text)]
        keep = 0 if finished else held_back(self.rest, self.markers)
        text, self.rest = self.rest[: len(self.rest) - keep], self.rest[len(self.rest) - keep :]
        return [("text", -1, text)]

    def opened(self) -> None:
        """An opening marker was read."""


class JsonCalls(Reader):
    """Calls as JSON objects with `name` and `arguments` or `parameters`."""

    key = re.compile(r'"(?:arguments|parameters)"\s*:\s*')
    name = re.compile(r'"name"\s*:\s*"((?:[^"\\]|\\.)*)"')
    closing = "</tool_call>"
    many = False

    def __init__(self) -> None:
        """Before the first call."""
        super().__init__()
        self.value: JsonValue | None = None
        self.named = False

    def opened(self) -> None:
        """A call or a list of calls begins."""
        self.value, self.named = None, False

    def inner(self) -> list[Part]:
        """Name, then arguments, then what closes the call."""
        if self.value is not None and not self.value.ended:
            text, self.rest = self.value.take(self.rest)
            return [("arguments", self.number, text)]
        if self.value is not None:
            return self._after()
        if not self.named:
            found = self.name.search(self.rest)
            if not found:
                return []
            self.named = True
            self.number += 1
            self.rest = self.rest[found.end() :]
            return [("name", self.number, json.loads(f'"{found[1]}"'))]
        found = self.key.search(self.rest)
        if found and found.end() < len(self.rest):
            self.rest = self.rest[found.end() :]
            self.value = JsonValue()
        return []

    def _after(self) -> list[Part]:
        if self.closing:
            end = self.rest.find(self.closing)
            if end < 0:
                return []
            self.rest = self.rest[end + len(self.closing) :]
            self.inside = False
            return []
        following = self.name.search(self.rest)
        if following:
            self.rest = self.rest[following.start() :]
            self.value, self.named = None, False
        return []


class Hermes(JsonCalls):
    """`<tool_call>{"name": …, "arguments": {…}}</tool_call>`."""

    markers = ("<tool_call>",)

    @staticmethod
    def write(calls: list[Call]) -> str:
        """As Qwen and Hermes models write."""
        return "\n".join(
            f"<tool_call>\n{dumps({'name': name, 'arguments': arguments})}\n</tool_call>"
            for name, arguments in calls
        )


class Mistral(JsonCalls):
    """`[TOOL_CALLS][{"name": …, "arguments": {…}}]`."""

    markers = ("[TOOL_CALLS]",)
    closing = ""

    @staticmethod
    def write(calls: list[Call]) -> str:
        """As Mistral models write."""
        return "[TOOL_CALLS]" + dumps([{"name": name, "arguments": arguments} for name, arguments in calls])


class Llama3(JsonCalls):
    """`<|python_tag|>{"name": …, "parameters": {…}}; …`, or without the tag when it begins with a brace."""

    markers = ("<|python_tag|>",)
    closing = ""

    def __init__(self) -> None:
        """Before the text."""
        super().__init__()
        self.worded = False

    def feed(self, piece: str, *, finished: bool = False) -> list[Part]:
        """A text that begins with a brace is a call; one behind words is none, however the pieces fall."""
        begun = (self.rest + piece).lstrip()
        if self.number < 0 and not self.inside and not self.worded and begun.startswith("{"):
            self.inside = True
            self.opened()
        self.worded = self.worded or bool(begun)
        return super().feed(piece, finished=finished)

    @staticmethod
    def write(calls: list[Call]) -> str:
        """As Llama 3 models write."""
        return "; ".join(dumps({"name": name, "parameters": arguments}) for name, arguments in calls)


class DeepSeek(Reader):
    """Calls between DeepSeek's own markers, in the styles of V3 and V3.1."""

    markers = (_BEGIN,)
    head = re.compile(
        re.escape(_CALL)
        + r"(?:function"
        + re.escape(_SEP)
        + r"(\S+)\n```json\n|(\S+?)"
        + re.escape(_SEP)
        + ")"
    )

    def __init__(self) -> None:
        """Before the calls."""
        super().__init__()
        self.value: JsonValue | None = None

    def inner(self) -> list[Part]:
        """Calls one after the other, until the end of all."""
        if self.value is not None:
            text, self.rest = self.value.take(self.rest)
            if self.value.ended:
                self.value = None
            return [("arguments", self.number, text)]
        end, call = self.rest.find(_END), self.rest.find(_CALL)
        if end >= 0 and (call < 0 or end < call):
            self.rest, self.inside = self.rest[end + len(_END) :], False
            return []
        found = self.head.search(self.rest)
        if not found:
            return []
        self.number += 1
        self.rest = self.rest[found.end() :]
        self.value = JsonValue()
        return [("name", self.number, found[1] or found[2])]

    @staticmethod
    def write(calls: list[Call]) -> str:
        """As DeepSeek V3.1 models write."""
        inner = "".join(f"{_CALL}{name}{_SEP}{dumps(arguments)}{_CALL_END}" for name, arguments in calls)
        return f"{_BEGIN}{inner}{_END}"


def _kinds(schema: Any, root: Any) -> set[str]:
    """The types that a schema names, in its alternatives and by reference too."""
    if not isinstance(schema, dict):
        return set()
    named = schema.get("type")
    found = {str(kind) for kind in (named if isinstance(named, list) else [named] if named else [])}
    if isinstance(schema.get("$ref"), str):
        found |= _kinds(resolve(schema["$ref"], root), {})
    for key in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(key) or ():
            found |= _kinds(part, root)
    return found


class QwenXml(Reader):
    """`<tool_call><function=NAME><parameter=KEY>value</parameter>…</function></tool_call>`."""

    markers = ("<tool_call>",)
    function = re.compile(r"\s*<function=([^>\n]+)>\s*")
    parameter = re.compile(r"\s*<parameter=([^>\n]+)>\n?(.*?)\n?</parameter>\s*", re.DOTALL)
    closing = re.compile(r"\s*</function>\s*</tool_call>")

    def __init__(self, tools: list[dict[str, Any]] | None = None) -> None:
        """Values take the types that the tools' schemas declare."""
        super().__init__()
        functions = [tool.get("function", tool) for tool in tools or []]
        self.schemas = {tool.get("name"): tool.get("parameters") or {} for tool in functions}
        self.named = ""
        self.given = 0

    def opened(self) -> None:
        """A call begins."""
        self.named, self.given = "", 0

    def inner(self) -> list[Part]:
        """The name, whole parameters one by one, the end."""
        if not self.named:
            found = self.function.match(self.rest)
            if not found:
                return []
            self.named = found[1]
            self.number += 1
            self.rest = self.rest[found.end() :]
            return [("name", self.number, self.named)]
        found = self.parameter.match(self.rest)
        if found:
            self.rest = self.rest[found.end() :]
            start = "{" if not self.given else ", "
            self.given += 1
            return [
                (
                    "arguments",
                    self.number,
                    f"{start}{dumps(found[1])}: {dumps(self._typed(found[1], found[2]))}",
                )
            ]
        found = self.closing.match(self.rest)
        if found:
            self.rest, self.inside = self.rest[found.end() :], False
            return [("arguments", self.number, "}" if self.given else "{}")]
        return []

    def _typed(self, key: str, text: str) -> Any:
        parameters = self.schemas.get(self.named, {})
        kinds = _kinds(parameters.get("properties", {}).get(key, {}), parameters)
        if kinds <= {"string"}:
            return text
        try:
            value = json.loads(text)
        except ValueError:
            return text
        return text if "string" in kinds and isinstance(value, str) else value

    @staticmethod
    def write(calls: list[Call]) -> str:
        """As Qwen3-Coder models write."""
        texts = []
        for name, arguments in calls:
            inner = "".join(
                f"<parameter={key}>\n{value if isinstance(value, str) else dumps(value)}\n</parameter>\n"
                for key, value in arguments.items()
            )
            texts.append(f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>")
        return "\n".join(texts)


FORMATS: dict[str, Any] = {
    "hermes": Hermes,
    "qwen3_coder": QwenXml,
    "llama3_json": Llama3,
    "mistral": Mistral,
    "deepseek": DeepSeek,
}


def format_of(parser: str) -> Any:
    """The format that a tool parser reads; parsers of other families read hermes' here."""
    for begin, name in (
        ("hermes", "hermes"),
        ("qwen3_coder", "qwen3_coder"),
        ("qwen3_xml", "qwen3_coder"),
        ("qwen3_engine", "qwen3_coder"),
        ("llama", "llama3_json"),
        ("mistral", "mistral"),
        ("deepseek", "deepseek"),
    ):
        if parser.startswith(begin):
            return FORMATS[name]
    return FORMATS["hermes"]
