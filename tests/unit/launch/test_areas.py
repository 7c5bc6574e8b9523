"""Errors of which nothing is known but where they were raised."""

from __future__ import annotations

import re

import pytest

from pytest_vllm.launch.areas import areas
from pytest_vllm.launch.diagnosis import Sure, diagnose

ENGINE = "(EngineCore pid=7) ERROR 11-27 20:50:01 [core.py:9]"
FRONT = "(APIServer pid=3) ERROR 11-27 20:50:00 [serving.py:9]"


def trace(*files: str, error: str, process: str = ENGINE) -> list[str]:
    """A traceback through these files."""
    frames = [f'{process}   File "{file}", line 8, in call' for file in files]
    return [f"{process} Traceback (most recent call last):", *frames, f"{process} {error}"]


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        (("/v/vllm/v1/engine/core.py", "/v/vllm/v1/core/sched/scheduler.py"), "fault-in-scheduler"),
        (
            ("/v/vllm/v1/worker/r.py", "/v/vllm/v1/spec_decode/eagle.py", "/u/torch/x.py"),
            "fault-in-speculation",
        ),
        (("/v/vllm/v1/worker/r.py", "/v/vllm_ascend/ops/moe.py"), "fault-in-plugin"),
        (
            ("/v/vllm/v1/worker/r.py", "/v/vllm/model_executor/models/m.py", "/u/torch/_ops.py"),
            "fault-in-model",
        ),
        (
            ("/v/vllm/v1/core/sched/scheduler.py", "/v/vllm/v1/structured_output/r.py"),
            "fault-in-structured-output",
        ),
        (("/v/vllm/v1/worker/r.py",), "fault-in-runner"),
    ],
)
def test_the_innermost_part_is_named(files: tuple[str, ...], cause: str) -> None:
    """With the error's class and the file, and never as certain."""
    found = diagnose(trace(*files, error="ZeroDivisionError: division by zero"))

    assert (found.sure, found.cause) == (Sure.LIKELY, cause)
    assert "ZeroDivisionError in " in found.means
    assert "division by zero" in found.quoted[0][1]


def test_what_it_was_doing_is_told() -> None:
    """A start that had not come to its end, or a server that ran."""
    fault = trace("/v/vllm/v1/core/sched/scheduler.py", error="AssertionError")
    begun = "(APIServer pid=3) INFO 11-27 20:49:01 [api_server.py:1] vLLM API server version 0.30.0"
    started = "(APIServer pid=3) INFO:     Application startup complete."

    assert "after the server had started" in diagnose([begun, started, *fault]).means
    assert "while loading the program" in diagnose([begun, *fault]).means
    assert "while" not in diagnose(fault).means.partition("The log")[0]


def test_the_engine_counts_before_a_request() -> None:
    """The front end's error may be about one request only."""
    request = trace("/v/vllm/entrypoints/x.py", error="ZeroDivisionError: x", process=FRONT)
    fault = trace("/v/vllm/v1/core/sched/scheduler.py", error="AssertionError")

    assert diagnose([*request, *fault]).cause == "fault-in-scheduler"


def test_a_request_that_failed_last_is_no_fault_of_a_part() -> None:
    """Of a front end that goes on."""
    started = "(APIServer pid=3) INFO:     Application startup complete."
    request = trace("/v/vllm/entrypoints/x.py", error="ZeroDivisionError: x", process=FRONT)

    assert diagnose([started, *request]).sure is Sure.UNKNOWN
    assert diagnose(request).cause == "fault-in-front-end"


@pytest.mark.parametrize(
    ("files", "error"),
    [
        (("/v/vllm/v1/worker/r.py", "/usr/lib/python3.12/shutil.py"), "KeyError: 'x'"),
        (("/v/vllm/v1/worker/r.py", "/usr/lib/python3.12/json/decoder.py"), "ValueError: of a file"),
        (("/v/vllm/v1/worker/r.py",), "OSError: [Errno 5] Input/output error"),
        (
            ("/v/vllm/v1/executor/x.py",),
            "RuntimeError: Engine core initialization failed. See root cause above.",
        ),
        (("/h/program.py",), "ZeroDivisionError: division by zero"),
    ],
)
def test_no_part_is_named_for_what_lies_outside(files: tuple[str, ...], error: str) -> None:
    """The machine, a file, another process, somebody's own program."""
    found = diagnose(trace(*files, error=error))

    assert (found.sure, found.cause) == (Sure.UNKNOWN, "")
    assert found.quoted


