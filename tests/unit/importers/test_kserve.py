"""An InferenceService beside the ServingRuntime that it names, and servers within one shell."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from pytest_vllm.profile.importers import ImportProblem, ImportResult, imported

RUNTIME: dict[str, Any] = {
    "apiVersion": "serving.kserve.io/v1alpha1",
    "kind": "ServingRuntime",
    "metadata": {"name": "plain"},
    "spec": {
        "supportedModelFormats": [{"name": "vLLM"}],
        "containers": [
            {
                "name": "kserve-container",
                "image": "vllm/vllm-openai:v0.11.0",
                "args": ["--model=/mnt/models", "--served-model-name={{.Name}}", "--max-model-len=2048"],
                "env": [{"name": "HF_HOME", "value": "/one"}, {"name": "KEPT", "value": "yes"}],
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
            }
        ],
    },
}


def read(model: dict[str, Any], *runtimes: dict[str, Any], **predictor: Any) -> ImportResult:
    """What comes of a service over runtimes."""
    form = {"modelFormat": {"name": "vLLM"}}
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "granite"},
        "spec": {"predictor": {"model": form | model, **predictor}},
    }
    return imported(yaml.safe_dump_all([*(runtimes or (RUNTIME,)), service]))


def test_arguments_are_appended_and_the_name_is_filled_in() -> None:
    """The service's arguments come last, and so they count; the name is the service's."""
    found = read({"runtime": "plain", "args": ["--max-model-len=8192", "--enable-lora"]})
    server = found.profile.server
    assert server.model == "/mnt/models"
    assert server.args["max-model-len"] == 8192
    assert server.args["enable-lora"] is True
    assert "granite" in str(server.served_model_name)
    assert any("--max-model-len is given twice" in note for note in found.notes)


def test_variables_and_resources_win_by_name() -> None:
    """A variable and a resource of the service replace the runtime's; others stay."""
    found = read(
        {
            "env": [{"name": "HF_HOME", "value": "/two"}],
            "resources": {"limits": {"nvidia.com/gpu": "4"}},
        },
        minReplicas=2,
        nodeSelector={"nvidia.com/gpu.product": "NVIDIA-L40S"},
    )
    server = found.profile.server
    assert server.env == {"HF_HOME": "/two", "KEPT": "yes"}
    assert server.gpus == 4
    assert found.profile.hardware is not None
    assert any("gpu of the runtime does not count" in note for note in found.notes)


def test_a_version_of_the_runtime_is_the_tag() -> None:
    """`runtimeVersion` replaces the tag of the runtime's image."""
    assert read({"runtimeVersion": "v0.12.0"}).profile.server.image == "vllm/vllm-openai:v0.12.0"


def test_where_the_model_lies_is_noted() -> None:
    """What KServe would download is no volume of the profile, and that is said."""
    assert any("pvc://a/b" in note for note in read({"storageUri": "pvc://a/b"}).notes)
    assert any("storage" in note for note in read({"storage": {"key": "a", "path": "b"}}).notes)


def test_another_runtime_is_not_taken() -> None:
    """A service that names a runtime of another file is not laid over this one."""
    found = read({"runtime": "elsewhere", "args": ["--max-model-len=8192"]})
    assert found.profile.server.args["max-model-len"] == 2048


SHELL = {
    "services": {
        "llm": {
            "image": "vllm/vllm-openai:v0.11.0",
            "entrypoint": ["bash", "-c"],
            "command": ["vllm serve org/big --port 8001 &\nvllm serve --model org/small --port 8002 &\nwait"],
        },
        "cache": {"image": "redis:7"},
    }
}


@pytest.mark.parametrize(("wanted", "model"), [("llm/1", "org/big"), ("llm/2", "org/small")])
def test_a_server_within_a_shell_is_chosen(wanted: str, model: str) -> None:
    """Both are named; either is read, and the other one is noted."""
    text = yaml.safe_dump(SHELL)
    with pytest.raises(ImportProblem, match=r"2 servers.*llm/1.*org/big.*llm/2.*org/small.*--vllm-service"):
        imported(text)
    found = imported(text, service=wanted)
    assert found.profile.server.model == model
    (other,) = {"org/big", "org/small"} - {model}
    assert any(other in note for note in found.notes)


@pytest.mark.parametrize("wanted", ["llm/3", "cache/1", "none"])
def test_a_server_that_is_not_there_is_refused(wanted: str) -> None:
    """A name that nothing has is no reason to take another."""
    with pytest.raises(ImportProblem, match=wanted):
        imported(yaml.safe_dump(SHELL), service=wanted)


def test_a_unit_with_a_shell_is_asked_too() -> None:
    """`--service` reaches the shell of ExecStart."""
    unit = "[Service]\nExecStart=/bin/bash -c 'vllm serve org/a & vllm serve org/b --port 8001'\n"
    assert imported(unit, service="2").profile.server.model == "org/b"
    with pytest.raises(ImportProblem, match="nothing"):
        imported("[Service]\nExecStart=/usr/bin/vllm serve org/a\n", service="nothing")
