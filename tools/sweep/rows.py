"""What a sweep finds out: a row for each parser, with what came for each case in each mode."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pytest_vllm.locate import case_file
from pytest_vllm.scripted.grammar import Call, Kind, Script, load, names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

MODES = ("whole", "stream", "split", "chunks", "once")
Outcome = Literal["passed", "failed", "undecided", "unpromised"]


@dataclass(frozen=True)
class Pair:
    """Two parsers that serve one model; the row is of the one of the kind.

    Args:
        kind: of the parser that is put to the test.
        tool: the tool parser; empty for none.
        reasoning: the reasoning parser; empty for none.
    """

    kind: Kind
    tool: str
    reasoning: str

    @property
    def name(self) -> str:
        """The parser that is put to the test."""
        return self.tool if self.kind == "tool" else self.reasoning

    @property
    def beside(self) -> str:
        """The other one."""
        return self.reasoning if self.kind == "tool" else self.tool


@dataclass
class Row:
    """What came of a parser.

    Args:
        pair: the parsers.
        version: of vLLM.
        via: `server` or `alone`: vLLM's parser objects without a server.
        outcomes: check or `MODE[CASE]` -> what came of it.
        evidence: the same -> what was wrong; for what did not pass.
        broken: why there is no answer at all; empty when there are some.
        mark: of what was said: a row with another one is out of date.
        boot_s: seconds from the start of a server until it was healthy.
        cases_s: seconds of all else: saying what is said, judging it, ending the server.
    """

    pair: Pair
    version: str
    via: str
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    evidence: dict[str, str] = field(default_factory=dict)
    broken: str = ""
    mark: str = ""
    boot_s: float = 0.0
    cases_s: float = 0.0

    def count(self, outcome: Outcome) -> int:
        """How many came out so. A parser that never answered is undecided."""
        if self.broken:
            return int(outcome == "undecided")
        return sum(one == outcome for one in self.outcomes.values())

    def plain(self) -> dict[str, Any]:
        """The row as JSON."""
        return {
            "parser": self.pair.name,
            "passed": self.count("passed"),
            "failed": self.count("failed"),
            "undecided": self.count("undecided"),
            "unpromised": self.count("unpromised"),
            **asdict(self),
        }


def row_of(data: Mapping[str, Any]) -> Row:
    """A row from its JSON."""
    kept = ("version", "via", "outcomes", "evidence", "broken", "mark", "boot_s", "cases_s")
    return Row(Pair(**data["pair"]), **{key: data[key] for key in kept if key in data})


def read(folder: Path) -> list[Row]:
    """The rows of a sweep's folder, by kind and name."""
    rows = [row_of(json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("*.json"))]
    return sorted(rows, key=lambda row: (row.pair.kind != "tool", row.pair.name))


def pairs(only: Iterable[str] = (), kinds: Iterable[Kind] = ("tool", "reasoning")) -> list[Pair]:
    """The parsers that can be swept, each beside the one that its models are served with."""
    wanted = set(only)
    found = []
    for kind in kinds:
        for name in names(kind):
            grammar = load(name, kind)
            if grammar.covered and (not wanted or name in wanted):
                both = (name, grammar.beside) if kind == "tool" else (grammar.beside, name)
                found.append(Pair(kind, *both))
    return found


def cases(pair: Pair, only: Collection[str] = ()) -> list[tuple[str, Script, bool]]:
    """What is said: id, script, whether it is too long to be said character by character.

    A parser's row holds what tests it: calls for a tool parser, thoughts and what follows for the other.

    Args:
        pair: the parsers.
        only: ids of the cases that are wanted; all without any.
    """
    found = []
    for row in json.loads(case_file("scripted-answers").read_text("utf-8")):
        if only and row["id"] not in only:
            continue
        calls = tuple(Call(one["name"], one["arguments"]) for one in row["calls"])
        thinking = row.get("thinking", "") if pair.reasoning else None
        script = Script(thinking, row["content"], calls if pair.tool else (), row["after"])
        about = row["id"].startswith(("thought", "text", "answer")) or row.get("rendered")
        if pair.kind == "tool" or (about and (pair.tool or not calls)):
            found.append((row["id"], script, bool(row.get("long"))))
    return found


def tools() -> list[dict[str, Any]]:
    """The tools that scripts call, as chat completions take them."""
    schemas = json.loads(case_file("scripted-tools").read_text("utf-8"))
    return [
        {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}
        for name, schema in schemas.items()
    ]


def unpromised(tool: str, script: Script) -> str:
    """What the script does that models of this tool parser do not do, or its documentation rules out.

    Empty when all of it is promised. Text after a call is promised by few: see `docs/parsers.md`.
    """
    if not tool or not script.calls:
        return ""
    promises = load(tool, "tool").promises
    if len(script.calls) > 1 and promises.get("parallel") is False:
        return "several calls in one answer"
    if script.content and promises.get("before", "kept") != "kept":
        return "text before a call"
    if script.after and promises.get("after", "") != "kept":
        return "text after a call"
    return ""
