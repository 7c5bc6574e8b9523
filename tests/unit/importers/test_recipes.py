"""Recipes of spark-vllm-docker and of sparkrun: what their launchers would start."""

from __future__ import annotations

import pytest

from pytest_vllm.profile.importers import ImportProblem, imported

FIRST = 'recipe_version: "1"\nname: a\ncontainer: vllm-node\n{}command: |\n  vllm serve org/a {}\n'
SECOND = 'recipe_version: "2"\nmodel: org/a\nruntime: vllm\ncontainer: vllm-node\n{}'


def test_a_launcher_takes_the_executor_out_on_one_machine() -> None:
    """Where one is enough; several keep it."""
    alone = imported(FIRST.format("", "--distributed-executor-backend ray --seed 3"))
    both = imported(FIRST.format("cluster_only: true\n", "--distributed-executor-backend ray --seed 3"))

    assert alone.profile.server.args == {"seed": 3}
    assert any("is taken out by its launcher" in note for note in alone.notes)
    assert both.profile.server.args == {"distributed-executor-backend": "ray", "seed": 3}
    assert both.profile.deployment.machines == 2


def test_values_are_written_as_python_writes_them() -> None:
    """A truth value of YAML's gets its capital letter."""
    args = imported(
        FIRST.format("defaults: {a: true, b: 0.90}\n", "--gpu-memory-utilization {b} --revision {a}")
    )
    assert args.profile.server.args == {"gpu-memory-utilization": 0.9, "revision": "True"}


def test_what_the_launcher_gives_a_container() -> None:
    """With what the recipe says of it."""
    text = SECOND.format(
        "executor_config: {privileged: false, shm_size: 8gb, devices: [/dev/infiniband], "
        "ulimit: ['memlock=-1:-1'], network: bridge}\ncommand: vllm serve {model}\n"
    )
    server = imported(text).profile.server
    assert (server.privileged, server.shm, server.devices) == (False, "8gb", ["/dev/infiniband"])
    assert (server.gpus, server.ipc, server.ulimits) == ("all", "host", {"memlock": "-1:-1"})
    assert server.env == {"HF_HOME": "/cache/huggingface"}
    assert imported(text).profile.deployment.network is None


def test_flags_are_made_of_the_defaults() -> None:
    """Where no command is written."""
    text = SECOND.format(
        "defaults: {port: 8000, tensor_parallel: 1, trust_remote_code: true, enforce_eager: false}\n"
    )
    found = imported(text)
    assert found.profile.server.model == "org/a"
    assert found.profile.server.args == {
        "port": 8000,
        "tensor-parallel-size": 1,
        "trust-remote-code": True,
    }
    assert any("enforce_eager: false gives no flag" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SECOND.format("").replace("vllm\n", "sglang\n", 1), "a recipe for sglang, not for vLLM"),
        (FIRST.format("", "--port {port}"), "{port} is not filled in"),
        (FIRST.format("", "--hf-overrides '{\"a\": 1}'"), "a brace that stands for itself is written twice"),
        ('recipe_version: "2"\nmodel: a\ncommand: vllm serve {model}\n', "names no container"),
    ],
)
def test_what_a_recipe_does_not_say(text: str, why: str) -> None:
    """It is refused with the reason."""
    with pytest.raises(ImportProblem) as caught:
        imported(text)
    assert why in caught.value.what
