"""All that the sources of one version say, by topic; and what differs between two versions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tools.new_version import served, tables
from tools.new_version.code import Code
from tools.new_version.flags import flags

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.new_version.sources import Sources

Entries = dict[str, dict[str, Any]]
Reading = dict[str, Entries]

#: Who reads a topic. The names are those of the fact files, or of preflight's tables.
READERS: dict[str, Callable[[Code], Entries]] = {
    "flags": flags,
    "parsers": tables.parsers,
    "metrics": served.metrics,
    "cache-config": served.cache_config,
    "routes": served.routes,
    "fields": served.messages,
    "architectures": tables.architectures,
    "environment": tables.environment,
    "choices": tables.choices,
}
#: Topics whose entries are texts of vLLM: found again or not.
WORDED = ("logs", "startup-errors")
#: A topic of which less than this share is left was not read: vLLM keeps it elsewhere now.
LEAST_LEFT = 0.6


@dataclass
class Change:
    """What a topic has otherwise than in the version before.

    Args:
        added: entries that are new, with their attributes.
        removed: names that are gone.
        changed: attributes that are otherwise, by entry; a gone one is None.
    """

    added: Entries = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    changed: Entries = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.added or self.removed or self.changed)


def read(sources: Sources, worded: dict[str, Entries]) -> Reading:
    """Every topic of a version.

    Args:
        sources: the unpacked version.
        worded: known log lines and start-up failures, looked for among the texts of the version.
    """
    code = Code(sources.root)
    found = {topic: reader(code) for topic, reader in READERS.items()}
    text = tables.said(code)
    for topic in WORDED:
        found[topic] = {name: {} for name, entry in worded[topic].items() if _said(entry, text)}
    return found


def differences(before: Reading, after: Reading) -> tuple[dict[str, Change], dict[str, tuple[int, int]]]:
    """What changed by topic; and topics that were not read, with the entries found before and after.

    Both versions are read by the same code, so that what it cannot read is left out of both.
    """
    changes, unread = {}, {}
    for topic, entries in after.items():
        earlier = before[topic]
        if topic not in WORDED and (not earlier or len(entries) < LEAST_LEFT * len(earlier)):
            unread[topic] = (len(earlier), len(entries))
            continue
        changes[topic] = Change(
            {name: entry for name, entry in entries.items() if name not in earlier},
            [name for name in earlier if name not in entries],
            {
                name: other
                for name, entry in entries.items()
                if name in earlier and (other := _otherwise(earlier[name], entry))
            },
        )
    return changes, unread


def _otherwise(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    keys = [*after, *(key for key in before if key not in after)]
    return {key: after.get(key) for key in keys if before.get(key) != after.get(key)}


def _said(entry: dict[str, Any], text: str) -> bool:
    """Whether a version has a text of an entry: a fragment of its message, the longest run of its regex."""
    if "match" in entry:
        return any(fragment in text for fragment in entry["match"])
    return "regex" not in entry or longest(entry["regex"]) in text


def longest(regex: str) -> str:
    """The longest text that every match of a regex holds, as far as a plain reading shows it."""
    bare = re.sub(r"\(\?P?<?\w*>?[^()]*\)\??|\[[^\]]*\][*+?]?|\\[wdsbSWD][*+?]?|\.[*+?]|\w\?", "\0", regex)
    runs = re.split(r"[\0()|^$*+?]", bare)
    return max((run.replace("\\", "") for run in runs), key=len)
