"""What changed in a version, in words; and what a person still has to decide."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sized

    from tools.new_version.fold import Topics
    from tools.new_version.reading import Change

#: Topic: what its entries are called, and what it means for somebody that one is gone.
NAMES = {
    "flags": ("flag", "a server that is started with it does not start"),
    "parsers": ("parser", "a server that is started with it does not start"),
    "routes": ("route", "requests to it are answered with 404"),
    "fields": ("field", "clients that read it get nothing, requests that carry it are not understood"),
    "metrics": ("metric", "dashboards and alerts that read it get nothing"),
    "cache-config": ("label of vllm:cache_config_info", "queries by it find nothing"),
    "architectures": ("architecture", "models of it do not load"),
    "environment": ("environment variable", "setting it does nothing"),
    "choices": ("choice", "a configuration that names it is refused"),
    "logs": ("start-up line", "what the gate read from it is not known any more, or is worded otherwise"),
    "startup-errors": ("start-up failure", "it is not raised any more, or is worded otherwise"),
}
#: Names of one kind that a sentence lists.
MOST = 40


def changed(changes: Mapping[str, Change], topics: Topics, before: str) -> Iterator[str]:
    """Sentences: what is gone first, then what is otherwise, then what is new.

    Args:
        changes: by topic.
        topics: the facts with the version in them.
        before: the version that it is compared with.
    """
    for topic, (noun, means) in NAMES.items():
        change = changes.get(topic)
        if change and change.removed:
            yield f"{_count(change.removed, noun)} gone: {_listed(change.removed)}: {means}"
    for topic, (noun, _) in NAMES.items():
        change = changes.get(topic)
        for name, values in sorted(change.changed.items()) if change else ():
            for key, value in values.items():
                was = _before(topics[topic]["entries"].get(name, {}).get(key), before)
                yield f"{noun} {name}: {_otherwise(key, was, value)}"
    for topic, (noun, _) in NAMES.items():
        change = changes.get(topic)
        if change and change.added:
            yield f"{_count(change.added, noun)} new: {_listed(change.added)}"


def _otherwise(key: str, was: Any, value: Any) -> str:
    if isinstance(was, list) and isinstance(value, list):
        more = [one for one in value if one not in was]
        less = [one for one in was if one not in value]
        parts = [f"also takes {', '.join(map(str, more))}"] if more else []
        parts += [f"does not take {', '.join(map(str, less))} any more"] if less else []
        return " and ".join(parts) or "its choices are in another order"
    if key == "default" and value == "@required":
        return "has no default any more: requests without it are refused"
    if key == "default" and was == "@required":
        return f"need not be there any more, it is {json.dumps(value)} by default"
    if key == "type":
        return f"takes {value}, before {was}"
    return f"{key} is {json.dumps(value)}, before {json.dumps(was)}"


def _before(value: Any, version: str) -> Any:
    if not (isinstance(value, dict) and "@" in value):
        return value
    held = [then for since, then in value["@"] if Version(since) <= Version(version)]
    return held[-1] if held else None


def _count(names: Sized, noun: str) -> str:
    number = len(names)
    return f"{number} {noun}{'s' * (number != 1)}"


def _listed(names: Iterable[str]) -> str:
    every = sorted(names)
    rest = len(every) - MOST
    return ", ".join(every[:MOST]) + (f" and {rest} more" if rest > 0 else "")


def undecided(
    changes: Mapping[str, Change],
    unread: Mapping[str, tuple[int, int]],
    doubts: list[str],
    version: str,
    waivers: Mapping[str, str],
) -> Iterator[str]:
    """What the sources do not say, as things to do.

    Args:
        changes: by topic.
        unread: topics that were not read, with the entries found before and now.
        doubts: attributes that perhaps were only read otherwise.
        version: the new one.
        waivers: texts of the files that waive faults or name them, by path.
    """
    for topic, (was, now) in unread.items():
        yield (
            f"{topic}: {now} entries found where the version before has {was}: vLLM keeps them "
            "elsewhere now; teach tools/new_version where, nothing of it was taken in"
        )
    yield from doubts
    yield from _described(changes)
    for path, text in waivers.items():
        ends, reach = _bounds(text, version)
        if ends:
            yield (
                f"{path}: {_count(range(ends), 'range')} that held before end at {version}: "
                "whether it has these faults, only a real server shows"
            )
        if reach:
            yield f"{path}: {_count(range(reach), 'range')} reach into {version}: whether that is right, too"
    yield "advisories that name it (preflight/tables/advisories.json)"
    yield "default batch sizes (batch-defaults.json)"


def _bounds(text: str, version: str) -> tuple[int, int]:
    """Ranges that end with this version, and those that begin before and hold for it."""
    here = Version(version)
    ends = reach = 0
    for bound in re.findall(r'^versions = ".*<([\d.]+)"', text, re.MULTILINE):
        end = Version(bound if "." in bound else f"{bound}.0")
        ends += end == here
        reach += end > here
    return ends, reach


def _described(changes: Mapping[str, Change]) -> Iterator[str]:
    """What is new or gone of which the sources do not say all that is kept."""
    new = {topic: sorted(change.added) for topic, change in changes.items()}
    for name in new.get("routes", ()):
        yield f"route {name}: which flag or variable it needs (routes.json)"
    if metrics := new.get("metrics"):
        yield f"labels of {_count(metrics, 'new metric')} (metrics.json): {_listed(metrics)}"
    if parsers := new.get("parsers"):
        yield (
            f"{_count(parsers, 'new parser')} without a grammar (fixtures/parsers), model family and ids "
            f"(parsers.json): {_listed(parsers)}"
        )
    asked = [name for name in new.get("fields", ()) if name.partition(".")[0].endswith("Request")]
    if asked:
        yield f"{_count(asked, 'new request field')}: sent, or why not (facts/reach.toml): {_listed(asked)}"
    for topic, file in (("logs", "logs.json"), ("startup-errors", "startup-errors.json")):
        if gone := changes[topic].removed if topic in changes else []:
            yield f"how vLLM words it now, or that it is gone ({file}): {_listed(gone)}"
