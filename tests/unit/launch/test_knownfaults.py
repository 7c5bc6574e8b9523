"""A log names the known faults of its own version."""

from __future__ import annotations

import pytest

from pytest_vllm.launch.diagnose_command import rendered
from pytest_vllm.launch.diagnosis import diagnose
from pytest_vllm.launch.knownfaults import known_in, version_in

DIED = "(APIServer pid=1) ERROR 06-01 10:00:00 [launcher.py:1] RustFrontend died with exit code 2"


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("INFO 06-01 10:00:00 [api_server.py:1] vLLM API server version 0.22.0", "0.22.0"),
        ("(APIServer pid=1) INFO 06-01 10:00:00 [utils.py:1]   █▄█▀ █     █  version 0.32.0", "0.32.0"),
        ("INFO [core.py:1] Initializing a V1 LLM engine (v0.20.2) with config: model='/m'", "0.20.2"),
        ("INFO nothing of the kind", ""),
    ],
)
def test_the_version_of_a_log(line: str, version: str) -> None:
    """From whichever line names it."""
    assert version_in(["first", line]) == version


def test_a_fault_is_named_once_in_its_version() -> None:
    """Not in another, and not where the log tells no version."""
    told = "vLLM API server version {}"

    assert [one.id for one in known_in([told.format("0.22.0"), DIED, DIED])] == ["rust-unknown-flag"]
    assert known_in([told.format("0.30.0"), DIED]) == ()
    assert known_in([DIED]) == ()


def test_a_diagnosis_shows_it() -> None:
    """With thread and way round, for people and as JSON."""
    found = diagnose(["vLLM API server version 0.22.0", DIED])
    text = "\n".join(rendered(found))

    assert "known fault: rust-unknown-flag (https://github.com/vllm-project/vllm/issues/44280)" in text
    assert "leave out the flag that its own message names" in text
    assert found.plain()["known"][0]["id"] == "rust-unknown-flag"
