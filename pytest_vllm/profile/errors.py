"""One clear message per fault of a profile: file, line, the key and value, what would be right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from pytest_vllm.facts import flag_status
from pytest_vllm.profile.secrets import secret_name, secret_text
from pytest_vllm.profile.words import unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]

_NAMED_TABLES = {
    ("server", "args"),
    ("server", "env"),
    ("deployment", "proxy"),
    ("deployment", "service"),
    ("limits", "regression"),
}
_WANTED = {
    "string_type": "write text in quotes",
    "int_type": "write a whole number",
    "int_parsing": "write a whole number",
    "int_from_float": "write a whole number",
    "float_type": "write a number",
    "float_parsing": "write a number",
    "bool_type": "write true or false",
    "bool_parsing": "write true or false",
    "list_type": "write a list, [ … ]",
    "dict_type": "write a table",
    "model_type": "write a table",
    "date_from_datetime_parsing": "write a date, such as 2027-03-31",
    "date_parsing": "write a date, such as 2027-03-31",
    "date_type": "write a date, such as 2027-03-31",
}


class ProfileError(Exception):
    """A profile cannot be used. `str()` is what the person reads: one line per fault.

    Args:
        lines: the messages, each with file and line where there are any.
    """

    def __init__(self, *lines: str) -> None:
        """Keep the lines."""
        super().__init__("\n".join(lines))
        self.lines = lines


@dataclass(frozen=True)
class Fault:
    """What is wrong at a key of a profile."""

    path: Path
    text: str


def faults_of(errors: Iterable[ErrorDetails], model: type[BaseModel], top: Sequence[str] = ()) -> list[Fault]:
    """Pydantic's findings in our words.

    Args:
        errors: as `ValidationError.errors()` gives them.
        model: the model that was validated.
        top: the keys of the top level, where they are not just the model's.
    """
    return [fault for error in errors for fault in _faults(error, model, top)]


def _faults(error: ErrorDetails, model: type[BaseModel], top: Sequence[str]) -> Iterator[Fault]:
    path, kind, value = error["loc"], error["type"], error["input"]
    if kind == "faults":
        for inner, text in error["ctx"]["faults"]:
            yield Fault((*path, *inner), text)
    elif kind == "extra_forbidden":
        yield Fault(path, _unknown_key(path, model, top))
    elif kind == "missing":
        yield Fault(path[:-1], f"{table(path[:-1], inside=True)} lacks {str(path[-1])!r}")
    elif kind == "literal_error":
        choices = [str(choice) for choice in _choices(model, path)]
        yield Fault(path, unknown(str(path[-1]), str(value), choices, table(path)))
    elif kind in ("choice", "literal"):
        yield Fault(path, f"{place(path)}: {error['msg']}")
    else:
        yield Fault(path, f"{place(path)} is {shown(path, value)}: {_wanted(error)}")


def _wanted(error: ErrorDetails) -> str:
    if error["type"] == "value_error":
        return error["msg"].removeprefix("Value error, ")
    if error["type"] == "model_type" and error["loc"][0] == "limits":
        return "write { min = … } or { max = … }"
    return _WANTED.get(error["type"], error["msg"])


def shown(path: Path, value: Any) -> str:
    """A value as messages quote it; whatever may be a secret is not."""
    named = any(secret_name(str(part)) for part in path)
    text = repr(value)
    if named or secret_text(text):
        return "***"
    return text if len(text) <= 60 else f"{text[:57]}…"


def table(path: Path, *, inside: bool = False) -> str:
    """The table that a key stands in, as TOML writes its header; empty for the top level."""
    names = [part for part in path if isinstance(part, str)]
    if names[:1] == ["waive"]:
        return "[[waive]]"
    if tuple(names[:2]) in _NAMED_TABLES and (inside or len(names) > 2):
        return f"[{'.'.join(names[:2])}]"
    return f"[{names[0]}]" if names and (inside or len(names) > 1) else ""


def place(path: Path) -> str:
    """A key with its table: `[limits] ttft.max`."""
    header = table(path)
    names = [str(part) for part in path if isinstance(part, str)]
    depth = 0 if not header else header.count(".") + 1
    return " ".join(part for part in (header, ".".join(names[depth:])) if part)


def _unknown_key(path: Path, model: type[BaseModel], top: Sequence[str]) -> str:
    key, owner = str(path[-1]), path[:-1]
    where = table(path) or ("the profile" if top else "the file")
    elsewhere = [names for names, keys in _tables(model) if key in keys and names != owner]
    if elsewhere:
        home = f"[{'.'.join(elsewhere[0])}]" if elsewhere[0] else "the top of the file"
        return f"unknown key {key!r} in {where}; it belongs into {home}"
    if owner in ((), ("server",)) and flag_status(key).state != "unknown":
        return f"unknown key {key!r} in {where}; it is a vllm flag, which belongs into [server.args]"
    found = model_at(model, owner)
    known = top if top and not owner else sorted(keys_of(found)) if found else []
    return unknown("key", key, known, where)


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys of a table, as TOML has them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def model_at(model: type[BaseModel], path: Path) -> type[BaseModel] | None:
    """The model of the table at a path, None where there is none."""
    for part in path:
        if isinstance(part, int):
            continue
        found = next((f for name, f in model.model_fields.items() if part in (name, f.alias)), None)
        inner = next(_models(found.annotation), None) if found else None
        if inner is None:
            return None
        model = inner
    return model


def _tables(
    model: type[BaseModel], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    yield path, keys_of(model)
    for name, field in model.model_fields.items():
        for inner in _models(field.annotation):
            yield from _tables(inner, (*path, field.alias or name))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _choices(model: type[BaseModel], path: Path) -> list[object]:
    owner = model_at(model, path[:-1])
    field = (
        next((f for n, f in owner.model_fields.items() if path[-1] in (n, f.alias)), None) if owner else None
    )
    return list(_literals(field.annotation)) if field else []


def _literals(annotation: Any) -> Iterator[object]:
    for argument in get_args(annotation):
        if get_args(argument):
            yield from _literals(argument)
        elif isinstance(argument, str):
            yield argument
