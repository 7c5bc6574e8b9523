"""The table of vLLM's parts, `areas.toml`: where an error was raised of which nothing else is known."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.launch.causes import Cause
from pytest_vllm.launch.phases import STARTED, STARTING
from pytest_vllm.launch.raiser import PLUGIN, PYTHON, VLLM, generated, library, passes, raiser
from pytest_vllm.launch.refusing import REFUSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_vllm.launch.tracebacks import Raised

#: The row that stands for every library beside vLLM.
LIBRARY = "fault-in-library"
_NEVER = re.compile(r"(?!)")
_TAIL = re.compile(r".*/(?:site|dist)-packages/|.*?/(?=vllm/)|.*/(?=[^/]+/[^/]+$)")
_ENGINE = re.compile(r"Engine|Worker|Ray", re.IGNORECASE)
_WORKER = re.compile(r"Worker|Ray", re.IGNORECASE)
#: A worker calls helpers of the settings; it does not check them.
SETTINGS = "fault-in-settings"
FRONT, COMPILATION, PARSER = "fault-in-front-end", "fault-in-compilation", "fault-in-parser"
#: Errors that say what the surroundings did, wherever they were raised.
_OUTSIDE = re.compile(
    r"Interrupt|Exit|Timeout|Connect(?:ion)?|BrokenPipe|OSError|SSLError|ZMQError|(?:File\w+|Directory|Permission)Error"
)
#: What only holds others, which stand below it.
_GROUP = re.compile(r"ExceptionGroup$")

_OF_VLLM = re.compile(r"(?:-packages/|^/?)vllm/")
_REQUEST = re.compile(
    r"/vllm/(?:entrypoints|renderers|tool_parsers|parser|reasoning)/|/vllm/multimodal/.*:_?(?:load|fetch)_"
)
#: Where the web framework hands a request to whoever answers it, or its fields are checked.
_ROUTED = re.compile(
    r"-packages/(?:fastapi|starlette)/routing\.py:(?!lifespan)|/vllm/entrypoints/[\w/]*protocol\.py:(?!<)"
)
#: The engine's own parts: in old versions they run in the front end's process.
_INSIDE = re.compile(r"/vllm/(?:v1/)?(?:worker|model_executor|executor|core|attention|engine/llm_engine)\b")

_REFUSAL = re.compile(r"^(?:ValueError|NotImplementedError)$")
#: An assertion also guards what may never happen: of those, what does not exist here.
_ASSERTED = re.compile(
    r"\A[^\n]*\b(?:only supports?|(?:not|un)(?: yet| currently)? ?supported|(?:does|do) not (?:yet )?support"
    r"|(?:is|are) not available)"
)

#: Programs that ask a server, or build a package: what they raise is not of a server.
_CLIENT = re.compile(
    r"-packages/(?:openai|anthropic|litellm|langchain\w*|llama_index|ollama|aiohttp/client\w*|locust"
    r"|setuptools\w*|pip|pyproject_hooks)\b|/pip-install-|/setup\.py:"
)

#: Engines of others: their parts have the names that vLLM's have.
_ELSEWHERE = re.compile(r"/(?:sglang|tensorrt_llm|lmdeploy|text_generation_server|llama_cpp|aphrodite)/")

#: Raised by Python's own library when the machine, a file or a user is not as expected.
_LIBRARY = re.compile(
    r"/python3\.\d+/(?:os|getpass|socket|subprocess|ssl|shutil|pathlib\w*|tempfile|ctypes|urllib|http|zipfile"
    r"|importlib|json|multiprocessing|pwd|signal)\b(?!.*(?:site|dist)-packages)"
)


@dataclass(frozen=True)
class Area:
    """A part of vLLM.

    Args:
        cause: its id and next steps; `means` is a sentence that holds for every error there.
        frame: searched in one `file:function`.
        part: its name in a sentence.
    """

    cause: Cause
    frame: re.Pattern[str]
    part: str


@cache
def areas() -> tuple[Area, ...]:
    """The table, in order: of two that fit the same frame the earlier one counts."""
    table = tomllib.loads(Path(__file__).with_name("areas.toml").read_text("utf-8"))
    return tuple(_area(row) for row in table["area"])


def fault_in(errors: Iterable[Raised], phase: str) -> tuple[Raised, Cause] | None:
    """The error that began it, with the part of vLLM that raised it; None when its frames do not say.

    Args:
        errors: what a log names, in its order. An engine's own error counts before a front end's, which may
            be about a single request.
        phase: how far the start came.
    """
    own = [one for one in errors if not (one.wrapper or _GROUP.search(one.error))]
    first = next((one for one in own if _ENGINE.search(one.process)), own[0] if own else None)
    alike = (one for one in own if first and (one.error, one.text) == (first.error, first.text))
    return next((found for one in alike if (found := _fault_of(one, phase))), None)


def _fault_of(one: Raised, phase: str) -> tuple[Raised, Cause] | None:
    if _OUTSIDE.search(one.error) or _LIBRARY.search("".join(one.frames[-1:])):
        return None
    if phase != STARTED and is_refusal(one):
        return None
    if any(_CLIENT.search(frame) for frame in one.frames[-3:]) or _is_elsewhere(one):
        return None
    if is_request(one, phase) or is_a_persons(one):
        return None
    return _named(one, phase)


def is_refusal(one: Raised) -> bool:
    """Whether an error is a sentence that says what vLLM, or a program around it, does not do."""
    asserted = one.error == "AssertionError" and _ASSERTED.search(one.text)
    ours = one.statement.startswith("raise ") and raiser(one.frames) in {VLLM, PLUGIN}
    raises = ours or _REFUSAL.search(one.error)
    refused = raises and REFUSES.search(one.text)
    around = bool(refused) and not any(_OF_VLLM.search(frame) for frame in one.frames)
    return bool(asserted or refused) and (around or raiser(one.frames) in {VLLM, PLUGIN, PYTHON, ""})


def is_request(one: Raised, phase: str) -> bool:
    """Whether a server that had started refused a request, or failed at one: it goes on."""
    if any(_ROUTED.search(frame) for frame in one.frames):
        return not any(_INSIDE.search(frame) for frame in one.frames)
    return phase == STARTED and (one.process.startswith("APIServer") or _of_a_request(one))


def is_a_persons(one: Raised) -> bool:
    """Whether nothing shows that vLLM has to do with an error: neither its process nor a frame of it."""
    ours = (raiser((frame,)) in {VLLM, PLUGIN} or generated(frame) for frame in one.frames)
    return not (one.process or one.signed) and not any(ours)


def _is_elsewhere(one: Raised) -> bool:
    """Whether another engine raised it."""
    return any(_ELSEWHERE.search(frame) for frame in one.frames) and not any(map(_OF_VLLM.search, one.frames))


def _of_a_request(one: Raised) -> bool:
    """Whether only the front end's code had to do with an error, whatever library it called."""
    own = [frame for frame in one.frames if _OF_VLLM.search(frame)]
    return bool(own) and all(_REQUEST.search(frame) for frame in own)


