"""How this suite reads the body of a refusal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .exchanges import BAD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm import Recording, Recordings

#: Recordings whose refusal comes from the OpenAI API and not from the web framework or another API.
OPENAI_SHAPED = {f"errors.bad[{row['id']}]": row for row in BAD if row.get("shape") != "any"}


def refusals(recordings: Recordings) -> list[Recording]:
    """The bad requests that the OpenAI API refused."""
    return [r for r in recordings.of("errors.bad[") if (r.status or 0) >= 400 and r.key in OPENAI_SHAPED]


def value_of(recording: Recording) -> Any:
    """The body, or the first event of a stream, as a JSON value; None when it is none."""
    events = recording.events if recording.status == 200 else []
    try:
        return json.loads(events[0].data if events else recording.body)
    except ValueError:
        return None


def error_of(recording: Recording) -> Mapping[str, Any]:
    """The error object, nested or flat; empty when there is none."""
    value = value_of(recording)
    inner = value.get("error", value) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}
