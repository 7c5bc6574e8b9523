"""A log line without what carried it: colours, compose, Kubernetes, journald, JSON; and whose line it is."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.launch.carriers import begins, carriers, foreign
from pytest_vllm.launch.digest import digest
from pytest_vllm.launch.folded import unfolded, upwards
from pytest_vllm.launch.framed import framed
from pytest_vllm.launch.remembered import remembered
from pytest_vllm.launch.spellings import spelt, unnumbered
from pytest_vllm.launch.wrapped import unwrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Of a line, such as a dump of a batch, that many characters are read.
_LONGEST = 8_000
#: Of a raw line that many, and of a word in it (an encoded picture) its ends.
_RAW, _WIDE, _WORD = 200_000, 1_000, re.compile(r"(\S{200})\S{200,}(\S{100})")
_COLOUR = re.compile(
    r"(?:\x1b|ESC|\^\[|#033)\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07"  # also as cat -v and rsyslog show it
    r"|\[\d{1,2}(?:;\d{1,3})*m"  # or without the escape
    r"|(?:#015|\^M)$|\s*│$"
)
_MONTHS = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_STAMP = r"\[?\d{4}[-/]\d\d[-/]\d\d[T _-]\d\d:\d\d:\d\d(?:[.,:]\d+)?(?: ?Z| ?[+-]\d\d:?\d\d)?\]?"
_LEVELS = "(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)"
_CARRIERS = re.compile(
    rf"^(?:{_MONTHS} +\d+ \d\d:\d\d:\d\d \S+ [\w.@/-]+\[\d+\]: ?"  # journald, syslog
    rf"|{_STAMP} \S+ [\w.@/-]+\[\d+\]: ?"  # journald --output=short-iso
    r"|\[pod/[^\]]+\] ?"  # kubectl logs --prefix
    rf"|{_STAMP} (?:stdout|stderr) [FP] "  # the container runtime's own file
    rf"|{_STAMP} - (?!vllm\b)[\w.]+ - {_LEVELS} - "  # a program that logs what its child says
    rf"|{_STAMP} \| \w+ \| (?:stdout|stderr) \| ?"  # the same, with bars
    rf"|{_STAMP} \[\w+\] \(\w+\) "  # the same, with brackets
    r"|\[\d+,\d+\]<std(?:out|err)>: ?"  # mpirun
    rf"|{_STAMP} +\w+ \w+::subprocess: ?"  # a Rust program's log of its child
    rf"|{_STAMP} +(?=(?:TRACE|DEBUG|INFO|WARN|ERROR) )"  # and of itself
    rf"|{_STAMP}[ \t](?!- )"  # --timestamps
    r"|[\w.-]+\s+\| ?"  # docker compose
    r"|[│┃▌▍▎▏|] ?"  # a terminal's frame, a quotation's bar
    r"|> (?=\S)"  # and as mail and Markdown write it
    r")"
)
_LOGFMT = re.compile(r'time=\S+ level=\w+ msg="((?:[^"\\]|\\.)*)"')
_OF_A_LOGGER = re.compile(rf"^{_STAMP} - vllm[\w.]* - ({_LEVELS}) - ")
#: Whatever stands before the process or the level that vLLM itself writes.
_BEFORE_VLLM = re.compile(
    r"^(?![(]|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b)[^\"'`=]{1,80}?"
    r"(?=\((?:APIServer|EngineCore|Worker|VllmWorker|RayWorker)\w*[ )]"
    r"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d[ .])"
)
_PROCESS = r"\([A-Za-z][\w:.-]*(?:\([\w-]*\))?(?:,? [^()]*?\bpid=[^)]*| \w+=[^)]*|=\d+[^()]*)?\) ?"
_MESSAGE_KEYS = ("message", "msg", "log", "MESSAGE", "text", "textPayload", "line", "content", "@message")
_INNER_KEYS = ("jsonPayload", "fields", "body", "attributes")
_TRACE_KEYS = ("exc_info", "exception", "traceback", "stack_trace", "exc_text")
_KNOWN_LEVELS = frozenset({"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"})
_PREFIX = re.compile(
    rf"^(?:{_PROCESS})*"
    r"(?:(?:INFO:     |(?:ERROR|DEBUG):    |WARNING:  "  # as uvicorn pads them
    rf"|{_LEVELS}:? +(?=\d\d-\d\d |\[)|{_LEVELS}:? )"
    r"(?:\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? )?(?:\[[^\]]*\]\s?|[\w./-]+\.py:\d+\]\s?)?)?"
    r"(?:\[rank\d+\]:\s?)?"
)
_OWNER = re.compile(_PROCESS)
#: How argument parsers and container engines begin a line that says why they refuse.
_REFUSED = re.compile(
    r"(?:[\w./-]+ ){0,3}[\w./-]+: (?i:error): |(?:docker: )?Error(?: response from daemon)?: "
)


def plain(line: str, *, levels: bool = True) -> str:
    """The line as vLLM wrote it; a JSON record gives its message, with its level before it.

    Args:
        line: as it was carried.
        levels: whether a record's level is that of its message, not of the stream that carried it.
    """
    text = _COLOUR.sub("", line).rstrip()
    text = _message_of(text)
    for _ in range(4):
        cut = _CARRIERS.sub("", _OF_A_LOGGER.sub(r"\1 ", text), count=1)
        if cut == text:
            break
        text = _message_of(cut)
    if not text.startswith("{"):
        return _BEFORE_VLLM.sub("", text)
    words = _message(text, levels=levels)
    return words if words == text else "\n".join(plain(one) for one in words.split("\n"))


def _message_of(text: str) -> str:
    """What a record of logfmt says, without its other fields."""
    found = _LOGFMT.match(text)
    return found[1].replace('\\"', '"').replace("\\\\", "\\") if found else text


def spread(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Every line as vLLM wrote it, with the number of its record: one of JSON can hold a whole traceback.

    Of a very long log repetitions are left out. One that shows its newest line first is turned round.
    """
    own = [(number, spelt(_COLOUR.sub("", line[:_RAW]))) for number, line in digest(lines)]
    kept = unwrapped(unnumbered(own))
    others = foreign([line for _, line in kept])
    kept = [(number, "" if n in others else line) for n, (number, line) in enumerate(kept)]
    if before := carriers(line for _, line in kept):
        kept = [(number, before.sub("", line, count=1)) for number, line in kept]
    levels = not any(_carries_levels(line) for _, line in kept)
    records = [(number, unfolded(plain(line, levels=levels)).split("\n")) for number, line in kept]
    json_lines = [n for n, (_, line) in enumerate(kept) if line.startswith("{")]
    if inner := carriers(text for n in json_lines for text in records[n][1]):
        records = [(number, [inner.sub("", text, count=1) for text in texts]) for number, texts in records]
    if upwards([text for _, texts in records for text in texts], owner):
        records.reverse()
    said = [(number, text, unprefixed(text)) for number, texts in records for text in texts]
    bare = framed([one for _, _, one in said])
    return [
        (number, _bounded(text.removesuffix(one) + new))
        for (number, text, one), new in zip(said, bare, strict=True)
    ]


