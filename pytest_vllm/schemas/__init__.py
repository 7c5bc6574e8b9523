"""What is wrong with a response body, measured against OpenAI's own types, graded.

The schemas are exported from the `openai` package (`python -m tools.schemas`). Those types
are lenient where OpenAI always sends a field, and know nothing of vLLM: `always-sent.json` adds what is
always there, `vllm-deviations.json` says what a vLLM of a given version is known to do otherwise.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from jsonschema import Draft202012Validator, SchemaError

from pytest_vllm.decide.verdict import Level
from pytest_vllm.locate import data_dir
from pytest_vllm.schemas.deviations import Deviation, known
from pytest_vllm.schemas.paths import concrete, nodes, pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema.exceptions import ValidationError

NAMES = (
    "chat.completion",
    "chat.completion.chunk",
    "completion",
    "completion.chunk",
    "models",
    "error",
    "response",
    "message",
)
#: Whose API a schema is of, where it is not OpenAI's.
_OTHERS = {"message": "anthropic"}
EXTRA, MISSING, TYPE = "extra", "missing", "type"
#: Who speaks may be the operator's choice (`--response-role`): checks of their own know it.
SPOKEN = ("message.role", "delta.role")

_ORDER = {Level.MUST: 0, Level.SHOULD: 1, Level.INFO: 2}


@dataclass(frozen=True)
class SchemaFault:
    """One thing that a body does otherwise than OpenAI's API.

    Args:
        level: MUST when clients of OpenAI break on it, SHOULD when they may, INFO when they do not care.
        path: where, such as `choices[0].message.role`; empty for the body itself.
        message: what is wrong there, with the value.
    """

    level: Level
    path: str
    message: str

    def __str__(self) -> str:
        """`choices[0].index: '0' is not of type 'integer'`."""
        return f"{self.path or 'the body'}: {self.message}"


def fits(schema: Any, value: Any) -> bool:
    """Whether a value fits a JSON Schema (2020-12) of a person. Raises ValueError on a wrong schema."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"the schema is wrong: {error.message}") from None
    return bool(Draft202012Validator(schema).is_valid(value))


def schema_faults(schema: str, value: Any, version: str = "") -> list[SchemaFault]:
    """Everything in which `value` departs from a schema, gravest first.

    Args:
        schema: one of `NAMES`.
        value: a decoded JSON body, or one event of a stream.
        version: vLLM's version, for what it is known to do; "" allows what any version does.

    Raises:
        KeyError: the schema is unknown.
    """
    if schema not in NAMES:
        raise KeyError(f"unknown schema {schema!r}; known: {', '.join(NAMES)}")
    deviations = known(schema, version)
    faults = [fault for raw in _raw(schema, value) if (fault := _grade(raw, value, deviations))]
    faults += _extension_faults(value, deviations)
    return sorted(set(faults), key=lambda fault: (_ORDER[fault.level], fault.path, fault.message))


@dataclass(frozen=True)
class _Raw:
    kind: str
    path: str
    message: str
    level: Level


def _raw(schema: str, value: Any) -> Iterator[_Raw]:
    for error in _validator(schema).iter_errors(value):
        for leaf in _leaves(error):
            yield from _of(leaf)
    for row in _always_sent():
        if schema in row["schemas"]:
            for path, node in nodes(value, row["path"]):
                if isinstance(node, dict) and row["field"] not in node:
                    where = f"{path}.{row['field']}".lstrip(".")
                    yield _Raw(MISSING, where, "is missing", Level(row["grade"]))


def _of(leaf: ValidationError) -> Iterator[_Raw]:
    path = concrete(leaf.absolute_path)
    instance, rule, schema = cast("tuple[Any, Any, Any]", (leaf.instance, leaf.validator_value, leaf.schema))
    if leaf.validator == "additionalProperties":
        for name in sorted(set(instance) - set(schema.get("properties", {}))):
            yield _Raw(EXTRA, f"{path}.{name}".lstrip("."), "is not a field of the API", Level.INFO)
    elif leaf.validator == "required":
        for name in rule:
            if name not in instance:
                yield _Raw(MISSING, f"{path}.{name}".lstrip("."), "is missing", Level.MUST)
    else:
        spoken = path.endswith(SPOKEN) and isinstance(instance, str)
        yield _Raw(TYPE, path, _said(leaf), Level.INFO if spoken else Level.MUST)


def _leaves(error: ValidationError) -> Iterator[ValidationError]:
    """The errors of the branch of a union that fits best; the error itself when it is not a union."""
    branches: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.schema_path[0], []).extend(_leaves(inner))
    if not branches:
        yield error
        return
    yield from min(branches.values(), key=lambda errors: _misfit(errors, error))


def _misfit(errors: list[ValidationError], union: ValidationError) -> tuple[bool, int, int]:
    """How badly a branch fits: not at all (another type at the top), then by the number of errors."""
    here = len(union.absolute_path)
    alien = any(e.validator == "type" and len(e.absolute_path) == here for e in errors)
    grave = sum(1 for e in errors if e.validator != "additionalProperties")
    return alien, grave, len(errors)


def _grade(raw: _Raw, value: Any, deviations: tuple[Deviation, ...]) -> SchemaFault | None:
    for row in deviations:
        if row.kind == raw.kind and row.path == pattern(raw.path) and row.allows(value, raw.path):
            if row.grade is None:
                return None
            return SchemaFault(row.grade, raw.path, f"{raw.message} (known of vLLM: {row.why})")
    return SchemaFault(raw.level, raw.path, raw.message)


def _extension_faults(value: Any, deviations: tuple[Deviation, ...]) -> list[SchemaFault]:
    faults = []
    for row in deviations:
        if row.kind == EXTRA and row.allow is not None:
            for path, node in nodes(value, row.path):
                if error := next(Draft202012Validator(row.allow).iter_errors(node), None):
                    said = f"vLLM's extension: {_clip(error.message)}"
                    faults.append(SchemaFault(Level.SHOULD, path, said))
    return faults


def _said(leaf: ValidationError) -> str:
    """The error in words that always name the value."""
    if leaf.validator == "const":
        return f"is {leaf.instance!r}, not {leaf.validator_value!r}"
    return _clip(leaf.message)


def _clip(message: str, width: int = 160) -> str:
    return message if len(message) <= width else f"{message[: width // 2]} … {message[-width // 2 :]}"


@cache
def _validator(schema: str) -> Draft202012Validator:
    name = f"{_OTHERS.get(schema, 'openai')}-{schema}.json"
    text = (data_dir("fixtures") / "schemas" / name).read_text("utf-8")
    return Draft202012Validator(json.loads(text))


@cache
def _always_sent() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(
        (data_dir("fixtures") / "schemas" / "always-sent.json").read_text("utf-8")
    )
    return rows
