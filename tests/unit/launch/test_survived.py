"""What did not end a server: an error that its start survived, a frame where its log was cut."""

from __future__ import annotations

import pytest

from pytest_vllm.launch.diagnosis import Sure, diagnose

ENGINE, AT = "(EngineCore pid=7)", "11-27 20:50:01"
PLUGIN = (
    f"{ENGINE} ERROR {AT} [__init__.py:9] Failed to load plugin ours",
    f"{ENGINE} ERROR {AT} [__init__.py:9] Traceback (most recent call last):",
    f'{ENGINE} ERROR {AT} [__init__.py:9]   File "/v/site-packages/ours/__init__.py", line 3, in register',
    f"{ENGINE} ERROR {AT} [__init__.py:9] ImportError: cannot import name 'X' from 'vllm.config'",
)
GOES_ON = f"{ENGINE} INFO {AT} [x.py:1] Starting to load model m..."
DIED = (
    f"{ENGINE} ERROR {AT} [core.py:9] Traceback (most recent call last):",
    f'{ENGINE} ERROR {AT} [core.py:9]   File "/v/site-packages/vllm/v1/worker/x.py", line 3, in load_model',
    f"{ENGINE} ERROR {AT} [core.py:9] ZeroDivisionError: division by zero",
)


def test_an_error_behind_which_the_start_went_on() -> None:
    """It is no cause when something else ended the start; alone it is the best that is known."""
    assert diagnose([*PLUGIN, GOES_ON, *DIED]).cause == "fault-in-runner"
    assert diagnose([*PLUGIN, *DIED]).cause == "plugin-other-version"
    assert diagnose([*PLUGIN, GOES_ON]).cause == "plugin-other-version"


def test_a_line_behind_which_the_start_went_on() -> None:
    """No error is raised there: what it says was got over."""
    line = f"{ENGINE} ERROR {AT} [x.py:1] NCCL error: unhandled system error, taking another network"

    assert diagnose([line, GOES_ON, *DIED]).cause == "fault-in-runner"
    assert diagnose([line, GOES_ON]).cause == "nccl-failed"


def test_an_error_that_a_future_hands_over() -> None:
    """It was raised elsewhere; alone it says nothing."""
    lines = [
        "(APIServer pid=1) Traceback (most recent call last):",
        '(APIServer pid=1)   File "/v/site-packages/vllm_omni/engine/x.py", line 3, in wait',
        '(APIServer pid=1)   File "/v/python3.12/concurrent/futures/_base.py", line 4, in __get_result',
        "(APIServer pid=1) RuntimeError: stage 2 did not come up",
    ]

    assert diagnose(lines).sure is Sure.UNKNOWN
    assert diagnose([*DIED, *lines]).cause == "fault-in-runner"


def test_another_process_that_went_on() -> None:
    """Says nothing of the one that failed."""
    other = GOES_ON.replace("pid=7", "pid=8")

    assert diagnose([*PLUGIN, other, *DIED]).cause == "plugin-other-version"


def test_a_log_that_was_cut_in_a_traceback_hangs_nowhere() -> None:
    """Whatever file the last frame names."""
    communicates = f"{ENGINE} INFO {AT} [pynccl.py:1] vLLM is using nccl==2.27"
    frame = f'{ENGINE}   File "/v/site-packages/vllm/distributed/parallel_state.py", line 3, in init'

    assert diagnose([communicates], hung=True).cause == "collective-hang"
    assert diagnose([communicates, frame, f"{ENGINE}     init_nccl()"], hung=True).sure is Sure.UNKNOWN


SERVES = '(APIServer pid=1) INFO:     10.0.0.1:4 - "POST /v1/completions HTTP/1.1" {}'
REQUEST = (
    "(APIServer pid=1) Traceback (most recent call last):",
    '(APIServer pid=1)   File "/v/site-packages/vllm/renderers/hf.py", line 3, in render',
    "(APIServer pid=1) KeyError: 'role'",
)


def test_who_answers_has_started() -> None:
    """A log whose front was cut: what the front end raised is about a request."""
    assert diagnose([*REQUEST, SERVES.format(500)]).cause == ""
    assert diagnose(REQUEST).cause == "fault-in-tokenizer"


def test_a_second_start_that_failed() -> None:
    """How far the first one came says nothing of it."""
    begin = f"(APIServer pid=1) INFO {AT} [x.py:1] vLLM API server version 0.30.0"
    started = "(APIServer pid=1) INFO:     Application startup complete."
    refused = "(APIServer pid=1) ValueError: prefix caching is not supported with this model"

    assert diagnose([begin, started, begin, refused]).phase == "loading the program"
    assert diagnose([begin, started, begin, refused]).cause == "settings-refused"


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("'_OpNamespace' '_C' object has no attribute 'weak_ref_tensor'", "build-incomplete"),
        ("No module named 'lmcache'", "kv-connector-mismatch"),
        ("name 'AllReduceFusionPass' is not defined", ""),
    ],
)
def test_what_a_wrapper_quotes_without_its_class(said: str, cause: str) -> None:
    """Python's own messages show of which class they are."""
    line = f"{ENGINE} RuntimeError: Worker failed with error '{said}', please check the stack trace above"

    assert diagnose([line]).cause == cause


def test_a_sentence_in_two_lines() -> None:
    """As a page breaks it: the first line alone says less."""
    lines = ["RuntimeError: CUDA error: CUDA driver version is", "insufficient for CUDA runtime version"]

    assert diagnose(lines).cause == "driver-too-old"
    assert diagnose(lines[:1]).cause == "device-error"


def test_a_hub_that_was_not_reached() -> None:
    """The file is missing because of that; a hub that answered is not meant."""
    missing = "OSError: Can't load the configuration of 'm/m'"
    asked = "'{}' thrown while requesting HEAD https://huggingface.co/m/m/resolve/main/config.json"

    assert (
        diagnose([asked.format("[Errno 99] Cannot assign requested address"), missing]).cause == "hub-offline"
    )
    assert diagnose([asked.format("HTTP Error 404"), missing]).cause == "model-files-missing"


def test_a_sentence_that_is_moved_in() -> None:
    """Behind a line that is long enough to have been broken; a further line of a message is none."""
    long = "ValueError: The checkpoint you are trying to load has model type `m4` but Transformers"
    other = "RuntimeError: operator torchvision::nms does not exist"

    assert diagnose([long, "            does not recognize this architecture."]).cause == "model-type-unknown"
    assert diagnose([other, "  Value error, Model architectures ['X'] failed"]).cause == "parts-do-not-fit"


def test_what_the_memory_was_for() -> None:
    """A later sentence says it, where the first one only says that it ran out."""
    lines = [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.74 GiB.",
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests.",
    ]

    assert diagnose(lines).cause == "sampler-memory"
    assert diagnose(lines[:1]).cause == "cuda-out-of-memory"


def test_a_watchdog_that_names_an_error() -> None:
    """Nothing raises it; it is one all the same."""
    line = "[E503 11:22:33.1 x.cpp:57] Process group watchdog thread terminated with exception: {}"

    assert diagnose([line.format("HIP error: out of paper")]).cause == "device-error"
    assert diagnose([line.format("std::exception")]).sure is Sure.UNKNOWN
