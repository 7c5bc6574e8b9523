"""What the vLLM of this Python has: `python -m tools.facts.snapshot --to DIR`.

Run it with the Python that has vLLM installed; beside that the standard library is enough, so mounting this
package and setting PYTHONPATH will do, also inside a container. It writes `DIR/VERSION.snapshot.json` for
build.py: the flags of the argument parser and the names of the parsers, completely; with the answers of a
running server, paths and metrics that are new.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

Entries = dict[str, dict[str, Any]]

#: Where vLLM has kept these, the newest place first.
ARG_PARSER = ("vllm.entrypoints.launchers.cli_args", "vllm.entrypoints.openai.cli_args")
FLEXIBLE = ("vllm.utils.argparse_utils", "vllm.utils")
TOOL_PARSERS = ("vllm.tool_parsers", "vllm.entrypoints.openai.tool_parsers")
REASONING_PARSERS = ("vllm.reasoning",)

_KINDS = {
    "int": "int",
    "human_readable_int": "int",
    "human_readable_int_or_auto": "int",
    "float": "float",
    "loads": "json",
    "parse_dataclass": "json",
    "union_dict_and_str": "json",
}
_METRIC = re.compile(r"^# TYPE (\S+) (\S+)$", re.MULTILINE)


def flags(parser: argparse.ArgumentParser) -> Entries:
    """Every long flag of the parser: type, default, choices, aliases."""
    found = {}
    for action in parser._actions:  # noqa: SLF001 - argparse shows them nowhere else
        names = [name for name in action.option_strings if name.startswith("--")]
        positive = [name for name in names if not name.startswith("--no-")] or names
        if not positive or positive[0] == "--help":
            continue
        entry: dict[str, Any] = {"type": kind_of(action)}
        if action.default is None or isinstance(action.default, bool | int | float | str | list | dict):
            entry["default"] = action.default
        if action.choices is not None:
            entry["choices"] = sorted(str(choice) for choice in action.choices if choice is not None)
        found[positive[0].lstrip("-").replace("_", "-")] = entry
    return found


def kind_of(action: argparse.Action) -> str:
    """The type of a flag in the words of flags.json."""
    if action.nargs == 0:
        return "bool"
    if action.nargs in ("+", "*"):
        return "list"
    if action.choices is not None:
        return "choice"
    if type(action).__name__ == "_AppendAction":
        return "append"
    return next((_KINDS[name] for name in _type_names(action.type) if name in _KINDS), "str")


def _type_names(converter: Any) -> list[str]:
    """A converter's name, and those of what it wraps: vLLM wraps every optional type."""
    wrapped = [cell.cell_contents for cell in getattr(converter, "__closure__", None) or ()]
    names = [getattr(one, "__name__", "") for one in (converter, *wrapped) if callable(one)]
    return names + [name for one in wrapped if callable(one) for name in _type_names(one)]


def parsers() -> Entries:
    """Tool and reasoning parsers by `kind/name`."""
    tools = _first(TOOL_PARSERS, "ToolParserManager")
    reasoning = _first(REASONING_PARSERS, "ReasoningParserManager")
    return {
        f"{kind}/{name}": {}
        for kind, registry in (("tool", tools), ("reasoning", reasoning))
        for name in registry.list_registered()
    }


def routes(openapi: dict[str, Any]) -> Entries:
    """Paths and methods of an `/openapi.json`."""
    return {
        path: {"methods": sorted(method.upper() for method in methods)}
        for path, methods in openapi["paths"].items()
    }


def metrics(text: str) -> Entries:
    """Names and types of the vllm families of a `/metrics` answer, counters with `_total`."""
    found = {}
    for name, kind in _METRIC.findall(text):
        if name.startswith("vllm:") and not name.endswith("_created"):
            total = kind == "counter" and not name.endswith("_total")
            found[f"{name}_total" if total else name] = {"type": kind}
    return found


def snapshot(*, date: str, openapi: Path | None = None, scrape: Path | None = None) -> dict[str, Any]:
    """Everything that this vLLM, and files of its running server, tell. Raises ImportError without vLLM."""
    make = _first(ARG_PARSER, "make_arg_parser")
    parser = make(_first(FLEXIBLE, "FlexibleArgumentParser")())
    topics: dict[str, Any] = {
        "flags": {"complete": True, "entries": flags(parser)},
        "parsers": {"complete": True, "entries": parsers()},
    }
    if openapi is not None:
        served = routes(json.loads(openapi.read_text("utf-8")))
        topics["routes"] = {"complete": False, "entries": served}
    if scrape is not None:
        topics["metrics"] = {"complete": False, "entries": metrics(scrape.read_text("utf-8"))}
    version = importlib.import_module("vllm").__version__.partition("+")[0]
    return {"version": version, "date": date, "topics": topics}


def _first(places: tuple[str, ...], name: str) -> Any:
    """A name from the first of these modules that has it. Raises ImportError."""
    for place in places:
        try:
            return getattr(importlib.import_module(place), name)
        except (ModuleNotFoundError, AttributeError):
            continue
    raise ImportError(f"{name} is in none of {', '.join(places)}: tell snapshot.py where this vLLM keeps it")


def main(argv: list[str] | None = None) -> int:
    """The command line; exit status 0, or 4 with one line on what is missing."""
    options_of = argparse.ArgumentParser(prog="python -m tools.facts.snapshot", description=__doc__)
    options_of.add_argument("--to", type=Path, required=True, metavar="DIR")
    options_of.add_argument(
        "--date", default=dt.datetime.now(dt.UTC).date().isoformat(), help="of the release"
    )
    options_of.add_argument("--openapi", type=Path, metavar="FILE", help="the server's /openapi.json")
    options_of.add_argument("--metrics", type=Path, metavar="FILE", help="the server's /metrics")
    options = options_of.parse_args(argv)
    try:
        taken = snapshot(date=options.date, openapi=options.openapi, scrape=options.metrics)
    except (ImportError, OSError, ValueError) as fault:
        sys.stderr.write(f"no snapshot: {fault}\n")
        return 4
    options.to.mkdir(parents=True, exist_ok=True)
    file = options.to / f"{taken['version']}.snapshot.json"
    file.write_text(json.dumps(taken, indent=1, ensure_ascii=False) + "\n", "utf-8")
    counts = [f"{len(topic['entries'])} {name}" for name, topic in taken["topics"].items()]
    sys.stdout.write(f"{file}: {', '.join(counts)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
