"""What may be said against calls: by themselves, against a schema, against the calls that were meant."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema

from pytest_vllm import short

from .answers import Answer, Call, call_pieces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm import Recording

Meant = tuple[str, Any]


def parsed(call: Call) -> Any:
    """The arguments as JSON. Raises ValueError when they are none."""
    return json.loads(call.arguments)


def object_fault(call: Call) -> str:
    """Why a call's arguments are not a JSON object; empty when they are one."""
    try:
        value = parsed(call)
    except ValueError as error:
        return f"{call.name}: arguments {short(call.arguments)} are not JSON ({error})"
    if not isinstance(value, dict):
        return f"{call.name}: arguments {short(call.arguments)} are not an object"
    return ""


def schema_fault(call: Call, schemas: Mapping[str, Any]) -> str:
    """How a call's arguments break the schema of its tool; empty when they do not, or are not an object."""
    if call.name not in schemas or object_fault(call):
        return ""
    known = jsonschema.validators.validator_for(schemas[call.name], default=jsonschema.Draft202012Validator)
    strict = known.TYPE_CHECKER.redefine("integer", _integer)
    validator = jsonschema.validators.extend(known, type_checker=strict)  # type: ignore[no-untyped-call]
    found = next(iter(validator(schemas[call.name]).iter_errors(parsed(call))), None)
    return f"{call.name}: {short(call.arguments)}: {found.message[:120]}" if found else ""


def _integer(checker: object, value: object) -> bool:
    """Whether a value is written as an integer: 42.0 is a number that programs can't count with."""
    del checker
    return isinstance(value, int) and not isinstance(value, bool)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: true is not 1, but 1.0 is."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return (type(one) is type(other) and one == other) or (_numbers(one, other) and one == other)


def _numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) for value in values)


def differences(calls: Sequence[Call], meant: Sequence[Meant]) -> list[str]:
    """How calls differ from (name, arguments) that were meant: number, order, names, values."""
    if len(calls) != len(meant):
        return [f"{len(calls)} calls {[call.name for call in calls]}, not {len(meant)}"]
    found = []
    for call, (name, arguments) in zip(calls, meant, strict=True):
        if call.name != name:
            found.append(f"the call names {call.name!r}, not {name!r}")
        elif fault := object_fault(call):
            found.append(fault)
        elif not same(parsed(call), arguments):
            found.append(f"{name}: arguments {short(call.arguments)}, not {short(json.dumps(arguments))}")
    return found


def unlike(whole: Answer, stream: Answer) -> list[str]:
    """How the calls of a stream differ from those of the whole answer; arguments compared as JSON."""
    meant = [(call.name, _value(call)) for call in whole.calls]
    if len(stream.calls) != len(meant):
        return [f"streamed {len(stream.calls)} calls, whole {len(meant)}"]
    pairs = zip(whole.calls, stream.calls, strict=True)
    return [
        f"streamed {call.name} {short(call.arguments)}, whole {one.name} {short(one.arguments)}"
        for one, call in pairs
        if one.name != call.name or not same(_value(one), _value(call))
    ]


def _value(call: Call) -> Any:
    try:
        return parsed(call)
    except ValueError:
        return [call.arguments]


def first_deltas(stream: Recording, choice: int = 0) -> list[dict[str, Any]]:
    """The first delta of each call, by index."""
    firsts: dict[Any, dict[str, Any]] = {}
    for part in call_pieces(stream, choice):
        firsts.setdefault(part.get("index"), part)
    return list(firsts.values())


def later_deltas(stream: Recording, choice: int = 0) -> list[dict[str, Any]]:
    """All deltas of calls but the first of each."""
    firsts = [id(part) for part in first_deltas(stream, choice)]
    return [part for part in call_pieces(stream, choice) if id(part) not in firsts]


def index_faults(stream: Recording, choice: int = 0) -> list[str]:
    """Indices of a stream's calls that are not 0, 1, 2 … in the order of the calls' ids."""
    found = []
    seen: list[Any] = []
    owners: dict[Any, Any] = {}
    for part in call_pieces(stream, choice):
        index = part.get("index")
        if type(index) is not int:
            found.append(f"index {index!r}")
            continue
        if index not in seen:
            if index != len(seen):
                found.append(f"index {index} after {seen}")
            seen.append(index)
        if part.get("id") and owners.setdefault(index, part["id"]) != part["id"]:
            found.append(f"index {index} is given to {owners[index]!r} and to {part['id']!r}")
    return list(dict.fromkeys(found))
