"""Who else holds the memory is told before the start, and unloaded only when that is asked for."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.launched.ollama import MODELS, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.launched.ollama import Ollama
    from tests.plugin.running import Gate

#: A process on this machine, as far as the gate can tell on a GPU: the simulator's program.
PROFILE = f"""
[server]
launcher = "process"
command = [{json.dumps(sys.executable)}, "-m", "pytest_vllm.sim", "serve"]
model = "sim-model"

[server.args]
max-model-len = 4096
"""
SELECT = ("--vllm-profile=ours", "--vllm-check=health.quick")
FILES = {"vllm-profiles/ours.toml": PROFILE}


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ollama]:
    with running() as server:
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{server.port}")
        yield server


def test_a_tenant_is_told_and_left_alone(gate: Gate, ollama: Ollama) -> None:
    run = gate(*SELECT, files=FILES)

    assert run.exit == 0, run.text
    assert f"ollama at http://127.0.0.1:{ollama.port} ({', '.join(MODELS)}, 2.0 GiB) holds memory" in run.text
    assert (ollama.asked, ollama.loaded) == ([], list(MODELS))


def test_with_the_option_it_is_unloaded_before_the_start(gate: Gate, ollama: Ollama) -> None:
    run = gate(*SELECT, "--vllm-evict-tenants", files=FILES)

    assert run.exit == 0, run.text
    assert ollama.loaded == []
    assert run.text.index("was unloaded") < run.text.index("vllm: boot")
