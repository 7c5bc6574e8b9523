"""What a server shows beside its answers: metrics, routes, request fields, headers, start-up messages."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.wire.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_vllm.wire.recording import Recording

#: Start-up messages that are kept, and characters of each.
MOST_LINES, LONGEST_LINE = 80, 200
#: Request fields of a body, and characters of a default.
MOST_FIELDS, LONGEST_DEFAULT = 300, 40
#: Headers that proxies and clocks set as they please, and the simulator's own.
VARYING = frozenset(
    {"date", "content-length", "connection", "keep-alive", "transfer-encoding", "x-request-id"}
)
_PREFIX = re.compile(
    r"^\s*(?:\((?P<who>\w+)[^)]*\)\s*)?(?P<level>INFO|WARNING|ERROR|CRITICAL|DEBUG)\s+\S+\s+\S+\s*(?:\[[^\]]*\])?\s*"
)
_ROUTE = re.compile(r"Route: (?P<path>\S+), Methods: (?P<methods>[A-Z, ]+)")
_STARTED = re.compile(r"Application startup complete")
_NUMBER = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{12,}\b|\d[\d.,:]*")
_PATH = re.compile(r"(?<![\w.])/(?:[\w.@+-]+/)+[\w.@+-]*")
_PORT = re.compile(r"https?://\S+")
_CHOICE = re.compile(r"\b(?:backend|kernel|quantization|dtype|executor)\b", re.IGNORECASE)


def metrics(recordings: Iterable[Recording]) -> dict[str, str]:
    """Family -> its type and label names (`counter engine,model_name`), of the last scrape."""
    scrapes = [one for one in recordings if one.request.path == "/metrics" and one.status == 200]
    last = max(scrapes, key=lambda one: one.sent, default=None)
    found = Metrics(last.text) if last else None
    if found is None or found.fault:
        return {}
    labels: dict[str, set[str]] = {}
    for sample in found.samples:
        family = re.sub(r"_(?:total|bucket|sum|count|created)$", "", sample.name)
        name = family if family in found.types else sample.name
        labels.setdefault(name, set()).update(set(sample.labels) - {"le"})
    info = {name for name in found.types if name.endswith("_info")}
    named = {name: "" if name in info else ",".join(sorted(labels.get(name, ()))) for name in found.types}
    return {
        name: f"{found.types[name]} {named[name]}".rstrip()
        for name in sorted(found.types)
        if not name.endswith("_created")
    }


def settings(recordings: Iterable[Recording]) -> dict[str, str]:
    """The values of `vllm:cache_config_info`: what the engine chose, by label."""
    for one in recordings:
        if one.request.path == "/metrics" and one.status == 200:
            return dict(sorted(Metrics(one.text).labels("vllm:cache_config_info").items()))
    return {}


def headers(recordings: Iterable[Recording]) -> dict[str, int]:
    """Names of response headers -> in how many answers; the ones that vary and the simulator's left out."""
    found: dict[str, int] = {}
    for one in recordings:
        for name in {name for name, _ in one.headers}:
            if name not in VARYING and not name.startswith("x-sim-") and not name.startswith("x-pytest-vllm"):
                found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items()))


def routes(log: Iterable[str], document: Mapping[str, Any] | None) -> list[str]:
    """`METHOD /path` of every route: of the start-up log, or else of `/openapi.json`. Sorted."""
    found = set()
    for line in log:
        if match := _ROUTE.search(line):
            found |= {f"{method.strip()} {match['path']}" for method in match["methods"].split(",")}
    if not found and document:
        paths = document.get("paths")
        for path, operations in (paths if isinstance(paths, dict) else {}).items():
            found |= {f"{method.upper()} {path}" for method in operations}
    return sorted(route for route in found if not route.startswith(("HEAD ", "OPTIONS ")))


def request_fields(document: Mapping[str, Any] | None) -> dict[str, dict[str, str]]:
    """Route -> field of its request body -> type and default (`number=1.0`, `string!` where required)."""
    found: dict[str, dict[str, str]] = {}
    if not document:
        return found
    try:
        schemas = document.get("components", {}).get("schemas", {})
        for path, operations in document["paths"].items():
            body = operations.get("post", {}).get("requestBody", {}).get("content", {})
            schema = body.get("application/json", {}).get("schema")
            if schema:
                fields = dict(_fields(schema, schemas, 0))
                found[f"POST {path}"] = dict(sorted(fields.items())[:MOST_FIELDS])
    except (AttributeError, TypeError):
        return {}
    alike: dict[str, str] = {}
    # several routes take the same body: it is kept once
    for route, fields in sorted(found.items()):
        text = json.dumps(fields)
        if text in alike:
            found[route] = {"as": alike[text]}
        elif fields:
            alike[text] = route
    return {route: fields for route, fields in sorted(found.items()) if fields}


def _fields(schema: Mapping[str, Any], schemas: Mapping[str, Any], depth: int) -> Iterable[tuple[str, str]]:
    if depth > 4:
        return
    if "$ref" in schema:
        yield from _fields(schemas.get(schema["$ref"].rpartition("/")[2], {}), schemas, depth + 1)
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _fields(part, schemas, depth + 1)
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        default = f"={json.dumps(field['default'])[:LONGEST_DEFAULT]}" if "default" in field else ""
        yield name, f"{_type(field)}{default}{'!' * (name in required)}"


def _type(field: Mapping[str, Any]) -> str:
    if "$ref" in field:
        return "object"
    parts = [*field.get("anyOf", ()), *field.get("oneOf", ()), *field.get("allOf", ())]
    if parts:
        return "|".join(sorted({_type(part) for part in parts} - {"null"})) or "null"
    return str(field.get("type", "any"))


def startup(log: Iterable[str]) -> dict[str, list[str]]:
    """Start-up messages without numbers and paths: `warnings`, and `choices` of backends and kernels."""
    warnings: dict[str, None] = {}
    choices: dict[str, None] = {}
    for line in log:
        if _STARTED.search(line):
            break
        head = _PREFIX.match(line)
        said = line[head.end() :] if head else line
        if head and head["level"] in ("WARNING", "ERROR", "CRITICAL"):
            warnings[f"{head['level']} {plain(said)}"] = None
        elif head and _CHOICE.search(said) and "args:" not in said and "config:" not in said:
            choices[plain(said)] = None
    return {"warnings": sorted(warnings)[:MOST_LINES], "choices": sorted(choices)[:MOST_LINES]}


def plain(line: str) -> str:
    """A log line without what differs from start to start."""
    for pattern, mark in ((_PORT, "URL"), (_PATH, "PATH"), (_NUMBER, "N")):
        line = pattern.sub(mark, line)
    return " ".join(line.split())[:LONGEST_LINE]
