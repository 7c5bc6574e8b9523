"""Exports the response types of the `openai` package to JSON Schema: `python -m pytest_vllm.schemas.build`.

Run it after an upgrade of `openai` and commit what changed. `--check` writes nothing and exits 1 when
the committed files are not what this `openai` gives.

Adapted on the way, because the package's types are models of what it accepts:

- every object refuses fields that it does not name, so that unknown ones are seen (they are graded INFO);
- `completion.chunk` is the package's `Completion` with a nullable `finish_reason`: it streams that type;
- `models` and `error` wrap the package's `Model` and `ErrorObject` as they come over the wire.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import openai
from openai.types import Completion, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.shared import ErrorObject

from pytest_vllm.locate import data_dir

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
    }
    head = {"$schema": DIALECT, "$comment": f"exported from openai {openai.__version__}"}
    return {f"openai-{name}.json": {**head, **schema} for name, schema in schemas.items()}


def main(argv: list[str] | None = None) -> int:
    """Write the schemas; or with `--check`, say which differ."""
    parser = argparse.ArgumentParser(prog="python -m pytest_vllm.schemas.build")
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
