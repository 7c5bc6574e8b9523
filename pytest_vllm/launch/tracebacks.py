"""Exceptions in a log, with their frames, although several processes wrote at once."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_vllm.launch.logtext import owner, unprefixed
from pytest_vllm.launch.raiser import located

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FRAME = re.compile(r'^\s*File "([^"]+)", line \d+, in (\S+)')
_ERROR = re.compile(
    r"^((?:[A-Za-z_]\w*\.)*(?:[A-Za-z_]\w*(?:Error|Exception|Failure|Exit|Timeout|Interrupt)|Exception)"
    r"|(?:[a-z_]\w*\.)+[A-Z]\w*[a-z]\w*(?=:))(?::\s*(.*)|\s*|\s+(?:->|→)\s.*)$"
)
#: What says only that something else failed.
WRAPPER = re.compile(
    r"Engine core initialization failed|EngineDeadError|MQEngineDeadError|Executor failed|"
    r"Engine(?:Core| process| loop| background task)? ?(?:failed|encountered|\(pid \d+\) died)|"
    r"WorkerProc (?:failed|initialization failed)|See (?:root cause|stack trace) above|"
    r"Worker failed with error|"
    r"Error raised in subprocess|failed to be inspected|Loading lora \S+ failed\W*$|Error in model execution|"
    r"Call to \w+ method failed|'vllm\.model_executor\.models\.registry'|RuntimeError: cancelled$|"
    r"RayActorError: The actor died because of an error raised|Error: Traceback \(most recent call last\)|"
    r"died during handshake|closed its address pipe|Orchestrator initialization failed|"
    r"ChildFailedError|^(?:\w+\.)*(?:TimeoutError: $|(?:BrokenPipe|EOF|Cancelled)Error\b)|\bSystemExit\b"
)
#: Where an error that another thread or process had is handed over; its own frames would stand behind it.
_HANDED_OVER = re.compile(r"/concurrent/futures/_base\.py:__get_result$")
#: A traceback after these is of a side thread, or of tidying up: the server goes on, but not without the
#: engine's own threads.
_ASIDE = re.compile(r"^Exception (?:in thread (?!.*\(process_)|ignored in\b)")
#: What runs while Python ends, or an object is thrown away.
_TIDYING = re.compile(r"/weakref\.py:_exitfunc$|/atexit\b|:(?:__del__|_python_exit|_exit_function)$")
_FOLLOWING, _SOON = 12, 3
#: What stands below a frame; and a condition that did not hold, which is all that a bare AssertionError says.
_SOURCE, _ASSERTS = re.compile(r" {3,}\w"), re.compile(r"assert (.+?),?\s*\\?$")
#: A statement that says itself what it raises; and so many lines a person leaves below an error.
_RAISES = re.compile(
    r"raise (?P<error>(?:\w+\.)*[A-Z]\w*)\((?P<mark>[\"'])(?P<said>(?:(?!(?P=mark)).)+)(?P=mark)"
)
_FEW = 4
#: Pydantic's first line says nothing; the second is the error of who was asked.
_REFUSED = "validation error"
_QUOTES = re.compile(
    r"Worker failed with error ['\"](?P<said>.+?)['\"]?(?:, please check|\Z)"
    r"|Error in model execution(?: \(input dumped to [^)]*\))?: (?P<execution>.+)"
    r"|the original error: (?P<error>\w+(?:Error|Exception))\(['\"](?P<original>.+)",
    re.DOTALL,
)
#: Parts that an error comes from, not that hand it on.
_DEEP = re.compile(
    r"/vllm/(?:model_executor|models|v1/(?:attention|sample|spec_decode|worker/gpu/spec_decode))/"
)
#: What PyTorch's watchdog says of the error that ended it; nothing raises it.
_WATCHED = re.compile(r"watchdog thread terminated with exception: (?P<said>.+)")
#: A sentence that goes on in the next line, as a terminal or a page breaks it: at the margin, or moved in
#: behind a line that is long enough to have been broken.
_BROKEN_OFF, _LONG = re.compile(r"[\w,(]$"), 50
_GOES_ON, _MOVED_IN = re.compile(r"[a-z]"), re.compile(r"\s+[\w(](?!.*\w*=|alue error)")
#: What Python itself writes names the class, where whoever quotes it does not.
_SHAPES = (
    ("AttributeError", re.compile(r"has no attribute '")),
    ("NameError", re.compile(r"^name '\w+' is not defined")),
    ("ModuleNotFoundError", re.compile(r"^No module named ")),
    ("ImportError", re.compile(r"^cannot import name ")),
    (
        "TypeError",
        re.compile(r"\(\) (?:got an unexpected|missing \d+ required|takes \d+ )|^unsupported operand"),
    ),
    ("IndexError", re.compile(r"index out of range|^index \d+ is out of bounds")),
    ("ValueError", re.compile(r"^[^\n]*\b(?:(?:is|are) not (?:yet |currently )?supported|only supports?)\b")),
)
#: Whose errors hold another's.
_HANDS_ON = re.compile(
    r"Dynamo|Inductor|BackendCompiler|Lowering|CompilationError|RayTaskError|RuntimeError$"
)
_WITHIN = re.compile(r"(?P<error>(?:\w+\.)*[A-Z]\w*(?:Error|Exception)): (?P<said>.*)", re.DOTALL)
#: A line of another's own: what it says is not of the error before it.
_NEXT = re.compile(r"^(?:\[rank\d+\]:\s?)?\[[WEIF]\d{3,4} |^\S+Warning: |^warnings\.warn")
#: What a compiler, a linker or a build says: it writes past the process that started it.
_PROGRAM = re.compile(
    r"(?:nvcc|ptxas|cicc|ninja|gcc|g\+\+|cc1plus|clang\S*|hipcc|ld|collect2|cmake|make)(?: \w+)?\s*:|FAILED: "
    r"|\S+\.(?:cuh?|c|cc|cpp|h|hpp|py)(?:\(\d+\)|:\d+(?::\d+)?): (?:fatal )?error"
)
#: Where an actor was that raised it, before its own words.
_CARRIED = re.compile(r"^\[address=[^\]]*\] ")
#: The error of a worker that whoever asked it quotes without raising it; and one that a person made bold.
_QUOTED = re.compile(r"^(?:Worker failed with error ['\"]|\*\*)(?=[\w.]+(?:Error|Exception): )")
#: A traceback that is logged calmly was handled.
_HANDLED = re.compile(r"^(?:\([^)]*\) ?)*(?:DEBUG|INFO|WARNING)\b")


@dataclass(frozen=True)
class Raised:
    """One exception of a log.

    Args:
        number: the line that names it, counted from 1.
        process: `Worker_TP1 pid=189`, "" where the log does not say.
        error: its class, with module where the log gives it.
        text: its message, with the lines of the same process that follow up to the next traceback.
        frames: `file:function` of its traceback, the raising one last.
        aside: it ended a side thread only, or was raised while something was tidied up.
        statement: the source that raised it, where the traceback shows it: `raise ValueError(`, `assert x`.
        signed: whether its line begins as vLLM's do.
    """

    number: int
    process: str
    error: str
    text: str
    frames: tuple[str, ...]
    aside: bool = False
    statement: str = ""
    signed: bool = False

    @property
    def wrapper(self) -> bool:
        """Whether it only says that something else failed, or stopped nothing."""
        said = self.text.split("\n", 2)
        words = " ".join(said[: 2 if _REFUSED in said[0] else 1])
        over = bool(self.frames and _HANDED_OVER.search(self.frames[-1]))
        return self.aside or over or bool(WRAPPER.search(f"{self.error}: {words}"))

    @property
    def asserted(self) -> str:
        """The condition that did not hold, where an assertion says nothing else."""
        bare = self.error == "AssertionError" and not self.text.partition("\n")[0].strip()
        found = _ASSERTS.match(self.statement) if bare else None
        return found[1] if found else ""

    @property
    def hollow(self) -> bool:
        """Whether its own words name no cause: it stopped nothing, or quotes the refusal of who was asked."""
        return self.aside or (self.wrapper and _REFUSED in self.text)


def raised(lines: Sequence[str]) -> list[Raised]:
    """Every exception that a log names, in the order of its lines (as `logtext.plain` gives them)."""
    frames: dict[str, list[str]] = {}
    aside: dict[str, int] = {}
    sources: dict[str, str] = {}
    found: list[Raised] = []
    for number, line in enumerate(lines, 1):
        process, text = owner(line), _QUOTED.sub("", unprefixed(line))
        if _HANDLED.match(line):
            continue
        if frame := _FRAME.match(text):
            frames.setdefault(process, []).append(f"{located(frame[1])}:{frame[2]}")
            sources[process] = ""
        elif _ASIDE.match(text):
            aside[process] = number
        elif watched := _WATCHED.search(text):
            found.append(Raised(number, process, "DistBackendError", watched["said"], ()))
        elif error := _ERROR.match(text):
            first, rest = _CARRIED.sub("", error[2] or ""), _rest(lines, number, process)
            said = _whole([first, *rest]) if error[2] is not None else "\n".join([first, *rest])
            raising, source = tuple(frames.pop(process, ())), sources.pop(process, "")
            tidying = any(_TIDYING.search(frame) for frame in raising[:2])
            over = process in aside or tidying
            signed = line != text
            found.append(Raised(number, process, error[1], said, raising, over, source, signed))
            aside.pop(process, None)
        elif text.startswith("Traceback (most recent call last)"):
            frames[process] = []
            sources.pop(process, None)
        elif sources.get(process) == "" and _SOURCE.match(text):
            sources[process] = text.strip()
        elif process in aside and not frames.get(process) and number - aside[process] > _SOON:
            del aside[process]  # it said no more than that
    return _with_rests(found, lines, frames, sources)


def _with_rests(
    found: list[Raised],
    lines: Sequence[str],
    frames: Mapping[str, Sequence[str]],
    sources: Mapping[str, str],
) -> list[Raised]:
    """The errors, with what stands in the frames of each process that no error ended."""
    for process, rest in frames.items():
        if rest:
            found = _unfinished(found, lines, process, rest, sources.get(process, ""))
    return found


def _unfinished(
    found: list[Raised], lines: Sequence[str], process: str, frames: Sequence[str], source: str
) -> list[Raised]:
    """The errors, with what frames belong to that no error stands behind.

    A log may be cut behind `raise RuntimeError("…")`, which says what it raises; and a person writes the
    error first, and below it where it was.
    """
    own = [n for n, line in enumerate(lines, 1) if line.strip() and owner(line) == process]
    said = [n for n in own if unprefixed(lines[n - 1]).strip(" ^~")]
    last = said[-1] if said else 0
    if last and (raising := _RAISES.match(source)) and unprefixed(lines[last - 1]).strip() == source:
        signed = lines[last - 1] != unprefixed(lines[last - 1])
        one = Raised(
            last, process, raising["error"], raising["said"], tuple(frames), statement=source, signed=signed
        )
        return sorted([*found, one], key=lambda each: each.number)
    before = [one for one in found if one.process == process and not one.frames][-1:]
    below = [unprefixed(lines[n - 1]) for n in own if before and n > before[0].number]
    first = next((n for n, text in enumerate(below) if _FRAME.match(text)), _FEW)
    written = all(_FRAME.match(text) or _SOURCE.match(text) for text in below[first:])
    if first >= _FEW or not written or any(text.startswith("Traceback") for text in below[:first]):
        return found
    return [replace(one, frames=tuple(frames)) if one is before[0] else one for one in found]


def is_frame(line: str) -> bool:
    """Whether a line is a traceback's: `File "…", line 3, in f`."""
    return bool(_FRAME.match(unprefixed(line)))


