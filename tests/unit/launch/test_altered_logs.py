"""Diagnoses of altered logs: what carried a log, cut it or mixed it changes no cause."""

from __future__ import annotations

import html
import json
import random
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.launch.areas import SETTINGS
from pytest_vllm.launch.diagnosis import diagnose
from pytest_vllm.launch.logtext import plain, spread, unprefixed
from tests.unit.launch.test_diagnosis import FAILED, LOGS, UNSEEN, lines_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_vllm.launch.diagnosis import Diagnosis


_STAMP = re.compile(r"\b(INFO|WARNING|ERROR) (\d\d-\d\d \d\d:\d\d:\d\d) \[?([\w./]+\.py:\d+)\]")
_PROCESS = re.compile(r"^\((\w+(?: \w+=\d+)? pid=\d+)\)")


def coloured(lines: list[str]) -> list[str]:
    """As `FORCE_COLOR` writes them."""
    return [f"\x1b[1;36m{line}\x1b[0m" for line in lines]


def composed(lines: list[str]) -> list[str]:
    """As docker compose shows them."""
    return [f"vllm-1  | {line}" for line in lines]


def journalled(lines: list[str]) -> list[str]:
    """As journalctl shows them."""
    return [f"Aug 17 18:42:18 host vllm[8052]: {line}" for line in lines]


def podded(lines: list[str]) -> list[str]:
    """As `kubectl logs --prefix` shows them."""
    return [f"[pod/vllm-0/vllm] {line}" for line in lines]


def stored(lines: list[str]) -> list[str]:
    """As Docker's json-file driver stores them."""
    return [json.dumps({"log": f"{line}\n", "stream": "stderr"}) for line in lines]


def stamped(lines: list[str]) -> list[str]:
    """As `kubectl logs --timestamps` shows them."""
    return [f"2026-08-17T18:42:18.000000012Z {line}" for line in lines]


def written(lines: list[str]) -> list[str]:
    """As containerd writes them on its node."""
    return [f"2026-08-17T18:42:18.012+02:00 stderr F {line}" for line in lines]


def relayed(lines: list[str]) -> list[str]:
    """As a program shows them that runs vLLM as its child, and logs what the child says."""
    return [f"2026-08-17 18:42:18,012 - gate.child - INFO - {line}" for line in lines]


def escaped(lines: list[str]) -> list[str]:
    """As rsyslog keeps colours and carriage returns."""
    return [f"#033[1;36m{line}#033[0;0m#015" for line in lines]


def framed(lines: list[str]) -> list[str]:
    """As they are copied from a terminal with a frame."""
    return [f"│ {line}   │" for line in lines]


def recorded(lines: list[str]) -> list[str]:
    """As JSON loggers write them, a record a line."""
    return [json.dumps({"message": line, "time": "18:42:18"}) for line in lines]


def quoted(lines: list[str]) -> list[str]:
    """As Go programs write what their child says."""
    return [
        f'time="2026-01-29T14:55:54Z" level=info msg={json.dumps(line, ensure_ascii=False)} component=vllm'
        for line in lines
    ]


def began_before(lines: list[str]) -> list[str]:
    """Behind the log of an earlier start in the same container, which failed otherwise."""
    begin = "INFO 11-27 20:49:00 [api_server.py:1] vLLM API server version 0.30.0"
    other = "ERROR 11-27 20:49:01 [core.py:9] OSError: [Errno 24] Too many open files"
    return [begin, other, "vllm-1 exited with code 1 (restarting)", begin, *lines]


def noisy(lines: list[str]) -> list[str]:
    """With calm lines between, from a process of its own."""
    chance = random.Random(7)  # noqa: S311
    calm = "(APIServer pid=3) INFO 11-27 20:50:01 [x.py:1] still here, no error"
    return [one for line in lines for one in ((line, calm) if chance.random() < 0.3 else (line,))]


def moved(lines: list[str]) -> list[str]:
    """Installed elsewhere, on another day."""
    return [
        line.replace(
            "/usr/local/lib/python3.12/dist-packages", "/opt/v/lib/python3.13/site-packages"
        ).replace("11-27", "02-03")
        for line in lines
    ]


