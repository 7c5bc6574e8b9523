"""Takes secrets out of whatever a report is about to write.

Redaction comes before cutting: half a secret is not recognised any more, and is still a secret.
What a secret looks like is known in `wire.redact` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_vllm.wire.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_vllm.report.record import ServerRun

T = TypeVar("T")


def redactor_for(runs: Iterable[ServerRun]) -> Redactor:
    """The redactor of a report that was given none: it knows the servers' keys and how credentials look."""
    return Redactor().knowing(*(run.server.api_key for run in runs))


def scrub(value: T, redactor: Redactor) -> T:
    """A copy of any value with every string in it redacted: keys, items, dataclass fields and paths.

    Bytes are left alone (whoever shows them decodes and redacts them), enumerations too.
    """
    scrubbed: T = _scrub(value, redactor)
    return scrubbed


def _scrub(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str | Path) and not isinstance(value, Enum):
        return type(value)(redactor.text(str(value)))
    if isinstance(value, Mapping):
        return redactor.value(dict(value))
    if isinstance(value, list | tuple):
        return type(value)([_scrub(item, redactor) for item in value])
    if is_dataclass(value) and not isinstance(value, type):
        changes = {field.name: _scrub(getattr(value, field.name), redactor) for field in fields(value)}
        return replace(value, **changes)
    return value
