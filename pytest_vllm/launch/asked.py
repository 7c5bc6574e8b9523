"""What of a server that had started is no fault of its own: a stop that was asked for, refused requests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.launch.areas import is_a_persons
from pytest_vllm.launch.logtext import owner
from pytest_vllm.launch.tracebacks import raised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.launch.tracebacks import Raised

#: An engine that is told to stop says so; what the front end raises behind it is that it stopped.
_TOLD = re.compile(r"\[shutdown\] .*\btrigger received signal=SIG(?:TERM|INT)")
#: An error of vLLM's that no process signs, as its older versions write them.
_UNNAMED = re.compile(r"ERROR \d\d-\d\d \d\d:\d\d:\d\d")
#: Processes that all sign where one does: one of them alone may be of another start.
_SIGNERS = ("APIServer", "EngineCore")
_TRACEBACK = "Traceback (most recent call last)"
_ASGI = "Exception in ASGI application"
#: Errors that are an answer to whoever asked: the web framework sends them as 4xx.
_ANSWER = re.compile(
    r"(?:^|\.)(?:VLLMValidationError|VLLMNotFoundError|HTTPException|RequestValidationError)$"
)


def without_answers(texts: Sequence[str], whole: Sequence[str]) -> Sequence[str]:
    """The lines of a server that had started, without what was asked of it and what others raised beside it.

    Args:
        texts: the log, as `logtext.spread` gives it; what stands before the start's end is empty.
        whole: the same with what stands before.
    """
    owners = {owner(text) for text in whole}
    both = all(any(one.startswith(name) for one in owners) for name in _SIGNERS)
    signs = both and not any(map(_UNNAMED.match, whole))
    told = next((n for n, text in enumerate(texts) if _TOLD.search(text)), len(texts))
    errors = [one for one in raised(texts) if one.number <= told]
    gone = {number for one in errors if not one.wrapper for number in _refused(one, texts)}
    others = [one for one in errors if signs and not one.wrapper and _is_others(one)]
    gone |= {number for one in others for number in _back_to(_TRACEBACK, one, texts)}
    return ["" if n > told or n in gone else text for n, text in enumerate(texts, 1)]


def _refused(one: Raised, texts: Sequence[str]) -> Sequence[int]:
    """The lines of a request that was refused, from where the web server tells of it to the error's own."""
    if not _ANSWER.search(one.error):
        return ()
    return _back_to(_ASGI, one, texts)


def _back_to(mark: str, one: Raised, texts: Sequence[str]) -> Sequence[int]:
    """The lines of an error's process from the last one that holds `mark` to the error's own."""
    own = [n for n in range(one.number, 0, -1) if owner(texts[n - 1]) == one.process]
    last = next((at for at, n in enumerate(own) if mark in texts[n - 1]), 0)
    return own[: last + 1] or [one.number]


def _is_others(one: Raised) -> bool:
    """Whether another program raised it, where the server names the process of each of its errors."""
    return bool(one.frames) and is_a_persons(one)
