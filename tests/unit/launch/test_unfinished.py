"""Tracebacks that do not end as Python ends them: cut at the raise, written below the error."""

from __future__ import annotations

from pytest_vllm.launch.diagnosis import Sure, diagnose
from pytest_vllm.launch.tracebacks import raised

FRAME = 'File "/v/site-packages/vllm/v1/worker/gpu/buffer_utils.py", line 47, in __init__'


def test_a_log_that_is_cut_at_its_raise() -> None:
    """The statement says what it raises: it is known as if Python had said it."""
    found = diagnose([FRAME, '    raise RuntimeError("UVA is not available")'])
    assert (found.cause, found.quoted[0][0]) == ("pinned-memory-off", 2)


def test_a_raise_behind_which_the_process_goes_on() -> None:
    """It was caught, or Python said what it became: the statement is no error of its own."""
    statement = '    raise RuntimeError("UVA is not available")'
    assert [one.error for one in raised([FRAME, statement, "KeyError: 'x'"])] == ["KeyError"]
    assert raised([FRAME, statement, "INFO 11-27 20:50:01 [x.py:1] Loading weights"]) == []


def test_a_raise_that_fills_its_words_in() -> None:
    """What stands in braces is not known: it is no sentence."""
    assert raised([FRAME, '    raise RuntimeError(f"no {thing} here")']) == []


def test_frames_below_an_error() -> None:
    """A person writes the error first, and below it where it was."""
    lines = [
        "RuntimeError: expected mat1 and mat2 to have the same dtype",
        "",
        "vllm/v1/worker/gpu_worker.py:519     determine_available_memory",
        "vllm/v1/worker/gpu/spec_decode/x/speculator.py:368 propose",
        "vllm/model_executor/models/llama.py:563    _project",
    ]
    found = diagnose(lines)
    assert (found.cause, found.sure, "llama.py:_project" in found.means) == (
        "fault-in-model",
        Sure.LIKELY,
        True,
    )


def test_frames_of_who_asked_a_worker() -> None:
    """They say nothing of where the worker's error was."""
    lines = [
        "RuntimeError: Worker failed with error 'something broke'",
        "vllm/v1/worker/gpu_worker.py:519     determine_available_memory",
    ]
    assert diagnose(lines).cause == ""


def test_frames_of_the_next_traceback() -> None:
    """What a traceback of its own begins is not the first error's."""
    lines = ["ValueError: x", "Traceback (most recent call last):", f"  {FRAME}"]
    assert [one.frames for one in raised(lines)] == [()]


def test_an_error_with_an_arrow() -> None:
    """`AssertionError -> EngineDeadError`: what came of it is no message."""
    lines = [
        "vllm/v1/core/sched/scheduler.py:914 in schedule",
        "    assert num_new_tokens > 0",
        "AssertionError  ->  EngineDeadError",
    ]
    found = diagnose(lines)
    assert (found.cause, "num_new_tokens > 0" in found.means) == ("fault-in-scheduler", True)


def test_a_stop_does_not_hide_what_the_start_waited_for() -> None:
    """The interrupt says that somebody lost patience, not with what."""
    waits = "INFO 05-26 18:56:23 [x.py:2] Waiting for creating a placement group of specs for 150 seconds."
    assert diagnose([waits, "KeyboardInterrupt"]).cause == "ray-resources"


def test_the_other_side_of_a_transfer() -> None:
    """NIXL's status says whether its own package, or the instance that it talks to, is meant."""
    head = "(EngineCore pid=7) ERROR 11-27 20:50:01 [core.py:9] nixl._bindings."
    started = "(APIServer pid=1) INFO:     Application startup complete."
    gone = f"{head}nixlRemoteDisconnectError: NIXL_ERR_REMOTE_DISCONNECT"
    backend = f"{head}nixlBackendError: NIXL_ERR_BACKEND"
    assert diagnose([gone]).cause == "rendezvous-failed"
    assert (found := diagnose([backend])).cause == "kv-connector-mismatch"
    assert found.sure is Sure.LIKELY
    assert diagnose([started, backend]).cause != "kv-connector-mismatch"


def test_kernels_for_other_gpus() -> None:
    """What only a worker's error quotes is the reason, not that the worker ended."""
    head = "(EngineCore pid=7) ERROR 06-01 17:32:02 [core.py:9]"
    said = (
        "Worker failed with error 'Only SM 10.x and 11.x are supported', please check the stack trace above"
    )
    lines = [
        f"{head} RuntimeError: {said}",
        f"{head} Worker proc VllmWorker-0 died unexpectedly, shutting down.",
    ]
    assert diagnose(lines).cause == "no-kernel-image"


def test_what_one_line_speaks_of() -> None:
    """One witness, which may be anybody's, is likely at most; the error itself is certain, and so are two."""
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
    said = f"we think that it may be of {error}"
    assert (diagnose([said]).cause, diagnose([said]).sure) == ("cuda-out-of-memory", Sure.LIKELY)
    assert diagnose([said, f"and the other one of {error}"]).sure is Sure.CERTAIN
    assert diagnose([error]).sure is Sure.CERTAIN


def test_an_engine_that_waited_before_it_was_ended() -> None:
    """Its last error says nothing; the minutes before it say what it waited for."""
    head = "(EngineCore pid=66)"
    waits = (
        f"{head} INFO 09-02 07:57:07 [x.py:5] No available shared memory broadcast block found in 60 seconds."
    )
    ends = f"{head} ERROR 09-02 08:10:07 [core.py:9] RuntimeError: cancelled"
    loads = f"{head} INFO 09-02 07:50:07 [x.py:1] Loading weights took 3 seconds"
    assert diagnose([waits, waits, ends]).cause == "collective-hang"
    assert diagnose([waits, ends]).cause == ""
    assert diagnose([waits, waits, *[loads] * 4, ends]).cause == ""
