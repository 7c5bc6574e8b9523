"""Prefixes that nobody named, sidecars, and tracebacks that were put into one line or turned round."""

from __future__ import annotations

import json

import pytest

from pytest_vllm.launch.carriers import carriers, foreign
from pytest_vllm.launch.diagnosis import Sure, diagnose
from pytest_vllm.launch.folded import unfolded, upwards
from pytest_vllm.launch.logtext import owner, spread
from tests.unit.launch.test_areas import ENGINE, trace

TRACE = [
    "Traceback (most recent call last):",
    '  File "/v/vllm/v1/core/sched/scheduler.py", line 8, in schedule',
    "    assert blocks",
    "AssertionError: no block",
]


@pytest.mark.parametrize(
    "prefix",
    [
        "[0] [0] ",
        "17:03:0{n}.123 node-7f{n} » ",
        "<{n}> app/web.1 | ",
        "2026-06-09 13:59:0{n}.6 [Info] (Child) ",
    ],
)
def test_a_prefix_is_learned(prefix: str) -> None:
    """From lines that begin behind it as Python's or vLLM's do."""
    lines = [prefix.format(n=n) + line for n, line in enumerate([*TRACE, *TRACE])]

    assert carriers(lines)
    assert [text for _, text in spread(lines)] == [*TRACE, *TRACE]
    assert diagnose(lines).cause == "fault-in-scheduler"


@pytest.mark.parametrize(
    "lines",
    [
        TRACE,
        [f"{ENGINE} {line}" for line in TRACE],
        ["(APIServer pid=3) (Worker_TP1 pid=71) ERROR 11-27 20:50:01 [x.py:9] x"] * 2,
        ["INFO 11-27 20:50:01 [x.py:9] said: Traceback (most recent call last):"] * 2,
    ],
)
def test_what_vllm_writes_itself_is_no_carrier(lines: list[str]) -> None:
    """Its processes and levels stay."""
    assert carriers(lines) is None


def test_a_sidecar_names_no_cause() -> None:
    """Neither of compose nor of Kubernetes."""
    vllm = ["(EngineCore pid=7) ERROR 11-27 20:50:01 [core.py:9] ZeroDivisionError: division by zero"]
    proxy = ["bind() to 0.0.0.0:80 failed (98: Address already in use)"]
    compose = [*(f"vllm-1   | {line}" for line in vllm), *(f"proxy-1  | {line}" for line in proxy)]
    pods = [*(f"[pod/a-1/vllm] {line}" for line in vllm), *(f"[pod/a-1/proxy] {line}" for line in proxy)]

    assert foreign(compose) == foreign(pods) == {1}
    assert diagnose(compose).cause == diagnose(pods).cause == ""
    assert diagnose(proxy).cause == "port-in-use"
    assert diagnose([f"proxy-1  | {line}" for line in proxy]).cause == "port-in-use"


def test_words_of_a_container_engine() -> None:
    """They say nothing of a server that has run; a proxy in Go uses the same ones."""
    refused = 'E1027 proxy.go:268] "waiting" err="dial tcp [::1]:8200: connect: connection refused"'
    died = trace("/v/vllm/v1/core/sched/scheduler.py", error="AssertionError")

    assert diagnose([refused]).cause == "registry-unreachable"
    assert diagnose([refused, *died]).cause == "fault-in-scheduler"


@pytest.mark.parametrize(
    "line",
    [
        json.dumps({"error": "\n".join(TRACE)}),
        "ERROR " + "\\n".join(TRACE),
        "level=error err=" + json.dumps(json.dumps("\n".join(TRACE))),
        "ERROR: " + " ".join(line.strip() for line in TRACE),
        " ".join(f"ERROR 11-27 20:50:01 [core.py:9] {line.strip()}" for line in TRACE),
    ],
    ids=["JSON", "escapes", "escapes of escapes", "spaces", "spaces and stamps"],
)
def test_a_traceback_in_one_line(line: str) -> None:
    """As clouds and shells put it."""
    found = diagnose([line])

    assert found.cause == "fault-in-scheduler"
    assert found.quoted[0][0] == 1


def test_other_lines_stay() -> None:
    """A path on Windows has no line ends in it."""
    line = '  File "E:\\new\\vllm\\native.py", line 3, in call'

    assert unfolded(line) == line


def test_a_log_that_begins_with_its_end() -> None:
    """The numbers of lines stay those of the file."""
    lines = [f"{ENGINE} {line}" for line in TRACE]
    found = diagnose(lines[::-1])

    assert upwards(lines[::-1], owner)
    assert not upwards(lines, owner)
    assert (found.cause, found.quoted[0][0]) == ("fault-in-scheduler", 1)


def test_times_that_fall() -> None:
    """Where no traceback shows the order; equal times show none."""
    lines = [f"(APIServer pid=3) INFO 11-27 20:50:0{n} [x.py:1] fine" for n in range(4)]

    assert upwards(lines[::-1], owner)
    assert not upwards(lines, owner)
    assert not upwards([lines[0]] * 4, owner)


def test_ranks_between_each_other_do_not_turn_a_log_round() -> None:
    """A frame behind an error may be another process's."""
    lines = [
        '(Worker_TP2 pid=80) ERROR 11-27 20:50:01 [x.py:9]   File "/vllm/model_executor/m.py", line 1, in f',
        "(Worker_TP2 pid=80) ERROR 11-27 20:50:01 [x.py:9]     return linear(x)",
        "(Worker_TP0 pid=78) ERROR 11-27 20:50:01 [x.py:9]     return compiled(x)",
        "(Worker_TP2 pid=80) ERROR 11-27 20:50:01 [x.py:9]            ^^^^^^^^^",
        "(Worker_TP0 pid=78) ERROR 11-27 20:50:01 [x.py:9]            ^^^^^^^^^",
        "(Worker_TP2 pid=80) ERROR 11-27 20:50:01 [x.py:9] RuntimeError: expected the same dtype",
        '(Worker_TP0 pid=78) ERROR 11-27 20:50:01 [x.py:9]   File "/v/torch/_inductor/o.py", line 1, in g',
    ]

    assert diagnose(lines).cause == "fault-in-model"


def test_a_word_of_megabytes_costs_no_time() -> None:
    """A picture in a request is one; what stands around it is read."""
    line = f"{ENGINE} ValueError: {'y' * 7_000} No available memory for the cache blocks"
    text = spread([line])[0][1]

    assert len(text) < 1_000
    assert diagnose([line]).cause == "kv-cache-none"


BEGINS = "(APIServer pid=3) INFO 11-27 20:49:01 [api_utils.py:345]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.28.1"
EARLIER = "OSError: [Errno 24] Too many open files"


def test_a_start_that_stands_still_behind_one_that_failed() -> None:
    """The last one counts, by its banner too; where it says nothing, the one before it does."""
    hangs = "(EngineCore pid=7) INFO 11-27 20:50:01 [pynccl.py:70] vLLM is using nccl==2.28.9"
    loads = "(EngineCore pid=7) INFO 11-27 20:50:01 [x.py:70] Starting to load model m..."

    assert diagnose([BEGINS, EARLIER, BEGINS, hangs]).cause == "collective-hang"
    assert diagnose([BEGINS, EARLIER, BEGINS, loads]).cause == "too-many-files"
    assert diagnose([BEGINS, EARLIER, BEGINS, loads], hung=True).sure is Sure.UNKNOWN