def _named(one: Raised, phase: str) -> tuple[Raised, Cause] | None:
    """The part whose code raised it, or the library that did with the part that called it."""
    outer: tuple[str, str] | None = None
    first = True
    if one.frames and not _located(one.frames):
        return None
    for frame in reversed(one.frames):
        if passes(frame):
            continue
        area = next((area for area in areas() if area.frame.search(frame)), None)
        if area is not None and area.cause.id == FRONT and phase == STARTED:
            return None  # as above, of versions that do not name the process
        if area is not None and not (area.cause.id == SETTINGS and _WORKER.match(one.process)):
            # what a parser is given is the model's: a library that refuses to read it is not at fault
            return one, _cause(area, one, frame, phase, None if area.cause.id == PARSER else outer)
        if first and (name := library(frame)):
            outer = name, frame
        first = False
    written = next((frame for frame in reversed(one.frames) if generated(frame)), None)
    if outer is None and written is not None:
        area = next(area for area in areas() if area.cause.id == COMPILATION)
        return one, _cause(area, one, written, phase, None)
    # a log whose front was cut may show the library's frames alone
    return (one, _of_library(one, phase, outer)) if outer and "/" not in outer[0] else None


def _located(frames: Sequence[str]) -> bool:
    """Whether it shows whose code raised: a path that was cut short belongs to nobody."""
    inner = next((frame for frame in reversed(frames) if not passes(frame)), "/")
    return "/" in inner.partition(":")[0] or any(area.frame.search(inner) for area in areas())


def _cause(area: Area, one: Raised, frame: str, phase: str, outer: tuple[str, str] | None) -> Cause:
    if outer is None:
        held = f" ({one.asserted} does not hold)" if one.asserted else ""
        means = f"{area.part} failed: {_short(one.error)}{held} in {_TAIL.sub('', frame)}{_while(phase)}"
        return replace(area.cause, means=f"{means}. The log names no reason that is known")
    return _of_library(one, phase, outer, area)


def _of_library(one: Raised, phase: str, outer: tuple[str, str], caller: Area | None = None) -> Cause:
    name, at = outer
    whose = f"the library {name}" if "/" not in name else "code that is not vLLM's"
    called = f", called by {caller.part}" if caller else ""
    means = f"{whose} failed{called}: {_short(one.error)} in {_TAIL.sub('', at)}{_while(phase)}"
    cause = next(row.cause for row in areas() if row.cause.id == LIBRARY)
    what = name if "/" not in name else f"what lies in {name.rpartition('/')[0] or '/'}"
    steps = caller.cause.tries[:1] if caller else ()
    tries = (*(step.replace("{library}", what) for step in cause.tries), *steps)
    return replace(cause, means=f"{means}. The log names no reason that is known", tries=tries)


def _short(error: str) -> str:
    return error.rpartition(".")[2]


def _while(phase: str) -> str:
    if phase == STARTING:
        return ""
    return ", after the server had started" if phase == STARTED else f", while {phase}"


def _area(row: dict[str, str]) -> Area:
    cause = Cause(
        id=row["id"],
        pattern=_NEVER,
        means=f"{row['part']} failed for a reason that is not known; the error's class and file are named",
        tries=tuple(row["try"]),
        symptom=True,
        example="",
        source=row["source"],
    )
    return Area(cause, re.compile(row["frame"]), row["part"])
