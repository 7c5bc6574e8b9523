"""Exports the response types of the `openai` package to JSON Schema: `python -m tools.schemas`.

Run it after an upgrade of `openai` and commit what changed. `--check` writes nothing and exits 1 when
the committed files are not what this `openai` gives.

Adapted on the way, because the package's types are models of what it accepts:

- every object refuses fields that it does not name, so that unknown ones are seen (they are graded INFO);
- `completion.chunk` is the package's `Completion` with a nullable `finish_reason`: it streams that type;
- `models` and `error` wrap the package's `Model` and `ErrorObject` as they come over the wire;
- `response` keeps the output items that a model without built-in tools makes; tools are echoed as they came.

`anthropic-message.json` is written by hand after Anthropic's reference, and not touched here.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from typing import Any

import openai
from openai.types import Completion, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response
from openai.types.shared import ErrorObject

from pytest_vllm.locate import data_dir

#: Output items whose parts are looked at.
ITEMS = ("ResponseOutputMessage", "ResponseFunctionToolCall", "ResponseReasoningItem")

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def build() -> dict[str, dict[str, Any]]:
    """File name -> schema."""
    schemas = {
        "chat.completion": _export(ChatCompletion),
        "chat.completion.chunk": _export(ChatCompletionChunk),
        "completion": _export(Completion),
        "completion.chunk": _streamed(_export(Completion)),
        "models": _wrapped(_export(Model), _listed),
        "error": _wrapped(_export(ErrorObject), lambda error: _object(error=error)),
        "response": _slim(_export(Response)),
    }
    head = {"$schema": DIALECT, "$comment": f"exported from openai {openai.__version__}"}
    return {f"openai-{name}.json": {**head, **schema} for name, schema in schemas.items()}


def main(argv: list[str] | None = None) -> int:
    """Write the schemas; or with `--check`, say which differ."""
    parser = argparse.ArgumentParser(prog="python -m tools.schemas")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 when a file is out of date"
    )
    check = parser.parse_args(argv).check
    folder = data_dir("fixtures") / "schemas"
    stale = []
    for name, schema in build().items():
        text = json.dumps(schema, indent=1, sort_keys=True) + "\n"
        path = folder / name
        if not path.is_file() or path.read_text("utf-8") != text:
            stale.append(name)
            if not check:
                path.write_text(text, "utf-8")
    verb = "out of date" if check else "written"
    print(f"openai {openai.__version__}: {len(stale)} {verb}{': ' if stale else ''}{', '.join(stale)}")
    return 1 if check and stale else 0


def _export(model: Any) -> dict[str, Any]:
    schema: dict[str, Any] = _bare(model.model_json_schema())
    return schema


def _bare(node: Any) -> Any:
    """The schema without titles, texts and defaults, and with every object closed."""
    if isinstance(node, list):
        return [_bare(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):
            kept[key] = {name: _bare(inner) for name, inner in value.items()}
        elif key not in ("title", "description", "default"):
            kept[key] = _bare(value)
    if "properties" in kept:
        kept["additionalProperties"] = False
    return kept


def _streamed(schema: dict[str, Any]) -> dict[str, Any]:
    choice = schema["$defs"]["CompletionChoice"]
    reason = choice["properties"]["finish_reason"]
    choice["properties"]["finish_reason"] = {"anyOf": [reason, {"type": "null"}]}
    return schema


def _slim(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a response without what only OpenAI's own tools make, which is most of it."""
    properties, definitions = schema["properties"], schema["$defs"]
    kept = [{"$ref": f"#/$defs/{name}"} for name in ITEMS]
    names = [definitions[name]["properties"]["type"]["const"] for name in ITEMS]
    other = {"type": "object", "properties": {"type": {"not": {"enum": names}}}, "required": ["type"]}
    properties["output"] = {"type": "array", "items": {"anyOf": [*kept, other]}}
    properties["tools"] = {"type": "array", "items": {"type": "object"}}
    for name in ("tool_choice", "prompt", "instructions"):
        properties[name] = {}
    return {**schema, "$defs": _reached(schema, definitions)}


def _reached(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The definitions that the schema still uses."""
    found: dict[str, Any] = {}
    waiting = [{key: value for key, value in schema.items() if key != "$defs"}]
    while waiting:
        for name in re.findall(r"#/\$defs/(\w+)", json.dumps(waiting.pop())):
            if name not in found:
                found[name] = definitions[name]
                waiting.append(found[name])
    return found


def _wrapped(inner: dict[str, Any], wrap: Any) -> dict[str, Any]:
    definitions = inner.pop("$defs", {})
    name = "Inner"
    return {**wrap({"$ref": f"#/$defs/{name}"}), "$defs": {**definitions, name: inner}}


def _object(**properties: Any) -> dict[str, Any]:
    closed = {"type": "object", "additionalProperties": False}
    return {**closed, "properties": properties, "required": sorted(properties)}


def _listed(model: dict[str, Any]) -> dict[str, Any]:
    return _object(object={"const": "list"}, data={"type": "array", "items": model})


if __name__ == "__main__":
    sys.exit(main())