def headless(lines: list[str]) -> list[str]:
    """Without its first fifth, when that is calm."""
    cut = len(lines) // 5
    return lines[cut:] if all(" INFO " in line or line.startswith("INFO") for line in lines[:cut]) else lines


def barred(lines: list[str]) -> list[str]:
    """As something shows them that nobody knows by name."""
    return [
        f"<{n + 1}> 17:03:{n % 60:02} node-7f{n % 3} [of=vllm-{n % 7}] » {line}"
        for n, line in enumerate(lines)
    ]


def backwards(lines: list[str]) -> list[str]:
    """As consoles show them that put the newest line first."""
    return lines[::-1]


def folded(lines: list[str], joined: Callable[[list[str]], str]) -> list[str]:
    """Every traceback in one line."""
    told: list[str] = []
    block: list[str] = []
    for line in lines:
        text = unprefixed(plain(line))
        if text.startswith("Traceback (most recent call last)"):
            told += [joined(block)] if block else []
            block = [text]
        elif block:
            block.append(text)
            if not text.startswith(" "):
                told.append(joined(block))
                block = []
        else:
            told.append(line)
    return [*told, joined(block)] if block else told


def escaped_in_one(lines: list[str]) -> list[str]:
    """As a field of a record that is written as text."""
    return folded(lines, lambda block: '{"level": "error", "err": ' + json.dumps("\n".join(block)) + "}, 1")


def squashed(lines: list[str]) -> list[str]:
    """As a log without line ends keeps them."""
    return folded(lines, lambda block: "ERROR: " + " ".join(line.strip() for line in block))


def streamed(lines: list[str]) -> list[str]:
    """As collectors write them that give everything of one stream the same level."""
    return [json.dumps({"level": "info", "message": line}) for line in lines]


def by_ray(lines: list[str]) -> list[str]:
    """As older versions of Ray show what their actors say."""
    return [f"(pid=812, ip=10.0.0.7) {line}" for line in lines]


def stamped_by_nim(lines: list[str]) -> list[str]:
    """As NIM writes vLLM's lines: with the year, and without a bracket."""
    return [_STAMP.sub(r"\1 2026-\2.123 \3]", line) for line in lines]


def squared(lines: list[str]) -> list[str]:
    """With the process in square brackets."""
    return [_PROCESS.sub(r"[\1]", line) for line in lines]


def published(lines: list[str]) -> list[str]:
    """As a page's source shows them."""
    return [html.escape(line) for line in lines]


def replicated(lines: list[str]) -> list[str]:
    """As Ray Serve shows what a replica says."""
    return [f"(ServeReplica:llm:vllm pid=812, ip=10.0.0.7) {line}" for line in lines]


def answered_in_mail(lines: list[str]) -> list[str]:
    """As a quotation."""
    return [f"> {line}" for line in lines]


def numbered(lines: list[str]) -> list[str]:
    """As `grep -n` shows them."""
    return [f"{number}:{line}" for number, line in enumerate(lines, 108)]


def in_the_cloud(lines: list[str]) -> list[str]:
    """As Google's logging exports them."""
    return [json.dumps({"jsonPayload": {"message": line}, "severity": "ERROR"}) for line in lines]


def moved_in(lines: list[str]) -> list[str]:
    """As a list in a thread shows them."""
    return [f"    {line}" for line in lines]


def broken_at_80(lines: list[str]) -> list[str]:
    """As they are copied from a terminal of 80 columns."""
    return [line[at : at + 80] for line in lines for at in range(0, len(line), 80)]


#: What carries a log, and changes none of its lines' meaning.
CARRIED = (
    coloured,
    composed,
    journalled,
    podded,
    stored,
    stamped,
    written,
    relayed,
    escaped,
    framed,
    noisy,
    moved,
)


#: What collectors and pastes do to one, and what needs more than a few lines to be seen.
PASTED = (streamed, by_ray, moved_in, broken_at_80, replicated, numbered, in_the_cloud)
SPELT = (stamped_by_nim, squared, published, answered_in_mail)


@cache
def excerpts() -> list[tuple[tuple[str, ...], Diagnosis]]:
    """The lines of each public thread, and what they say as they are."""
    found = []
    for case in UNSEEN:
        lines = tuple(line for line in case["log"].splitlines() if line.strip())
        found.append((lines, diagnose(lines, hung=case.get("hung"))))
    return found


