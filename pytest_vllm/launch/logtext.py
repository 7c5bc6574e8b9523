"""A log line without what carried it: colours, compose, Kubernetes, journald, JSON; and whose line it is."""

from __future__ import annotations

import json
import re

_COLOUR = re.compile(r"(?:\x1b|ESC)\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
_MONTHS = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_CARRIERS = re.compile(
    rf"^(?:{_MONTHS} +\d+ \d\d:\d\d:\d\d \S+ [\w.@/-]+\[\d+\]: ?"  # journald, syslog
    rf"|{_STAMP} \S+ [\w.@/-]+\[\d+\]: ?"  # journald --output=short-iso
    r"|\[pod/[^\]]+\] ?"  # kubectl logs --prefix
    rf"|{_STAMP} (?:stdout|stderr) [FP] "  # the container runtime's own file
    rf"|{_STAMP} (?=\(|\[|[A-Z{{]|  |\w+(?:\.\w+)*Error)"  # --timestamps
    r"|[\w.-]+\s+\| ?"  # docker compose
    r")"
)
_MESSAGE_KEYS = ("message", "msg", "log", "MESSAGE", "text")
_PREFIX = re.compile(
    r"^(?:\([\w-]+(?: \w+=[^)]*)?\) ?)*"
    r"(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):?\s+"
    r"(?:\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? )?(?:\[[^\]]*\]\s?|[\w./-]+\.py:\d+\]\s?)?)?"
    r"(?:\[rank\d+\]:\s?)?"
)
_OWNER = re.compile(r"\(([A-Za-z][\w-]*)((?: \w+=[^)]*)?)\) ?")


def plain(line: str) -> str:
    """The line as vLLM wrote it; a JSON record gives its message, with its level before it."""
    text = _COLOUR.sub("", line).rstrip()
    for _ in range(3):
        cut = _CARRIERS.sub("", text, count=1)
        if cut == text:
            break
        text = cut
    return _message(text) if text.startswith("{") else text


def unprefixed(line: str) -> str:
    """A log line without `(EngineCore pid=1) ERROR 11-27 20:50:01 [core.py:12] `; its indentation stays."""
    found = _PREFIX.match(line)
    return line[found.end() :] if found else line


def owner(line: str) -> str:
    """The process that wrote the line, the innermost where several are named: `Worker_TP1 pid=189`."""
    name, at = "", 0
    while found := _OWNER.match(line, at):
        name, at = found[1] + found[2], found.end()
    return name


def _message(text: str) -> str:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(record, dict):
        return text
    words = next((record[key] for key in _MESSAGE_KEYS if isinstance(record.get(key), str)), text)
    words = _COLOUR.sub("", words).rstrip()
    level = record.get("level", record.get("levelname", ""))
    if isinstance(level, str) and level.upper() in {"INFO", "DEBUG", "WARNING"} and words != text:
        return f"{level.upper()} {words}"
    return words
