"""Whose code raised an error, by its frames; and what is said of a library that did."""

from __future__ import annotations

import pytest

from pytest_vllm.launch.diagnosis import Sure, diagnose
from pytest_vllm.launch.raiser import PLUGIN, PYTHON, VLLM, located, raiser
from tests.unit.launch.test_areas import trace

PACKAGES = "/opt/vllm_env/lib/python3.12/site-packages"


@pytest.mark.parametrize(
    ("path", "short"),
    [
        (f"{PACKAGES}/vllm/v1/engine/core.py", "/site-packages/vllm/v1/engine/core.py"),
        (f"{PACKAGES}/vllm-0.9.egg/vllm/config.py", "/site-packages/vllm/config.py"),
        ("/app/vllm/vllm/v1/worker/gpu_worker.py", "/vllm/v1/worker/gpu_worker.py"),
        ("E:\\v\\Lib\\site-packages\\vllm\\envs.py", "/site-packages/vllm/envs.py"),
        ("/src/server/vllm/handler.py", "/src/server/vllm/handler.py"),
    ],
)
def test_where_a_file_lies(path: str, short: str) -> None:
    """An environment may be named after a plugin, a program's folder after vLLM."""
    assert located(path) == short


@pytest.mark.parametrize(
    ("files", "who"),
    [
        (("vllm/v1/worker/w.py", "torch/_ops.py", "torch/nn/modules/module.py"), VLLM),
        (("vllm/v1/worker/w.py", "flashinfer/decode.py"), "flashinfer"),
        (("vllm/v1/worker/w.py", "vllm_ascend/ops/moe.py"), PLUGIN),
        (("vllm/v1/worker/w.py", "server/vllm/core.py"), "server"),
        (("torch/nn/modules/module.py",), ""),
    ],
)
def test_who_raised(files: tuple[str, ...], who: str) -> None:
    """What only hands on a call is passed over."""
    assert raiser([f"{located(f'{PACKAGES}/{file}')}:call" for file in files]) == who


def test_python_itself() -> None:
    """Where nothing but its own library is in a traceback."""
    assert raiser(["/usr/lib/python3.12/queue.py:get"]) == PYTHON
    assert raiser([]) == ""


@pytest.mark.parametrize(
    ("files", "cause", "words"),
    [
        (("vllm/v1/attention/backends/x.py", "flashinfer/decode.py"), "fault-in-library", "flashinfer"),
        (("vllm/v1/sample/sampler.py", "triton/runtime/jit.py"), "fault-in-library", "triton"),
        (("vllm/v1/attention/backends/x.py", "torch/_ops.py"), "fault-in-attention", "attention"),
        (("vllm/v1/structured_output/x.py", "xgrammar/compiler.py"), "fault-in-structured-output", "x"),
        (("vllm/v1/core/sched/scheduler.py",), "fault-in-scheduler", "scheduler"),
    ],
)
def test_a_library_is_not_blamed_on_its_caller(files: tuple[str, ...], cause: str, words: str) -> None:
    """Its name and the part that called it are reported; a library that is such a part counts as that."""
    found = diagnose(trace(*(f"{PACKAGES}/{file}" for file in files), error="ZeroDivisionError: x"))

    assert (found.sure, found.cause) == (Sure.LIKELY, cause)
    assert words in found.means


def test_code_of_your_own() -> None:
    """A processor of logits that somebody else wrote."""
    own = trace(f"{PACKAGES}/vllm/v1/sample/logits.py", "/app/mine.py", error="ZeroDivisionError: x")
    found = diagnose(own)

    assert found.cause == "fault-in-library"
    assert "not vLLM's" in found.means
    assert "sampling" in found.means


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        (("vllm/executor/cpu_executor.py", "vllm/worker/worker_base.py"), "fault-in-runner"),
        (("vllm/v1/worker/w.py", "vllm_other/runner.py", "torch/nn/modules/module.py"), "parts-do-not-fit"),
        (("server/start.py",), "parts-do-not-fit"),
    ],
)
def test_versions_that_do_not_fit(files: tuple[str, ...], cause: str) -> None:
    """An unknown argument is a mismatch between two packages, and a fault of its own inside of vLLM."""
    error = "TypeError: Worker.__init__() got an unexpected keyword argument 'kv_cache_dtype'"

    assert diagnose(trace(*(f"{PACKAGES}/{file}" for file in files), error=error)).cause == cause


def test_another_rank_knows_better() -> None:
    """A complaint about the network is often logged before the traceback of the rank that broke it."""
    lines = [
        "(Worker_TP1 pid=71) ERROR 11-27 20:50:01 [x.py:9] torch.distributed.DistBackendError: NCCL error: x",
        '(Worker_TP0 pid=70) ERROR 11-27 20:50:02 [x.py:9]   File "/v/vllm/v1/w.py", line 1, in profile_run',
        "(Worker_TP0 pid=70) ERROR 11-27 20:50:02 [x.py:9] torch.OutOfMemoryError: CUDA out of memory. Tried",
    ]

    assert diagnose(lines).cause == "memory-at-profiling"
    assert diagnose(lines[:1]).cause == "nccl-failed"
