"""Reference pages whose source is the package: checks, options, commands, keys, statuses, rules, defects."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.cli.entry import every_command
from pytest_vllm.decide.verdict import EXIT_CODES, EXIT_NO_BOOT
from pytest_vllm.face import catalogue, fixtures
from pytest_vllm.face.options import add_options
from pytest_vllm.preflight import render
from pytest_vllm.profile.schema import schema
from pytest_vllm.sim.defects.registry import all_defects
from tools.site.links import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Options:
    """Stands where pytest's parser stands, and keeps what is registered."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.rows: dict[str, dict[str, Any]] = {}

    def getgroup(self, *_: object) -> Options:
        """The group is this too."""
        return self

    def addoption(self, name: str, **how: Any) -> None:
        """An option of the command line."""
        self.rows[name] = how

    def addini(self, name: str, *_: object, **__: Any) -> None:
        """Its twin in an ini file; KeyError when the option is not there."""
        self.rows["--" + name.replace("_", "-")]["ini"] = name


def checks() -> Iterator[tuple[str, str]]:
    """(name, page) of the catalogue: one page per area, and one that lists the areas."""
    found = catalogue.entries()
    areas = {area: list(rows) for area, rows in groupby(found, key=lambda entry: entry.area)}
    for area, rows in areas.items():
        table = catalogue.markdown(rows).split(f"\n## {area}\n")[1]
        yield f"checks/{area}", f"# Checks: {area}\n\n{len(rows)} checks.\n{table}"
    lines = [f"- [{area}](checks/{area}.md): {len(rows)} checks" for area, rows in areas.items()]
    names = "\n".join(f"checks/{area}" for area in areas)
    yield (
        "checks",
        "# The bundled checks\n\n"
        f"{len(found)} checks in {len(areas)} areas. "
        "A MUST breaks the gate, a SHOULD advises, an INFO records. "
        "A check that needs what the server lacks is not run.\n\n"
        + "\n".join(lines)
        + f"\n\n```{{toctree}}\n:hidden:\n\n{names}\n```\n",
    )


def options() -> str:
    """Every option of the plugin."""
    found = Options()
    add_options(found)  # type: ignore[arg-type]
    rows = []
    for name, how in found.rows.items():
        value = how.get("metavar") or "|".join(how.get("choices") or ())
        shown = f"{name}={value}" if value and "store_true" not in str(how["action"]) else name
        rows.append((_code(shown), _code(how["ini"]), _words(how["help"])))
    return _page(
        "Options of pytest",
        "Each option has a twin in `pytest.ini` or `[tool.pytest.ini_options]`. The command line wins.",
        ("option", "ini key", "what it does"),
        rows,
    )


def commands() -> str:
    """Every command of the companion."""
    parts = ["# The command pytest-vllm", "", "The gate itself is pytest: `pytest --vllm-profile=NAME`."]
    for name, one in every_command().items():
        parts += ["", f"## {name}", "", _words(one.text), ""]
        rows = [
            (_code(" ".join([*p.names, p.how.get("metavar", "")]).strip()), _words(p.how.get("help", "")))
            if not p.positional
            else (_code(p.how["metavar"]), _words(p.how.get("help", "")))
            for p in one.parameters
        ]
        parts += _table(("argument", "what it is"), rows) if rows else []
    return "\n".join(parts) + "\n"


def keys() -> str:
    """Every key of a profile. The hundreds of flags of vLLM are named, with their versions, in the schema."""
    found = schema()
    parts = [
        "# Keys of a profile",
        "",
        "`pytest-vllm schema` prints the same as a JSON Schema, with every flag that `[server.args]` takes.",
    ]
    for name, body in [("top", found), *sorted(found["$defs"].items())]:
        title, text = _titled(name, body.get("description", ""))
        parts += ["", f"## {title}", "", _words(text), ""]
        required = body.get("required", ())
        rows = [
            (
                _code(key) + (" (required)" if key in required else ""),
                _kind(one),
                _code(str(one["default"])) if one.get("default") not in (None, "") else "",
                _words(one.get("description", "")),
            )
            for key, one in body["properties"].items()
            if not key.startswith("$")
        ]
        parts += _table(("key", "type", "default", "what it is"), rows)
    return "\n".join(parts) + "\n"


def exit_statuses() -> str:
    """Every exit status of a run; what each means stands in the README."""
    meanings = dict(
        re.findall(r"^\| (\d+) \| (.+) \|$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    )
    known = {int(one) for one in (*EXIT_CODES.values(), EXIT_NO_BOOT)}
    known |= {
        int(one) for one in pytest.ExitCode if one.name in ("INTERRUPTED", "INTERNAL_ERROR", "USAGE_ERROR")
    }
    answers = {code: ", ".join(a for a, c in EXIT_CODES.items() if c == code) for code in known}
    return _page(
        "Exit statuses",
        "The exit status of `pytest` is the answer. "
        "`pytest-vllm` exits with 1 when a command found something, and with 4 when it was used wrongly.",
        ("status", "answers", "meaning"),
        [(str(code), answers[code], _words(meanings[str(code)])) for code in sorted(known)],
    )


def rules() -> str:
    """Every preflight rule."""
    text = "[What preflight judges](../preflight.md), and what it does not."
    return f"# Preflight rules\n\n{text}\n\n{render.catalogue()}\n"


def defects() -> str:
    """Every fault that the simulator can be given."""
    found = all_defects().values()
    rows = [
        (_code(one.name), _words(one.summary), _words(", ".join(map(_code, one.catches)))) for one in found
    ]
    return _page(
        "Defects of the simulator",
        f"{len(rows)} faults, each by `--vllm-defect=NAME`. "
        "[What catches each of them](../defect-matrix.md) is measured.",
        ("name", "what is broken", "caught by, at least"),
        rows,
    )


def own_fixtures() -> str:
    """Every fixture for own tests, in the words of its docstring."""
    named = {name: one for name, one in vars(fixtures).items() if re.fullmatch(r"vllm_[a-z_]+", name)}
    rows = [
        (_code(name), _words((one.__doc__ or "").split("\n\n")[0])) for name, one in sorted(named.items())
    ]
    return _page(
        "Fixtures",
        "[How they are used](../own-tests.md). Their types are in the [API](api.rst).",
        ("fixture", "what it is"),
        rows,
    )


def _titled(name: str, description: str) -> tuple[str, str]:
    """A table's heading, and the rest of its description: ``[boot]`: how long …`."""
    found = re.match(r"`(\[+[^]]+\]+)`: *(.*)", description, re.DOTALL)
    if found:
        return found[1], found[2][:1].upper() + found[2][1:]
    return ("Top of the file" if name == "top" else name), description


def _kind(one: dict[str, Any]) -> str:
    """What a key's value is, in words."""
    if "$ref" in one:
        return _code(one["$ref"].rpartition("/")[2])
    if "enum" in one:
        return ", ".join(map(_code, one["enum"]))
    if one.get("type") == "array":
        return f"list of {_kind(one.get('items', {}))}"
    if "anyOf" in one:
        return " or ".join(_kind(part) for part in one["anyOf"])
    kind = one.get("type", "any")
    words = " or ".join([kind] if isinstance(kind, str) else kind)
    return words + (f", such as {', '.join(map(_code, one['examples']))}" if "examples" in one else "")


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def _words(text: str) -> str:
    """Text in a cell of a table: on one line, and no bar that ends the cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _page(title: str, text: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return "\n".join([f"# {title}", "", text, "", *_table(head, rows)]) + "\n"
