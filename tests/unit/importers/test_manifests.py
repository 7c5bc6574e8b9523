"""Kubernetes' family: pods are found in any object, and every key of it is read, noted or irrelevant."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_vllm.profile.importers import ImportProblem, imported
from pytest_vllm.profile.importers.account import IRRELEVANT, Account
from pytest_vllm.profile.importers.gpunames import hardware_named
from pytest_vllm.profile.importers.origin import Origin
from pytest_vllm.profile.importers.yamlnodes import Node, documents
from pytest_vllm.profile.model import Secret
from pytest_vllm.profile.write import to_toml

HERE = Path()


CONTAINER = {"name": "main", "image": "vllm/vllm-openai:v0.32.0", "args": ["--model", "org/a"]}


def pod(**more: Any) -> dict[str, Any]:
    """A pod spec with one vLLM container."""
    return {"containers": [CONTAINER | more]}


def manifest(kind: str, spec: dict[str, Any]) -> str:
    """An object of a kind."""
    return yaml.safe_dump({"apiVersion": "x/v1", "kind": kind, "metadata": {"name": "it"}, "spec": spec})


OBJECTS = {
    "Pod": pod(),
    "Deployment": {"template": {"spec": pod()}},
    "CronJob": {"jobTemplate": {"spec": {"template": {"spec": pod()}}}},
    "LeaderWorkerSet": {"leaderWorkerTemplate": {"leaderTemplate": {"spec": pod()}}},
    "ServingRuntime": pod(),
    "InferenceService": {"predictor": pod()},
    "LLMInferenceService": {"template": pod()},
    "RayCluster": {"headGroupSpec": {"template": {"spec": pod(command=["vllm", "serve"], args=["org/a"])}}},
    "StormService": {"template": {"spec": {"roles": [{"name": "d", "template": {"spec": pod()}}]}}},
    "Service": {"template": {"spec": pod()}},
    "NobodyKnowsIt": {"deep": [{"down": {"mainContainer": CONTAINER}}]},
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_a_pod_is_found_in_any_object(kind: str) -> None:
    """By what is inside, not by the kind's name."""
    found = imported(manifest(kind, OBJECTS[kind]), environ={}).profile

    assert (found.server.model, found.server.image, found.name) == ("org/a", CONTAINER["image"], "it")


def test_several_servers_are_a_choice_by_role() -> None:
    """One object, two roles."""
    roles = [{"name": name, "template": {"spec": pod()}} for name in ("prefill", "decode")]
    text = manifest("StormService", {"roles": roles})

    with pytest.raises(ImportProblem, match=r"2 containers run vLLM: it/prefill .*, it/decode"):
        imported(text, environ={})
    assert imported(text, service="it/decode", environ={}).profile.server.model == "org/a"


def test_a_container_that_runs_another_program_is_no_server() -> None:
    """Neither a worker of Ray in vLLM's image, nor a pod whose command nothing here knows."""
    for command in (["ray", "start", "--address=x"], ["/start.sh"], ["sh", "-c", "ray start --block"]):
        with pytest.raises(ImportProblem, match="no container runs vLLM here; there is main"):
            imported(manifest("Pod", pod(command=command, args=[])), environ={})


def test_configuration_maps_and_secrets_of_the_file() -> None:
    """Values of the one are read, of the other only the names."""
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "stringData": {"HF_TOKEN": "hf_Zz"}}
    text = "---\n".join(
        (
            manifest("Pod", pod(envFrom=[{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}])),
            yaml.safe_dump({"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"VLLM_X": "7"}}),
            yaml.safe_dump(secret),
        )
    )
    found = imported(text, environ={})

    assert found.profile.server.env == {"VLLM_X": "7", "HF_TOKEN": Secret(from_env="HF_TOKEN")}
    assert found.notes == ()


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("NVIDIA-H100-80GB-HBM3", "h100"),
        ("nvidia-h100-80gb", "h100"),
        ("NVIDIA-H100-PCIe", "h100-pcie"),
        ("nvidia-l4", "l4"),
        ("NVIDIA-L40S", "l40s"),
        ("NVIDIA-A100-SXM4-40GB", "a100-40"),
        ("NVIDIA-GeForce-RTX-4090", "rtx4090"),
        ("NVIDIA-GeForce-RTX-3090", "rtx3090"),
        ("NVIDIA-RTX-A6000", "a6000"),
        ("NVIDIA-RTX-6000-Ada-Generation", ""),
        ("NVIDIA-A10G", "a10g"),
        ("Tesla-T4", "t4"),
        ("Tesla-V100-SXM2-16GB", "v100-16"),
        ("Tesla-V100-SXM2-32GB", "v100"),
        ("Tesla-V100", ""),
        ("H20", ""),
        ("nvidia-tesla-a100", ""),
        ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", ""),
        ("nvidia-tesla-t4", "t4"),
    ],
)
def test_a_label_of_nodes_names_the_hardware(label: str, name: str) -> None:
    """A share of a GPU, and a name that fits two, are none."""
    spec = pod() | {"nodeSelector": {"nvidia.com/gpu.product": label}}
    found = imported(manifest("Pod", spec), environ={})

    assert hardware_named(label) == name
    assert (found.profile.hardware or "") == name
    assert any("nodeSelector" in note or "became hardware" in note for note in found.notes)


