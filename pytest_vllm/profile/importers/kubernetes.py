"""Kubernetes' family, by what is inside: any object that holds a pod; several documents to a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.account import Account
from pytest_vllm.profile.importers.askers import of_pod
from pytest_vllm.profile.importers.beside import beside
from pytest_vllm.profile.importers.deadlines import of_probes
from pytest_vllm.profile.importers.draft import Draft
from pytest_vllm.profile.importers.kserve import merged
from pytest_vllm.profile.importers.pick import Candidate, parted, pick
from pytest_vllm.profile.importers.podcontainer import ContainerReader
from pytest_vllm.profile.importers.podscripts import read_scripts
from pytest_vllm.profile.importers.podspecs import labels, places, runs_vllm, started
from pytest_vllm.profile.importers.yamlnodes import documents

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.podspecs import Place
    from pytest_vllm.profile.importers.yamlnodes import Node

#: Kinds that start vLLM without a container of their own that says how: kind -> what to do instead.
ELSEWHERE = {
    "InferenceService": (
        "the container comes from a ServingRuntime: put its manifest into the same file, or import it alone"
    ),
    "LLMInferenceService": (
        "the container comes from the cluster's LLMInferenceServiceConfig: import the Deployment it makes: "
        "kubectl get deployment NAME -o yaml | pytest --vllm-from=-"
    ),
    "LLMInferenceServiceConfig": (
        "it is a part of an LLMInferenceService: import the Deployment that this makes: "
        "kubectl get deployment NAME -o yaml | pytest --vllm-from=-"
    ),
    "RayService": "Ray Serve starts vLLM inside of its own program: give the vllm serve line it stands for",
    "RayCluster": "its containers start Ray only: give the vllm serve line that is submitted to it",
    "RayJob": "its containers start Ray only: give the vllm serve line that is submitted to it",
    "Model": "KubeAI makes the pod: kubectl get pod NAME -o yaml | pytest --vllm-from=-",
    "Workspace": "KAITO makes the pod: kubectl get deployment NAME -o yaml | pytest --vllm-from=-",
    "DynamoGraphDeployment": "Dynamo's workers are not `vllm serve`: give the line that the gate is to start",
    "Kustomization": "render it: kubectl kustomize . | pytest --vllm-from=-",
    "HelmRelease": "render its chart: helm template … | pytest --vllm-from=-",
    "HelmChart": "render its chart: helm template … | pytest --vllm-from=-",
    "Application": "render what it deploys: argocd app manifests NAME | pytest --vllm-from=-",
}


_TEMPLATE = re.compile(r"\$\{[A-Za-z_]\w*[^{}]*\}|\A\$[A-Za-z_]\w*\Z")
#: Where KServe's storage initializer puts the model.
_STORED = "/mnt/models"
#: What a RoleBasedGroup tells each of its pods: how many they are together.
_GROUP = "RBG_GROUP_SIZE"
#: Kinds that are read, and that are a part of what is started.
_PARTS = {
    "LLMInferenceServiceConfig": "what those add (GPUs, probes, the model) is not in it",
    "BackendRuntime": "the model, the GPUs and the arguments come from llmaz' Playground or Service",
}


def read_kubernetes(origin: Origin, service: str | None) -> Draft:
    """The vLLM container of a manifest. Raises ImportProblem for none, and for a choice nobody made."""
    laid = merged(documents(origin))
    texts = laid.documents
    every = [place for document in texts for place in places(document)]
    said = read_scripts(every, texts)
    found = [place for place in every if runs_vllm(place)]
    others = [place for place in every if not runs_vllm(place)]
    if not found:
        _nowhere(origin, texts, others)
    names = labels(found)
    candidates = [Candidate(name, one.node.line) for name, one in zip(names, found, strict=True)]
    starts = {one.node.get("name").text: _instead(one) for one in others}
    wanted, inner = parted(names, service, starts)
    at = pick(origin, candidates, wanted, "container", starts)
    chosen = found[at]
    _commanded(origin, chosen)
    draft = Draft(origin, "docker", "kubernetes")
    if chosen.document.get("kind").text in _PARTS:
        draft.note(
            chosen.document.line, f"it is laid over others: {_PARTS[chosen.document.get('kind').text]}"
        )
    draft.within, draft.wanted = names[at], inner
    chosen_line = chosen.node.get("command").line
    for line, text in (*laid.notes, *[one for one in said if one[0] == chosen_line]):
        draft.note(line, text)
    _read(draft, chosen, texts)
    for place in every:
        if place is not chosen:
            line = place.pod.line or place.node.line
            draft.lost(line, f"the container {place.node.get('name').text}".rstrip())
    return draft


def _commanded(origin: Origin, chosen: Place) -> None:
    """Refuse a container whose command, and so its model, the operator of its kind puts in."""
    kind = chosen.document.get("kind").text
    own = any(chosen.node.get(key) for key in ("command", "args"))
    if kind == "LLMInferenceService" and not own:
        what = "the container has no command of its own"
        raise origin.problem(chosen.node.line, what, ELSEWHERE[kind])


def _instead(place: Place) -> str:
    """What a container runs that does not run vLLM: its command, or its image."""
    image = place.node.get("image").text
    return started(place) or (f"image {image}" if image else "")


def _nowhere(origin: Origin, texts: list[Node], others: list[Place]) -> None:
    """Why nothing here starts vLLM, where the kind of an object tells. Raises ImportProblem."""
    for document in texts:
        kind = document.get("kind").text
        if kind == "InferenceService" and places(document):
            continue  # it has its container, which runs something else
        if kind in ELSEWHERE and (
            not kind.endswith("Service") or not any(map(started, others)) or kind[:3] == "Ray"
        ):
            named = document.get("spec", "predictor", "model", "runtime").text
            what = f"no container of this {kind} runs vLLM" + (f"; its runtime is {named}" if named else "")
            fix = ELSEWHERE[kind]
            if kind == "Model" and "kubeai" not in document.get("apiVersion").text:
                fix = "its operator makes the pod: kubectl get pod NAME -o yaml | pytest --vllm-from=-"
            raise origin.problem(document.line, what, fix)
    kinds = ", ".join(dict.fromkeys(one.get("kind").text for one in texts if one.get("kind").text))
    if not others and kinds:
        fix = "name the manifest of the pods: kubectl get deployment NAME -o yaml | pytest --vllm-from=-"
        raise origin.problem(0, f"no pod is described here ({kinds})", fix)


def _read(draft: Draft, chosen: Place, texts: list[Node]) -> None:
    account = Account()
    owner = chosen.owner
    draft.deployment["name"] = owner.get("metadata", "name").text or chosen.node.get("name").text
    replicas = chosen.replicas
    if replicas.text.isdigit() and int(replicas.text) > 0:
        draft.deployment["replicas"] = int(replicas.text)
        account.read(replicas)
    ContainerReader(draft, chosen, account, texts).read()
    if _of_kserve(chosen) and not any(f":{_STORED}" in one for one in draft.volumes):
        draft.deployment["mounts"] = [*draft.deployment.get("mounts", []), _STORED]
    _of_template(draft)
    of_pod(draft, chosen, texts)
    of_probes(draft, chosen)
    _several_machines(draft, chosen, account)
    account.read(chosen.node, chosen.pod.get("containers"))
    for part in (chosen.pod, chosen.document):
        for place in places(part):
            account.read(place.node)
        for path, node in account.left(part):
            beside(draft.origin, chosen, path, node)
            draft.lost(node.line, path)
        account.read(part)
    for document in texts:
        if document is not chosen.document and not account.took(document):
            kind, name = document.get("kind").text, document.get("metadata", "name").text
            draft.lost(document.line, f"{kind or 'a document'} {name}".strip())


def _of_template(draft: Draft) -> None:
    """Refuse what a template fills in before a cluster gets it: `${NAME}` means nothing to a cluster."""
    texts: list[tuple[tuple[str, ...], object]] = [
        (("server", key), draft.server.get(key)) for key in ("image", "model")
    ]
    texts += [(("server", "args", key), value) for key, value in draft.args.items()]
    for path, value in texts:
        if isinstance(value, str) and (found := _TEMPLATE.search(value)):
            what = f"{path[-1]} is {value}: a template fills {found[0]} in, and a cluster does not"
            fix = "render it: envsubst < FILE | pytest --vllm-from=-"
            raise draft.origin.problem(draft.line_of(*path), what, fix)


def _of_kserve(chosen: Place) -> bool:
    """Whether KServe puts the model of its storageUri into the container."""
    owner = chosen.owner.get("apiVersion").text or chosen.document.get("apiVersion").text
    return owner.startswith("serving.kserve.io/")


def _several_machines(draft: Draft, chosen: Place, account: Account) -> None:
    """A server over several pods: what is booted is one of them."""
    for table in chosen.above:
        size, workers = table.get("size"), table.get("workerGroupSpecs").items
        count = int(size.text) if size.text.isdigit() and table.get("workerTemplate") else 1
        if "headGroupSpec" in chosen.path:
            asked = [one.get("replicas").text or "1" for one in workers]
            count += sum(int(one) for one in asked if one.isdigit())
        if (roles := table.get("roles").items) and _GROUP in draft.origin.text:
            asked = [one.get("replicas").text or "1" for one in roles]
            count = sum(int(one) for one in asked if one.isdigit())
        if count > 1:
            account.read(size)
            draft.deployment["machines"] = count
            what = f"one server over {count} pods: the profile has this one's command alone"
            draft.note(size.line or table.line, what)
