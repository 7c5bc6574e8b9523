"""Known faults of vLLM that a log shows, by the version that the log itself names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.facts import log_lines
from pytest_vllm.facts.faults import Fault, faults_of_line

if TYPE_CHECKING:
    from collections.abc import Sequence


def version_in(lines: Sequence[str]) -> str:
    """The version that a log names first; empty when it names none."""
    known = log_lines()
    patterns = [re.compile(known[name].regex) for name in ("server_version", "engine_init") if name in known]
    for line in lines:
        for pattern in patterns:
            if found := pattern.search(line):
                told = found.groupdict()
                return told.get("version") or told.get("version2") or ""
    return ""


def known_in(lines: Sequence[str]) -> tuple[Fault, ...]:
    """The faults that its lines show, each once; none where the log names no version."""
    version = version_in(lines)
    found = (one for line in lines for one in faults_of_line(line, version)) if version else ()
    return tuple(dict.fromkeys(found))
