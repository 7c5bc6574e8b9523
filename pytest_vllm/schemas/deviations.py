"""What vLLM is known to do otherwise than OpenAI, by version: data in `vllm-deviations.json`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from pytest_vllm.decide.verdict import Level
from pytest_vllm.locate import data_dir
from pytest_vllm.schemas.paths import at, parent

#: Below this lie the numbers of builds that do not know theirs, such as `0.1.dev1+g3f2c`.
OLDEST = (0, 6, 0)


@dataclass(frozen=True)
class Deviation:
    """One known difference.

    Args:
        schemas: the schemas it concerns.
        path: place pattern, such as `choices[].stop_reason`.
        kind: `extra` (a field that OpenAI does not have), `missing`, or `type` (another type or value).
        grade: the level of what is left to say about it; None when there is nothing to say.
        why: what vLLM does, in words.
        source: where that is known from.
        since: first version that does it; "" for all earlier ones too.
        before: first version that no longer does it; "" while the newest still does.
        allow: JSON Schema of what is allowed there: of the value; for `missing`, of the object around it.
    """

    schemas: tuple[str, ...]
    path: str
    kind: str
    grade: Level | None
    why: str
    source: str
    since: str = ""
    before: str = ""
    allow: Any = None

    def concerns(self, version: str) -> bool:
        """Whether a vLLM of that version does it; an unknown version may do everything."""
        now = release(version)
        if now < OLDEST:
            return True
        return now >= release(self.since or "0") and (not self.before or now < release(self.before))

    def allows(self, value: Any, path: str) -> bool:
        """Whether what stands at a concrete path of `value` is what is known."""
        if self.allow is None or self.kind == "extra":
            return True
        found = parent(value, path) if self.kind == "missing" else at(value, path)
        return Draft202012Validator(self.allow).is_valid(found)


def release(version: str) -> tuple[int, int, int]:
    """`0.11.1rc2+cpu` -> (0, 11, 1); what follows the numbers does not count."""
    numbers = [int(n) for n in re.match(r"v?([\d.]*)", version)[1].split(".") if n]  # type: ignore[index]
    major, minor, patch = (*numbers, 0, 0, 0)[:3]
    return major, minor, patch


def known(schema: str, version: str) -> tuple[Deviation, ...]:
    """The deviations of a schema that a vLLM of that version shows."""
    return tuple(row for row in all_deviations() if schema in row.schemas and row.concerns(version))


@cache
def all_deviations() -> tuple[Deviation, ...]:
    """Every known deviation, in the order of the file."""
    text = (data_dir("fixtures") / "schemas" / "vllm-deviations.json").read_text("utf-8")
    return tuple(_read(row) for row in json.loads(text))


def _read(row: dict[str, Any]) -> Deviation:
    grade = Level(row["grade"]) if row.get("grade") else None
    return Deviation(**{**row, "schemas": tuple(row["schemas"]), "grade": grade})
