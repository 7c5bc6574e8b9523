"""Make the simulator's own fact tables (`sim-*.json`) from the collected vLLM facts.

Run `python -m tools.facts.sim_tables FOLDER` with the folder that holds flags.json, metrics.json,
fields.json, openapi-0.32.0.json and metrics-0.32.0.txt. Running it on facts that know one more
version is how the simulator learns that version.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from pytest_vllm.facts.timeline import DATA

REQUESTS = (
    "ChatCompletionRequest",
    "BatchChatCompletionRequest",
    "CompletionRequest",
    "TokenizeCompletionRequest",
    "TokenizeChatRequest",
    "DetokenizeRequest",
    "ResponsesRequest",
    "AnthropicMessagesRequest",
    "AnthropicCountTokensRequest",
)
_ANY, _NULL = {"type": "object"}, {"type": "null"}
#: A pydantic model whose fields are not looked at.
_MODEL = {"type": "object", "model": True}
#: Parts of request schemas that the simulator knows by their outside only.
OPEN = {
    "ResponsesRequest": {
        "input": {"anyOf": [{"type": "string"}, {"type": "array", "items": _ANY}]},
        "tools": {"type": "array", "items": _MODEL},
        "tool_choice": {"anyOf": [{"enum": ["none", "auto", "required"]}, {**_MODEL, "required": ["type"]}]},
        "text": {"anyOf": [_MODEL, _NULL]},
        "prompt": {},
        "previous_input_messages": {"anyOf": [{"type": "array", "items": _MODEL}, _NULL]},
    }
}
KEPT = (
    "type", "properties", "items", "anyOf", "enum", "const", "required", "additionalProperties",
    "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "minItems", "maxItems", "$ref",
)  # fmt: skip


def write(name: str, table: Any) -> None:
    """One compact JSON file beside this script."""
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":"), sort_keys=name != "schema")
    (DATA / f"sim-{name}.json").write_text(text + "\n", "utf-8")


def choices(flag: dict[str, Any]) -> list[tuple[str, list[str] | None]]:
    """The choices that argparse checks, as (from version, list or None)."""
    current = [str(choice) for choice in flag.get("choices") or []]
    steps: list[tuple[str, list[str] | None]] = []
    for version, change in reversed(flag.get("choices_changes", [])):
        steps.append((version, sorted(current) or None))
        current = [choice for choice in current if choice not in change["+"]] + list(change["-"])
    steps.append((flag["added"].lstrip("<="), sorted(current) or None))
    return [
        (version, None if not listed or any(choice.startswith("@") for choice in listed) else listed)
        for version, listed in reversed(steps)
    ]


def flags(facts: dict[str, Any]) -> dict[str, Any]:
    """Serve flags: [added, removed, negatable since, reappears], type and default by version, choices."""
    table = {}
    for name, flag in facts["flags"].items():
        table[name] = {
            "span": [flag["added"].lstrip("<="), flag.get("removed", "")],
            "type": flag["type"],
            "default": flag["default"],
            "negatable": flag.get("negatable_since", ""),
            "aliases": flag.get("aliases", []),
            "choices": choices(flag) if "choices" in flag else [],
            "reappears": flag.get("reappears", "").split(" ")[0],
        }
    return table


def metrics(facts: dict[str, Any], text: str) -> dict[str, Any]:
    """Families that an ordinary V1 server exports: type, labels, versions, help and label values if seen."""
    helps = dict(re.findall(r"# HELP (\S+) (.*)", text))
    families = {}
    for name, metric in facts["metrics"].items():
        if metric["type"] not in ("counter", "gauge", "histogram") or metric.get("component", "").startswith(
            ("distributed", "entrypoints", "v1/simple", "v1/kv_offload")
        ):
            continue
        when = metric.get("when_identifiers", [])
        families[name] = {
            "span": [metric["added"].lstrip("<="), metric.get("removed", "")],
            "type": metric["type"],
            "labels": metric["labels"],
            "engines": metric["engines"],
            "when": when,
            "help": helps.get(name, ""),
            "seen": name in helps,
        }
    order = [name for name in helps if name.startswith("vllm:") and not name.endswith("_created")]
    return {"families": families, "order": order, "cache_config": cache_config(facts, text)}


def cache_config(facts: dict[str, Any], text: str) -> dict[str, Any]:
    """Labels of vllm:cache_config_info: versions and the value seen on 0.32.0."""
    line = re.search(r"^vllm:cache_config_info\{(.*)\} ", text, re.MULTILINE)
    seen = dict(re.findall(r'(\w+)="([^"]*)"', line[1] if line else ""))
    return {
        name: {
            "span": [field["added"], field.get("removed", "")],
            "absent": field.get("absent_between", []),
            "value": seen.get(name, "None"),
        }
        for name, field in facts["cache_config_info_fields"].items()
    }


def schema(openapi: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Request schemas of 0.32.0, reduced to what validation needs, and when each field was added."""
    schemas = openapi["components"]["schemas"]
    kept: dict[str, Any] = {}
    todo = list(REQUESTS)
    while todo:
        name = todo.pop(0)
        if name in kept:
            continue
        kept[name] = node = reduced(schemas[name])
        for field, shape in OPEN.get(name, {}).items():
            if field in node["properties"]:
                node["properties"][field] = shape
        todo += re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(node))
    text = json.dumps(kept).replace("#/components/schemas/", "")
    added = {
        name: {
            field: entry["added"]
            for field, entry in fields["classes"][name]["fields"].items()
            if "added" in entry
        }
        for name in kept
        if name in fields["classes"]
    }
    return {"schemas": json.loads(text), "added": {name: known for name, known in added.items() if known}}


def reduced(node: Any) -> Any:
    """A schema node without titles, descriptions and defaults."""
    if isinstance(node, list):
        return [reduced(part) for part in node]
    if not isinstance(node, dict):
        return node
    if "discriminator" in node:
        tags = {reference: tag for tag, reference in node["discriminator"]["mapping"].items()}
        return {**_MODEL, "tags": [tags[member["$ref"]] for member in node["oneOf"]]}
    return {
        key: {name: reduced(part) for name, part in value.items()} if key == "properties" else reduced(value)
        for key, value in node.items()
        if key in KEPT
    }


def main(folder: Path) -> None:
    """Write all tables."""

    def read(name: str) -> Any:
        return json.loads((folder / name).read_text("utf-8"))

    write("flags", flags(read("flags.json")))
    write("metrics", metrics(read("metrics.json"), (folder / "metrics-0.32.0.txt").read_text("utf-8")))
    write("schema", schema(read("openapi-0.32.0.json"), read("fields.json")))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
