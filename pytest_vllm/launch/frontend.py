"""What the front end says beside the engine: it waits, answers probes, and refuses single requests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.launch.logtext import owner
from pytest_vllm.launch.tracebacks import raised

if TYPE_CHECKING:
    from collections.abc import Sequence

_FRONT = re.compile(
    r"^(?:\(APIServer[^)]*\) ?)?INFO: +\S+:\d+ - \"GET "
    r"|^\(APIServer[^)]*\) ?(?:INFO|DEBUG) (?!.*generation throughput: (?!0\.0 ))"
)


def without_requests(texts: Sequence[str]) -> Sequence[str]:
    """The lines without the front end's, which tell of single requests, where the engine itself failed."""
    failed = any(one.process and not (one.aside or _is_front_end(one.process)) for one in raised(texts))
    return ["" if _is_front_end(owner(text)) else text for text in texts] if failed else texts


def is_front_end_calm(line: str) -> bool:
    """Whether the front end waits, or answers a probe: it does so beside an engine that hangs."""
    return bool(_FRONT.match(line))


def _is_front_end(process: str) -> bool:
    return process.lower().startswith("apiserver")
