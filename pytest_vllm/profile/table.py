"""The base of every table of a profile, a hardware file and a model file.

The text under a field is its description in the JSON Schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

if TYPE_CHECKING:
    from collections.abc import Sequence


def hyphens(name: str) -> str:
    """A field's name as TOML has it: `max_model_len` -> `max-model-len`."""
    return name.rstrip("_").replace("_", "-")


def faults(found: Sequence[tuple[tuple[str, ...], str]]) -> PydanticCustomError:
    """Several faults inside one table: the path of each from there, and what is wrong with it."""
    return PydanticCustomError("faults", "{text}", {"text": found[0][1], "faults": found})


class Part(BaseModel):
    """Immutable, unknown keys refused, hyphenated names."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=hyphens,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )
