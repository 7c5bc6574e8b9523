"""Diagnoses of public failures, of altered logs and of healthy ones; and the page's table."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pytest_vllm.cli import main
from pytest_vllm.launch.areas import areas
from pytest_vllm.launch.causes import causes
from pytest_vllm.launch.diagnosis import Sure, diagnose
from pytest_vllm.launch.kinds import kinds
from pytest_vllm.launch.logtext import owner, plain
from pytest_vllm.launch.protocol import Exit
from tools.diagnosed import counted

FOLDER = Path(__file__).parent / "logs"
LOGS = sorted([*FOLDER.glob("*.log"), *FOLDER.glob("written/*.log")])
FAILED = [path for path in LOGS if path.stem != "healthy"]
UNSEEN = [
    case
    for path in sorted(FOLDER.glob("unseen-*.toml"))
    for case in tomllib.loads(path.read_text("utf-8"))["case"]
]
PAGE = Path(__file__).parents[3] / "docs/diagnose.md"


def lines_of(path: Path) -> list[str]:
    """The lines of a log."""
    return path.read_text("utf-8").splitlines()


@pytest.mark.parametrize("case", UNSEEN, ids=lambda case: case["thread"])
def test_public_failures(case: dict[str, Any]) -> None:
    """The cause that the thread came to, or an honest "unknown"."""
    found = diagnose(case["log"].splitlines(), hung=case.get("hung"))

    assert (found.cause or "unknown") in case["right"]
    assert (bool(found.quoted), bool(found.tries)) == 2 * (found.sure is not Sure.NO_FAULT,)
    assert "wait" not in " ".join(found.tries)


@pytest.mark.parametrize("path", FAILED, ids=lambda path: path.stem)
def test_logs_of_the_repository(path: Path) -> None:
    """Each names its cause, without an exit status."""
    found = diagnose(lines_of(path))

    assert found.cause == path.stem.partition("@")[0]
    assert found.sure in {Sure.CERTAIN, Sure.LIKELY}


#: What good servers say, too, however it sounds.
SCARY = (
    '(APIServer pid=3) INFO:     10.0.0.7:51000 - "POST /v1/completions HTTP/1.1" 429 Too Many Requests',
    '(APIServer pid=3) INFO:     10.0.0.7:51000 - "GET /v1/models HTTP/1.1" 401 Unauthorized',
    "(EngineCore pid=7) WARNING 11-27 20:50:01 [x.py:1] CUDA out of memory in tuning, trying less",
    "(EngineCore pid=7) INFO 11-27 20:50:01 [x.py:1] NCCL error handling is asynchronous",
    "(EngineCore pid=7) INFO 11-27 20:50:01 [pynccl.py:70] vLLM is using nccl==2.27",
    "(EngineCore pid=7) DEBUG 11-27 20:50:01 [x.py:1] ModuleNotFoundError: No module named 'libtpu'",
    "[rank0]:[W1127 20:50:01.42 ProcessGroupNCCL.cpp:1524] Warning: destroy_process_group() was not called",
    "/v/torch/cuda/__init__.py:61: FutureWarning: FlashAttention is not supported by the old name",
    "/v/x.py:3: UserWarning: No space left on device would be an error here",
    "  warnings.warn(",
    "Exception ignored in: <function Weak.__del__ at 0x7f>",
    "Traceback (most recent call last):",
    '  File "/v/vllm/lora/pool.py", line 3, in __del__',
    "ValueError: too late",
    "Exception in thread Thread-2 (_report_usage_worker):",
    "Traceback (most recent call last):",
    '  File "/v/requests/adapters.py", line 700, in send',
    "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='stats.vllm.ai', port=443): Max retries",
    "HTTP Error 429 thrown while requesting HEAD of a file; Retrying in 1s [Retry 1/5].",
)


@pytest.mark.parametrize("late", [False, True], ids=["before it started", "after it started"])
def test_healthy_log_with_scary_words(*, late: bool) -> None:
    """No cause is found where nothing failed."""
    lines = lines_of(FOLDER / "healthy.log")
    found = diagnose([*lines, *SCARY] if late else [*lines[:8], *SCARY, *lines[8:]])

    assert (found.sure, found.cause) == (Sure.NO_FAULT, "")


def test_an_idle_server_does_not_hang() -> None:
    """It may say for hours that its workers wait, too."""
    line = "(EngineCore pid=7) INFO 11-27 20:50:01 [x.py:1] No available shared memory broadcast block found"
    load = "(APIServer pid=3) INFO 11-27 20:50:01 [x.py:1] Engine 000: Running: {} reqs, Waiting: 0 reqs"
    lines = lines_of(FOLDER / "healthy.log")

    assert diagnose([*lines, load.format(0), *4 * [line]]).sure is Sure.NO_FAULT
    assert diagnose([*lines, load.format(1), *4 * [line]]).cause == "collective-hang"


def test_probes_beside_a_hang() -> None:
    """The front end goes on answering them, and telling that nothing comes."""
    line = "(EngineCore pid=7) INFO 11-27 20:50:01 [x.py:1] No available shared memory broadcast block found"
    load = "(APIServer pid=3) INFO 11-27 20:50:01 [x] Avg generation throughput: {} tokens/s, Running: 1 reqs"
    probe = '(APIServer pid=3) INFO:     10.0.0.7:51000 - "GET /health HTTP/1.1" 200 OK'
    hangs = [*lines_of(FOLDER / "healthy.log"), load.format("9.1"), *3 * [line, load.format("0.0"), probe]]

    assert diagnose(hangs).cause == "collective-hang"
    assert diagnose([*hangs, ANSWERED]).sure is Sure.NO_FAULT
    assert diagnose([*hangs, load.format("9.1")]).sure is Sure.NO_FAULT


@pytest.mark.parametrize(("size", "cause"), [(1, ""), (2, "collective-hang")])
def test_a_single_rank_waits_for_nobody(size: int, cause: str) -> None:
    """Where it hangs it is not the talk among GPUs."""
    said = f"rank 0 in world size {size} is assigned as DP rank 0, PP rank 0, TP rank 0, EP rank 0"
    line = f"(EngineCore pid=7) INFO 11-27 20:50:01 [parallel_state.py:1] {said}"

    assert diagnose([*lines_of(FOLDER / "healthy.log")[:8], line], hung=True).cause == cause


REFUSED = (
    "(APIServer pid=3) ERROR 11-27 20:50:01 [serving_chat.py:26] Error in preprocessing prompt inputs",
    '(APIServer pid=3) ERROR 11-27 20:50:01 [serving_chat.py:26]   File "/v/vllm/x.py", line 8, in _check',
    "(APIServer pid=3) ERROR 11-27 20:50:01 [serving_chat.py:26] ValueError: the prompt is too long",
)
ANSWERED = '(APIServer pid=3) INFO:     10.0.0.7:51000 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
DIED = "(EngineCore pid=7) ERROR 11-27 20:50:01 [core.py:9] ZeroDivisionError: division by zero"


def test_a_refused_request_is_no_fault() -> None:
    """Of a server that answers the next one; an engine's error stays one."""
    lines = lines_of(FOLDER / "healthy.log")

    assert diagnose([*lines, *REFUSED, ANSWERED]).sure is Sure.NO_FAULT
    assert diagnose([*lines, *REFUSED]).sure is Sure.UNKNOWN
    assert diagnose([*lines, DIED, ANSWERED]).sure is Sure.UNKNOWN
    assert diagnose([*lines, *REFUSED, ANSWERED, DIED]).sure is Sure.UNKNOWN


def test_an_error_that_the_engine_survived_is_not_why_it_died() -> None:
    """A grammar that it refused, answers for minutes, then an error of its own."""
    at = "09-02 10:00:00"
    engine, worker = (
        f"(EngineCore pid=24) ERROR {at} [__init__.py:208]",
        f"(Worker pid=36) ERROR {at} [x.py:1063]",
    )
    refused = [
        f"{engine} Traceback (most recent call last):",
        f'{engine}   File "/dist-packages/xgrammar/compiler.py", line 9, in compile_json_schema',
        f"{engine} RuntimeError: items must be a boolean or an object",
    ]
    died = [
        f"{worker} WorkerProc hit an exception.",
        f"{worker} Traceback (most recent call last):",
        f'{worker}   File "/dist-packages/vllm/v1/worker/gpu_model_runner.py", line 7, in _bookkeeping_sync',
        f"{worker} RuntimeError: this was not expected",
    ]
    answers = ['INFO:     10.0.0.1:1 - "POST /v1/completions HTTP/1.1" 200 OK'] * 9
    begin = ["INFO:     Application startup complete."]

    assert diagnose([*begin, *refused, *answers, *died]).cause == "fault-in-runner"
    assert diagnose([*begin, *refused, *answers[:2], *died]).cause == "fault-in-structured-output"


def test_what_follows_names_no_cause() -> None:
    """The other ranks' complaints about a rank that died of something unknown."""
    lines = [
        "(Worker_TP1 pid=71) ERROR 11-27 20:50:01 [x.py:9] ZeroDivisionError: division by zero",
        "(Worker_TP0 pid=70) ERROR 11-27 20:50:02 [x.py:9] torch.distributed.DistBackendError: NCCL error: x",
        "(EngineCore pid=7) ERROR 11-27 20:50:03 [x.py:9] TimeoutError: RPC call to execute_model timed out.",
        "(EngineCore pid=7) ERROR 11-27 20:50:03 [x.py:9] Worker proc VllmWorker-1 died unexpectedly.",
        "(APIServer pid=3) KeyboardInterrupt: terminated",
    ]
    found = diagnose(lines)

    assert (found.sure, found.cause) == (Sure.UNKNOWN, "")
    assert "ZeroDivisionError" in found.quoted[0][1]


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "nvidia-smi: error while loading shared libraries: libx.so.1: cannot open shared object file",
            "library-missing",
        ),
        ("terminate called after throwing an instance of 'std::length_error'", "crashed"),
        (
            "ERROR ||NEURON_CC_WRAPPER||: Compilation failed for /tmp/model.hlo.pb after 0 retries.",
            "compile-failed",
        ),
    ],
)
def test_a_helper_that_failed_is_not_why_a_server_died(line: str, cause: str) -> None:
    """Alone it is the best that is known; of an error that nothing explains it says nothing."""
    raised = [
        "Traceback (most recent call last):",
        '  File "/v/vllm/v1/worker/gpu_model_runner.py", line 691, in load_model',
        "ZeroDivisionError: division by zero",
    ]

    assert diagnose([line]).cause == cause
    assert diagnose([line, *raised]).cause == "fault-in-runner"


def test_healthy_log() -> None:
    """A good start has no fault."""
    assert diagnose(lines_of(FOLDER / "healthy.log")).sure is Sure.NO_FAULT


def test_unknown_names_three_lines() -> None:
    """Never a wrong cause."""
    lines = [
        "(EngineCore pid=1) ERROR 11-27 20:50:01 [core.py:9] ZeroDivisionError: division by zero",
        "a",
        "b",
        "c",
    ]
    found = diagnose(lines)

    assert (found.sure, found.cause, len(found.quoted)) == (Sure.UNKNOWN, "", 3)
    assert found.quoted[0][0] == 1


def test_memory_kill_outweighs_the_log() -> None:
    """What the engine of containers knows for certain."""
    assert diagnose(["INFO fine"], Exit(137, oom=True)).cause == "killed-for-memory"


def test_start_that_goes_on_is_no_hang() -> None:
    """Only the last line of a start that stands still is a hang."""
    lines = [
        "INFO 01-01 10:00:00 [pynccl.py:1] vLLM is using nccl==2.27",
        "INFO 01-01 10:00:09 [x.py:1] Starting to load model m...",
    ]

    assert diagnose(lines, hung=True).sure is Sure.UNKNOWN
    assert diagnose(lines[:1], hung=True).cause == "collective-hang"


def test_whose_line_it_is() -> None:
    """The innermost process."""
    line = plain("vllm-1  | (APIServer pid=1) (EngineCore_DP0 pid=181) (Worker_TP1 pid=189) ERROR x")

    assert owner(line) == "Worker_TP1 pid=189"


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Plain and JSON, and the exit status."""
    assert main(["diagnose", str(FOLDER / "healthy.log")]) == 0
    assert "no fault found" in capsys.readouterr().out
    assert main(["diagnose", str(FOLDER / "port-in-use.log"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["cause"] == "port-in-use"
    assert main(["diagnose", str(tmp_path / "none.log")]) == 4


def table() -> str:
    """The table of `docs/diagnose.md`."""
    rows = {cause.id: cause.means for cause in causes()}
    for kind in kinds():
        rows.setdefault(kind.cause.id, kind.cause.means)
    for area in areas():
        rows.setdefault(area.cause.id, area.cause.means)
    body = [f"| `{name}` | {means.replace('|', '/')} |" for name, means in sorted(rows.items())]
    return "\n".join(["| Cause | What it means |", "| --- | --- |", *body])


def test_page_lists_every_cause() -> None:
    """To renew it, put what this shows between the two marks."""
    text = PAGE.read_text("utf-8")
    between = text.partition("test_diagnosis.py -->")[2].partition("<!-- end of causes")[0]

    assert between.strip() == table()


def test_counting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`tools.diagnosed` says which logs are not named rightly."""
    case = '[[case]]\nthread = "{}"\nright = ["{}"]\nlog = "{}"\n'
    full, quiet = "OSError: [Errno 28] No space left on device", "nothing"
    path = tmp_path / "logs.toml"
    cases = (("a", "disk-full", full), ("b", "port-in-use", full), ("c", "disk-full", quiet))
    path.write_text("".join(case.format(*one) for one in cases), "utf-8")

    assert counted(path) == {"right": 1, "wrong": 1, "unknown": 1}
    assert "wrong: b: disk-full, not port-in-use" in capsys.readouterr().out