def quoted(errors: Sequence[Raised]) -> Sequence[Raised]:
    """The errors that wrappers quote, when there are but wrappers: the rest of a log that was cut."""
    if not errors or not all(one.wrapper for one in errors):
        return errors
    return [_quotation(one, found) if (found := _QUOTES.search(one.text)) else one for one in errors]


def _quotation(one: Raised, found: re.Match[str]) -> Raised:
    said = found["said"] or found["execution"] or found["original"]
    shape = next((error for error, shape in _SHAPES if shape.search(said)), one.error)
    # the frames of who asked a worker are not those of what it raised
    own = any(_DEEP.search(frame) for frame in one.frames[-1:])
    return replace(one, error=found["error"] or shape, text=said, frames=one.frames if own else ())


def within(one: Raised) -> Raised | None:
    """The error that a compiler, or Ray, hands on in its own: `InductorError: RuntimeError: CUDA …`."""
    found = _WITHIN.match(one.text) if _HANDS_ON.search(one.error) else None
    return replace(one, error=found["error"], text=found["said"]) if found else None


def root(lines: Sequence[str]) -> Raised | None:
    """The exception that began it: the earliest that is not about another one."""
    return next((one for one in raised(lines) if not one.wrapper), None)


def _whole(said: list[str]) -> str:
    """The lines of a message, the first one with what was broken off it, or what begins behind the class."""
    if not said[0] and said[1:] and said[1].startswith(" "):
        said = [said[1].strip(), *said[2:]]
    if said[1:] and _BROKEN_OFF.search(said[0]) and _goes_on(said):
        said = [f"{said[0]} {said[1].lstrip()}", *said[2:]]
    return "\n".join(said)


def _goes_on(said: list[str]) -> bool:
    return bool(_GOES_ON.match(said[1]) or (len(said[0]) > _LONG and _MOVED_IN.match(said[1])))


def _rest(lines: Sequence[str], number: int, process: str) -> list[str]:
    said: list[str] = []
    for line in lines[number : number + _FOLLOWING]:
        text = unprefixed(line)
        if text.startswith(("Traceback ", "During handling", "The above exception")) or _ERROR.match(text):
            break
        if owner(line) == process and (_HANDLED.match(line) or _NEXT.match(line)):
            break
        goes_on = _PROGRAM.match(text) or (not said and _GOES_ON.match(text))
        if owner(line) == process or (line == text and goes_on):
            said.append(text)
    return said
