"""What a YAML or JSON text is, by its keys."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.facts import canonical
from pytest_vllm.profile.importers.origin import ImportProblem
from pytest_vllm.profile.importers.vllmline import flag_of
from pytest_vllm.profile.importers.yamlnodes import Node, documents

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.origin import Origin

#: Kind -> keys that it has at its top, all of one of the groups; the first that fits counts.
_TOP: tuple[tuple[str, tuple[frozenset[str], ...]], ...] = (
    ("openapi", (frozenset({"openapi", "paths"}), frozenset({"swagger", "paths"}))),
    ("kubernetes", (frozenset({"apiVersion", "kind"}),)),
    ("chart", (frozenset({"apiVersion", "name", "version"}),)),
    ("kustomization", (frozenset({"resources", "patches"}), frozenset({"resources", "images"}))),
    ("cloudformation", (frozenset({"Resources", "AWSTemplateFormatVersion"}),)),
    ("taskfile", (frozenset({"version", "tasks"}),)),
    ("nomad", (frozenset({"Job"}),)),
    ("apptainer-compose", (frozenset({"version", "instances"}),)),
    ("prometheus", (frozenset({"scrape_configs"}),)),
    ("ecs", (frozenset({"containerDefinitions"}),)),
    ("sagemaker", (frozenset({"PrimaryContainer"}), frozenset({"ProductionVariants"}))),
    ("vertex", (frozenset({"containerSpec"}), frozenset({"deployedModels"}))),
    ("terraform-json", (frozenset({"resource"}), frozenset({"terraform"}))),
    ("devcontainer", (frozenset({"image", "runArgs"}), frozenset({"image", "postStartCommand"}))),
    ("pm2", (frozenset({"apps"}),)),
    ("runpod", (frozenset({"imageName"}), frozenset({"gpuTypeId"}), frozenset({"gpuTypeIds"}))),
    (
        "bento",
        (
            frozenset({"service", "include"}),
            frozenset({"service", "python"}),
            frozenset({"service", "docker"}),
        ),
    ),
    ("azure-ml", (frozenset({"endpoint_name"}), frozenset({"instance_type", "environment"}))),
    ("litellm", (frozenset({"model_list"}),)),
    ("truss", (frozenset({"docker_server"}), frozenset({"model_metadata"}))),
    ("recipe", (frozenset({"meta", "model", "variants"}),)),
    (
        "spark-recipe",
        (
            frozenset({"recipe_version", "command"}),
            frozenset({"recipe_version", "container"}),
            frozenset({"container", "command", "defaults"}),
            frozenset({"model", "runtime", "container"}),
        ),
    ),
    ("helmfile", (frozenset({"releases"}), frozenset({"helmfiles"}))),
    ("process-compose", (frozenset({"processes"}),)),
    ("ray-serve", (frozenset({"applications"}),)),
    ("ray-cluster", (frozenset({"cluster_name", "provider"}),)),
    ("cloud-init", (frozenset({"runcmd"}),)),
    (
        "workflow",
        (
            frozenset({"on", "jobs"}),
            frozenset({"suite", "tests"}),
            frozenset({"jobs", "workflows"}),
            frozenset({"stages"}),
            frozenset({"steps"}),
            frozenset({"pipelines"}),
        ),
    ),
    ("dstack", (frozenset({"type", "commands"}), frozenset({"type", "ide"}))),
    (
        "skypilot",
        (
            frozenset({"resources", "run"}),
            frozenset({"setup", "run"}),
            frozenset({"service", "run"}),
            frozenset({"resources", "service"}),
        ),
    ),
    ("model-config", (frozenset({"architectures", "model_type"}),)),
    ("notebook", (frozenset({"cells", "nbformat"}),)),
    (
        "values",
        (
            frozenset({"image", "resources"}),
            frozenset({"servingEngineSpec"}),
            frozenset({"replicaCount"}),
            frozenset({"resources", "nodeSelector"}),
            frozenset({"resources", "tolerations"}),
            frozenset({"image", "ingress"}),
            frozenset({"modelArtifacts"}),
            frozenset({"decode", "prefill"}),
        ),
    ),
)


#: What charts call their values, by custom: `values.yaml`, `cpu-values-perf.yaml`.
_VALUES = re.compile(r"(?:^|[/_.-])values(?:[_.-][^/]*)?\.ya?ml$")
#: Keys of Ansible's tasks, and its modules by their whole names.
_TASKS = frozenset({"docker_container", "register", "become", "when", "notify", "ansible_facts"})
_MODULE = re.compile(r"(?:ansible|community|containers|kubernetes)\.\w+")
#: Keys of a compose file that has no service of its own.
_INCLUDING = frozenset({"include", "name", "version", "volumes", "networks", "secrets", "configs"})


def kind_of_yaml(origin: Origin) -> str:
    """A key of KINDS or of OTHERS; empty for what is not YAML, or whose keys say nothing.

    Raises ImportProblem for a table that is nested too deep or grows too large.
    """
    text = origin.text
    if not _like_yaml(origin):
        return ""
    try:
        found = documents(origin)
    except ImportProblem:
        if re.search(r"^(?:kind|apiVersion):", text, re.MULTILINE):
            return "kubernetes"
        if re.search(r"^(?:services|include):", text, re.MULTILINE):
            return "compose"
        if re.search(r"\b(?:docker|podman|nerdctl) |\bvllm serve\b|\bapi_server\b", text):
            return ""
        raise
    tables = [one for one in found if one.pairs]
    if not tables:
        return _list(found[0]) if found and isinstance(found[0].value, list) else ""
    named = _VALUES.search(origin.shown.lower()) and not any(one.get("apiVersion") for one in tables)
    return "values" if named else _table(tables, json=text.lstrip().startswith("{"))


def _like_yaml(origin: Origin) -> bool:
    start = origin.text.lstrip()
    named = origin.shown.endswith((".yaml", ".yml", ".json"))
    keys = re.search(r"^(?:- )?[\w.\"'/-]+:(?:\s|$)", origin.text, re.MULTILINE)
    return named or start.startswith(("{", "[")) or (keys is not None and not start.startswith("#!"))


def _table(tables: list[Node], *, json: bool) -> str:
    first = tables[0]
    keys = {key for key, _ in first.pairs}
    known = [key for key in keys if flag_of(canonical(key)) or key in ("model", "model_tag", "model-tag")]
    found = ""
    if any(one.get("apiVersion") and one.get("kind") for one in tables):
        found = "kubernetes"
    elif _is_compose(keys):
        found = "compose"
    elif first.get("models") and any(one.get("cmd") for _, one in first.get("models").pairs):
        found = "llama-swap"
    elif len(known) * 2 <= len(keys) and any(_of_chart(one, 3) for one in tables):
        found = "values"
    elif len(known) * 2 <= len(keys):
        fitting = (kind for kind, groups in _TOP if any(group <= keys for group in groups))
        jobs = [one for _, one in first.pairs if one.get("script") or one.get("steps")]
        found = next(fitting, "workflow" if jobs else "")
    if {"Config", "HostConfig"} <= keys:
        found = "inspect"
    services = [one for _, one in first.pairs if _is_service(one)]
    if not found and len(known) * 2 <= len(keys) and len(services) * 2 >= len(keys):
        found = "service"
    return found or ("json" if json and not known else "config")


def _is_compose(keys: set[str]) -> bool:
    including = "include" in keys and keys <= _INCLUDING
    return including or ("services" in keys and not {"resources", "decode"} & keys)


def _of_chart(node: Node, deep: int) -> bool:
    """Whether an image is written down as charts do it, in parts: repository and tag."""
    keys = {key for key, _ in node.pairs}
    parted = "repository" in keys and bool(keys & {"tag", "pullPolicy"})
    return parted or (deep > 0 and any(_of_chart(one, deep - 1) for _, one in node.pairs))


def _is_service(node: Node) -> bool:
    """A table that says of a container what compose does."""
    keys = {key for key, _ in node.pairs}
    return "image" in keys and bool(keys & {"command", "ports", "environment", "volumes", "container_name"})


def _list(found: Node) -> str:
    keys = {key for one in found.items for key, _ in one.pairs}
    if "HostConfig" in keys:
        return "inspect"
    if (
        "hosts" in keys
        or {"name", "tasks"} <= keys
        or _TASKS & keys
        or any(_MODULE.match(key) for key in keys)
    ):
        return "ansible"
    return "list"
