"""vLLM's serve arguments as the impersonated version takes them: others end the start with status 2."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.versions import facts

if TYPE_CHECKING:
    from pytest_vllm.sim.versions import Version

_FACTORS = {"k": 1000, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

#: Flags that take several words although their type is that of one.
_LISTS = ("--lora-modules",)


class UsageError(Exception):
    """Arguments that argparse refuses; the message is its own."""


@dataclass
class Arguments:
    """Parsed serve arguments: values by name with underscores, as far as given or with a default."""

    values: dict[str, Any]
    given: dict[str, Any] = field(default_factory=dict)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an argument; the default when this version does not know it or leaves it unset."""
        value = self.values.get(name)
        return default if value is None else value


def parse(argv: list[str], version: Version) -> Arguments:
    """Read `[MODEL] --flag value …`. Raises UsageError."""
    flags = known_flags(version)
    values = {key_of(name): _default(flag, version) for name, flag in flags.items()}
    found = Arguments(values)
    words = list(argv)
    unknown: list[str] = []
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "-":
            if "model" in found.given:
                unknown.append(word)
            else:
                found.given["model"] = word
            continue
        name, equals, attached = word.partition("=")
        target = resolve(name, flags, version)
        if target is None:
            unknown.append(word)
            while words and not words[0].startswith("-"):
                unknown.append(words.pop(0))
            continue
        flag_name, value, path = target
        if flag_name == "--model":
            found.given["_model_flag"] = True
        if equals:
            words.insert(0, attached)
        given = (
            value
            if value is not None
            else _take(flag_name, flags[flag_name], words, version, attached=bool(equals))
        )
        _store(found, key_of(flag_name), given, path)
    if unknown:
        raise UsageError(f"unrecognized arguments: {' '.join(unknown)}")
    found.values.update(found.given)
    return found


def key_of(name: str) -> str:
    """`--max-model-len` -> `max_model_len`."""
    return name.lstrip("-").replace("-", "_")


def known_flags(version: Version) -> dict[str, Any]:
    """The flags that this version accepts."""
    return {name: flag for name, flag in facts("flags").items() if is_known(flag, version)}


def is_known(flag: dict[str, Any], version: Version) -> bool:
    """Whether a flag exists in this version."""
    return version.within(flag["span"]) or bool(flag["reappears"] and version >= flag["reappears"])


def resolve(name: str, flags: dict[str, Any], version: Version) -> tuple[str, Any, list[str]] | None:
    """(flag, fixed value or None, path inside a JSON flag) for a word of the command line."""
    path: list[str] = []
    if name.startswith("--"):
        name, *path = name.split(".")
        name = "--" + name[2:].replace("_", "-")
    for flag_name, flag in flags.items():
        if name == flag_name or name in flag["aliases"]:
            return flag_name, True if kind_of(flag, version) == "bool" else None, path
    positive = "--" + name[5:] if name.startswith("--no-") else ""
    if positive in flags and flags[positive]["negatable"] and version >= flags[positive]["negatable"]:
        return positive, False, []
    if version >= "0.33.0":
        for yes, no in (("--enable-", "--disable-"), ("--disable-", "--enable-")):
            inverse = no + name[len(yes) :]
            if name.startswith(yes) and inverse in flags and kind_of(flags[inverse], version) == "bool":
                return inverse, False, []
    prefixed = [flag_name for flag_name in flags if name.startswith("--") and flag_name.startswith(name)]
    if len(prefixed) == 1:
        return prefixed[0], True if kind_of(flags[prefixed[0]], version) == "bool" else None, path
    if len(prefixed) > 1:
        raise UsageError(f"ambiguous option: {name} could match {', '.join(prefixed)}")
    return None


def kind_of(flag: dict[str, Any], version: Version) -> str:
    """The type of a flag in this version: bool, int, float, str, choice, list, append, json and the like."""
    kind: str = version.pick(flag["type"])
    return kind.split("(", maxsplit=1)[0]


def _default(flag: dict[str, Any], version: Version) -> Any:
    value = version.pick(flag["default"])
    return None if isinstance(value, str) and value.startswith("@") else value


def _take(name: str, flag: dict[str, Any], words: list[str], version: Version, *, attached: bool) -> Any:
    kind = kind_of(flag, version)
    label = "/".join([name, *flag["aliases"]])
    if kind in ("list", "kv-list") or name in _LISTS:
        taken = [words.pop(0)] if attached and words else []
        while not attached and words and not words[0].startswith("-"):
            taken.append(words.pop(0))
        return taken
    if not words or (words[0].startswith("--") and not attached):
        if kind == "str-or-bare":
            return ""
        raise UsageError(f"argument {label}: expected one argument")
    word = words.pop(0)
    choices = version.pick(flag["choices"]) if flag["choices"] else None
    if choices and word not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise UsageError(f"argument {label}: invalid choice: {word!r} (choose from {listed})")
    return _converted(label, kind, word)


def _converted(label: str, kind: str, word: str) -> Any:  # noqa: PLR0911 - one return per kind
    if kind == "int":
        return _integer(label, word)
    if kind == "float":
        try:
            return float(word)
        except ValueError:
            raise UsageError(f"argument {label}: invalid float value: {word!r}") from None
    if kind == "json":
        try:
            return json.loads(word)
        except ValueError:
            if word.startswith(("{", "[")):
                raise UsageError(
                    f"argument {label}: Value {word} cannot be converted to <function loads>."
                ) from None
            return word
    if kind == "append":
        return [word]
    if kind == "bool-value":
        return word.lower() == "true"
    return word


def _integer(label: str, word: str) -> int | str:
    if word in ("auto", "-1") and "max-model-len" in label:
        return word
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?)([kKmMgGtT]?)", word)
    if not found or ("." in found[1] and not found[2]):
        raise UsageError(f"argument {label}: invalid int value: {word!r}")
    return int(float(found[1]) * _FACTORS.get(found[2], 1)) if found[2] else int(found[1])


def _store(found: Arguments, key: str, value: Any, path: list[str]) -> None:
    if path:
        inner = found.given.setdefault(key, {})
        for step in path[:-1]:
            inner = inner.setdefault(step.replace("-", "_"), {})
        inner[path[-1].replace("-", "_")] = value
    elif isinstance(value, list) and key == "middleware":
        found.given[key] = [*found.given.get(key, []), *value]
    else:
        found.given[key] = value