@cache
def logs() -> dict[Path, tuple[tuple[str, ...], Diagnosis]]:
    """The same of each kept log."""
    kept = {path: tuple(line for line in lines_of(path) if line.strip()) for path in LOGS}
    return {path: (lines, diagnose(lines)) for path, lines in kept.items()}


@pytest.mark.parametrize(
    "alter",
    [*CARRIED, *PASTED, *SPELT, recorded, quoted, headless, barred, backwards, escaped_in_one, squashed],
    ids=lambda one: one.__name__,
)
def test_altered_logs(alter: Callable[[list[str]], list[str]]) -> None:
    """What carried a log, and what stands beside it, changes no diagnosis."""
    wrong = {}
    for path in LOGS:
        lines, expected = logs()[path]
        found = diagnose(alter(list(lines)))
        if (found.sure, found.cause) != (expected.sure, expected.cause):
            wrong[path.stem] = (found.cause, expected.cause)

    assert not wrong


@pytest.mark.parametrize(
    "alter",
    CARRIED,
    ids=lambda one: one.__name__,
)
def test_altered_excerpts(alter: Callable[[list[str]], list[str]]) -> None:
    """Nor of the few lines of a public thread."""
    wrong = {}
    for case, (lines, expected) in zip(UNSEEN, excerpts(), strict=True):
        found = diagnose(alter(list(lines)), hung=case.get("hung"))
        if (found.sure, found.cause) != (expected.sure, expected.cause):
            wrong[case["thread"]] = (found.cause, expected.cause)

    assert not wrong


def test_an_earlier_start_is_not_this_one() -> None:
    """The last start that failed counts."""
    wrong = {}
    for path in FAILED:
        expected, found = diagnose(lines_of(path)), diagnose(began_before(lines_of(path)))
        if found.cause != expected.cause:
            wrong[path.stem] = found.cause

    assert not wrong


@pytest.mark.parametrize("kept", [50, 30, 15])
def test_cut_logs_mislead_nobody(kept: int) -> None:
    """The end alone names the same cause, or says that it does not know."""
    wrong = {}
    for path in FAILED:
        lines = lines_of(path)
        expected, found = diagnose(lines), diagnose(lines[-kept:])
        if found.cause not in {"", expected.cause}:
            wrong[path.stem] = found.cause

    assert not wrong


def ranks(lines: list[str]) -> list[str]:
    """The same from two workers at once, the second a line behind the first."""
    told = [line for line in (unprefixed(text) for _, text in spread(lines)) if line.strip()]
    stamp = "ERROR 11-27 20:50:01 [multiproc_executor.py:9]"
    one = [f"(Worker_TP0 pid=70) {stamp} {line}" for line in told]
    two = [f"(Worker_TP1 pid=71) {stamp} {line}" for line in told]
    pairs = zip([*one, ""], ["", *two], strict=True)
    return [line for pair in pairs for line in pair if line]


def test_ranks_at_once() -> None:
    """What several ranks write between each other's lines is told apart."""
    wrong = {}
    for case in UNSEEN:
        lines = [line for line in case["log"].splitlines() if "File" in line and "INFO" not in line]
        error = next((line for line in case["log"].splitlines() if "Error: " in line), "")
        if "DEBUG" in error:
            continue
        if not lines or not error or case["log"].count("Error") != 1:
            continue
        expected, found = diagnose([*lines, error]), diagnose(ranks([*lines, error]))
        # a worker checks no settings: what is raised there in one is not their fault
        if expected.cause not in {found.cause, SETTINGS}:
            wrong[case["thread"]] = (found.cause, expected.cause)

    assert not wrong


def test_record_with_a_traceback() -> None:
    """JSON loggers put a whole traceback into one record; the record's number is told."""
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/v/vllm/lora/peft_helper.py", line 9, in _validate\n    raise ValueError(said)\n'
        "ValueError: rank patterns are for others"
    )
    record = {"level": "ERROR", "message": "EngineCore failed to start.", "exc_info": trace}
    found = diagnose([json.dumps({"level": "INFO", "message": "begins"}), json.dumps(record)])

    assert (found.cause, found.quoted[0][0]) == ("lora-does-not-fit", 2)