def test_a_known_reason_is_told_before_the_part() -> None:
    """Where it broke is the least that is said."""
    found = diagnose(trace("/v/vllm/v1/core/sched/scheduler.py", error="RuntimeError: CUDA out of memory"))

    assert found.cause == "cuda-out-of-memory"


def test_only_wrappers_ask_for_the_whole_log() -> None:
    """The reason stands before them."""
    error = "RuntimeError: Engine core initialization failed. See root cause above."
    found = diagnose(trace("/v/vllm/v1/engine/utils.py", error=error, process=FRONT))

    assert found.sure is Sure.UNKNOWN
    assert "not why" in found.means
    assert "whole log" in found.tries[0]


def test_the_table() -> None:
    """Every row names itself, a part, and a next step."""
    for area in areas():
        assert re.fullmatch(r"fault-in-[a-z-]+", area.cause.id)
        assert area.part
        assert area.cause.tries
        assert area.cause.source


def test_a_refusal_is_no_fault_of_who_wrote_it() -> None:
    """It says its reason itself, and that is quoted; one of a running server, or a bare one, is a fault."""
    refusal = "ValueError: tiered caches are required to have two levels"
    begin = ["(APIServer pid=3) INFO:     Application startup complete."]

    refused = diagnose(trace("/v/vllm/v1/worker/r.py", error=refusal))
    assert (refused.sure, refused.cause) == (Sure.LIKELY, "settings-refused")
    assert refusal in refused.quoted[0][1]
    assert diagnose([*begin, *trace("/v/vllm/v1/worker/r.py", error=refusal)]).cause == "fault-in-runner"
    assert diagnose(trace("/v/vllm/v1/worker/r.py", error="ValueError: 3")).cause == "fault-in-runner"


ROUTED = "/v/site-packages/fastapi/routing.py"


def test_a_request_is_no_fault_of_the_start() -> None:
    """Who hands requests on has started, whatever the log shows; an engine in that process is no request."""
    assert diagnose(trace(ROUTED, "/v/vllm/multimodal/video.py", error="KeyError: 3")).sure is Sure.UNKNOWN
    assert diagnose(trace("/v/vllm/multimodal/video.py", error="KeyError: 3")).cause == "fault-in-multimodal"
    model = trace(ROUTED, "/v/vllm/model_executor/models/x.py", error="KeyError: 3")
    assert diagnose(model).cause == "fault-in-model"


def test_the_rank_whose_frames_tell_most() -> None:
    """Of the same error in several processes."""
    bare = trace(error="KeyError: 3", process="(Worker_TP0 pid=5)")
    whole = trace("/v/vllm/v1/core/sched/scheduler.py", error="KeyError: 3", process="(Worker_TP1 pid=6)")

    assert diagnose([*bare, *whole]).cause == "fault-in-scheduler"


def test_code_that_a_compiler_wrote() -> None:
    """Its file is nobody's library."""
    path = "/root/.cache/vllm/torch_compile_cache/ea2d/rank_1_0/inductor_cache/7a/c7a.py"

    assert diagnose(trace(path, error="ValueError: too many values")).cause == "fault-in-compilation"


def test_a_program_around_vllm_refuses() -> None:
    """Its sentence is the reason; one of a library that vLLM called is not."""
    refusal = "ValueError: this trainer is not compatible with device maps"
    trainer, library = "/v/site-packages/swift/args.py", "/v/site-packages/flashinfer/jit.py"

    assert diagnose(trace(trainer, error=refusal)).cause == "settings-refused"
    assert diagnose(trace("/v/vllm/v1/worker/r.py", library, error=refusal)).cause == "fault-in-library"


def test_who_died_first() -> None:
    """What the others say of it afterwards follows."""
    died = "(EngineCore pid=7) ERROR 11-27 20:50:01 [x.py:9] Worker proc VllmWorker-0 died unexpectedly."
    complains = "2026:09:04-19:19:08:(  192) |CCL_ERROR| internal_kvs_server.hpp:70 put: Broken pipe"

    assert diagnose([died, complains]).cause == "worker-killed"
    assert diagnose([complains, died]).cause == "nccl-failed"