def _bounded(text: str) -> str:
    """The text, or of a very long one what can tell something."""
    return text if len(text) <= _WIDE else _WORD.sub(r"\1…\2", text[:_LONGEST])


@remembered
def unprefixed(line: str) -> str:
    """A log line without `(EngineCore pid=1) ERROR 11-27 20:50:01 [core.py:12] `; its indentation stays."""
    found = _PREFIX.match(line)
    return line[found.end() :] if found else line


@remembered
def owner(line: str) -> str:
    """The process that wrote the line, the innermost where several are named: `Worker_TP1 pid=189`."""
    name, at = "", 0
    while found := _OWNER.match(line, at):
        name, at = found[0].strip("() "), found.end()
    return name


def _carries_levels(line: str) -> bool:
    """Whether a record of JSON has a level beside words that begin as vLLM's, or Python's, own lines do."""
    text = line.lstrip()
    words = _message(text, levels=False).partition("\n")[0] if text.startswith("{") else ""
    return begins(words) or bool(_REFUSED.match(words))


def _message(text: str, *, levels: bool) -> str:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(record, dict):
        return text
    inner: dict[str, Any] = next(
        (record[key] for key in _INNER_KEYS if isinstance(record.get(key), dict)), {}
    )
    whole = {**inner, **record}
    words = next((whole[key] for key in _MESSAGE_KEYS if isinstance(whole.get(key), str)), text)
    words = _COLOUR.sub("", words).rstrip()
    level = record.get("level", record.get("levelname", record.get("severity", "")))
    named = level.upper() if levels and isinstance(level, str) else ""
    if named in _KNOWN_LEVELS and words != text:
        words = f"{named} {words}"
    raised = next((record[key] for key in _TRACE_KEYS if isinstance(record.get(key), str)), "")
    return f"{words}\n{raised.rstrip()}" if raised else words