KEYS = st.from_regex(r"[a-z][A-Za-z]{1,9}", fullmatch=True)
TREES = st.recursive(
    st.none(),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=5,
)
PLACES = (
    "document",
    "metadata",
    "spec",
    "template",
    "pod",
    "container",
    "resources",
    "env",
    "volume",
    "mount",
    "port",
)


class Marked:
    """Makes every leaf of a tree a text of its own, so that it can be found again."""

    def __init__(self) -> None:
        """None yet."""
        self.marks: list[str] = []

    def tree(self, tree: Any) -> Any:
        """The tree with its marks."""
        if isinstance(tree, dict):
            return {key: self.tree(value) for key, value in tree.items()}
        if isinstance(tree, list):
            return [self.tree(value) for value in tree]
        self.marks.append(f"mark{len(self.marks)}e")
        return self.marks[-1]


def paths_of(node: Node, path: tuple[str, ...] = ()) -> list[tuple[str, str, int]]:
    """Path, text and line of every leaf."""
    if node.pairs:
        return [one for key, inner in node.pairs for one in paths_of(inner, (*path, key))]
    if isinstance(node.value, list):
        return [one for at, inner in enumerate(node.value) for one in paths_of(inner, (*path, str(at)))]
    return [(".".join(path), node.text, node.line)]


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(st.sampled_from(PLACES), st.dictionaries(KEYS, TREES, max_size=3), max_size=5))
def test_nothing_is_lost_in_silence(extra: dict[str, dict[str, Any]]) -> None:
    """Keys that nobody foresaw, anywhere: each leaf is in the profile, a note, or irrelevant."""
    marked = Marked()
    more = {place: marked.tree(extra.get(place, {})) for place in PLACES}
    volume = more["volume"] | {"name": "v", "hostPath": {"path": "/h"}}
    container = (
        more["container"]
        | CONTAINER
        | {
            "resources": more["resources"] | {"limits": {"nvidia.com/gpu": "1"}},
            "env": [more["env"] | {"name": "A", "value": "b"}],
            "volumeMounts": [more["mount"] | {"name": "v", "mountPath": "/m"}],
            "ports": [more["port"] | {"containerPort": 8000}],
        }
    )
    inside = more["pod"] | {"containers": [container], "volumes": [volume]}
    spec = more["spec"] | {"template": more["template"] | {"spec": inside}}
    whole = more["document"] | {
        "apiVersion": "x/v1",
        "kind": "Deployment",
        "metadata": more["metadata"] | {"name": "it"},
        "spec": spec,
    }
    text = yaml.safe_dump(whole)
    try:
        found = imported(text, environ={}, kind="kubernetes")
    except ImportProblem:
        return  # refused is not silent
    profile, (document,) = to_toml(found.profile), documents(Origin(text, "the text", HERE, {}))
    noted = [re.sub(r"^the text:\d+: ", "", note).split(" is not carried over")[0] for note in found.notes]
    for path, leaf, _ in paths_of(document):
        if not leaf.startswith("mark"):
            continue
        ends = [path.split(".", at)[-1] for at in range(path.count(".") + 1)]
        told = any(f"{end}.".startswith(f"{one}.") for end in ends for one in noted)
        irrelevant = any(re.fullmatch(one, end) for end in ends for one in IRRELEVANT)
        assert leaf in profile or told or irrelevant, (path, found.notes)


def test_the_account_misses_what_nobody_read() -> None:
    """The oracle itself: a key that is not read is left, one that is read is not."""
    (document,) = documents(Origin("a: {b: 1, c: 2}\nd: 3\n", "the text", HERE, {}))
    account = Account()
    account.read(document.get("a", "b"))

    assert [path for path, _ in account.left(document)] == ["a.c", "d"]


LIMITS = {
    "deep lists": "kind: A\napiVersion: b\nx: " + "[" * 5000,
    "deep tables": "\n".join("  " * depth + "a:" for depth in range(300)),
    "a deep JSON": '{"a":' * 5000,
    "a billion laughs": "a0: &a0 [x, x]\n"
    + "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)),
    "merges of merges": "a0: &a0 {x: 1}\n"
    + "\n".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 12)),
    "an anchor that holds itself": "services: &a {b: *a}\n",
    "a merge of itself": "services: &a\n  <<: *a\n",
    "many values": "services: [" + "1, " * 200_000 + "]",
    "a NUL": "services:\0",
}


@pytest.mark.parametrize("case", LIMITS)
def test_limits(case: str, tmp_path: Path) -> None:
    """One sentence, and no hang."""
    file = tmp_path / "a.yaml"
    file.write_text(LIMITS[case], "utf-8")

    with pytest.raises(ImportProblem) as caught:
        imported(file, environ={})

    assert len(str(caught.value).splitlines()) == 1
