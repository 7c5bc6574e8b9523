"""Kubernetes manifests: Deployment, StatefulSet, DaemonSet, Job, Pod; several documents to a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import container
from pytest_vllm.profile.importers.draft import Draft
from pytest_vllm.profile.importers.marks import secret_mark
from pytest_vllm.profile.importers.pick import Candidate, pick
from pytest_vllm.profile.importers.shellwords import Word, resolved
from pytest_vllm.profile.importers.variables import Variables
from pytest_vllm.profile.importers.yamlnodes import NOTHING, Node, documents

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.origin import Origin

_ENV_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
_PROBES = ("readinessProbe", "livenessProbe", "startupProbe")
_READ = frozenset(
    {"name", "image", "command", "args", "env", "envFrom", "ports", "resources", "volumeMounts", *_PROBES}
)
_OF_THE_POD = (
    "initContainers",
    "nodeSelector",
    "tolerations",
    "affinity",
    "runtimeClassName",
    "securityContext",
)
_SILENT = frozenset({"imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy", "workingDir"})


def read_kubernetes(origin: Origin, service: str | None) -> Draft:
    """The vLLM container of a manifest. Raises ImportProblem for none, and for a choice nobody made."""
    found: list[tuple[str, Node, Node, Node]] = []
    others: list[str] = []
    left: list[tuple[int, str]] = []
    for document in documents(origin):
        kind, name = document.get("kind").text, document.get("metadata", "name").text
        pod = _pod(document)
        if not pod:
            left.append((document.line, f"{kind or 'a document'} {name}".strip()))
        for one in pod.get("containers").items:
            if _runs_vllm(one):
                found.append((name or one.get("name").text, one, pod, document))
            else:
                others.append(one.get("name").text)
    candidates = [Candidate(name, one.line) for name, one, _, _ in found]
    name, one, pod, document = found[pick(origin, candidates, service, "container", others)]
    draft = Draft(origin, "docker", "kubernetes")
    for line, text in left:
        draft.lost(line, text)
    for other in others:
        draft.lost(pod.line, f"the container {other}")
    draft.deployment["name"] = name
    replicas = document.get("spec", "replicas").text
    if replicas.isdigit() and int(replicas) > 0:
        draft.deployment["replicas"] = int(replicas)
    _Container(draft, one, pod).read()
    return draft


def _pod(document: Node) -> Node:
    if document.get("kind").text == "Pod":
        return document.get("spec")
    job = document.get("spec", "jobTemplate", "spec", "template", "spec")
    return job or document.get("spec", "template", "spec")


def _runs_vllm(node: Node) -> bool:
    words = [one.text for key in ("command", "args") for one in node.get(key).items]
    return container.runs_vllm(node.get("image").text, words)


class _Container:
    def __init__(self, draft: Draft, node: Node, pod: Node) -> None:
        self.draft, self.node, self.pod = draft, node, pod
        self.names = Variables(draft.origin, draft.note, kind="kubernetes")

    def read(self) -> None:
        """Every key of the container, and those of its pod that concern it."""
        draft, node = self.draft, self.node
        draft.set("image", node.get("image").text, node.get("image").line)
        for entry in node.get("env").items:
            self._variable(entry)
        for source in node.get("envFrom").items:
            kind, reference = (source.pairs or [("envFrom", NOTHING)])[0]
            draft.lost(source.line, f"envFrom {kind} {reference.get('name').text}".strip())
        start = [
            resolved([Word(one.text, one.line) for one in node.get(key).items], self.names)
            for key in ("command", "args")
        ]
        container.read_start(draft, start[0], start[1], self.names)
        self._gpus()
        volumes = {one.get("name").text: one for one in self.pod.get("volumes").items}
        for mount in node.get("volumeMounts").items:
            self._mount(mount, volumes.get(mount.get("name").text, NOTHING))
        for probe in _PROBES:
            if node.get(probe):
                draft.lost(node.get(probe).line, f"the {probe} (/health is asked anyway)")
        if self.pod.get("hostIPC").text == "true":
            draft.set("ipc", "host", self.pod.get("hostIPC").line)
        if self.pod.get("hostNetwork").text == "true":
            draft.deployment["network"] = "host"
        draft.deployment["ports"] = [self._port(one) for one in node.get("ports").items]
        self._rest()

    def _variable(self, entry: Node) -> None:
        name, source = entry.get("name").text, entry.get("valueFrom")
        secret = source.get("secretKeyRef")
        if secret:
            key = secret.get("key").text
            variable = key if _ENV_NAME.fullmatch(key) else name
            self.draft.set_env(name, secret_mark(variable), entry.line)
            self.names.values[name] = secret_mark(variable)
        elif source:
            self.draft.lost(entry.line, f"{name}, whose value the cluster fills in,")
        else:
            value = self.names.text(entry.get("value").text, entry.line)
            self.draft.set_env(name, value, entry.line)
            self.names.values[name] = value

    def _gpus(self) -> None:
        resources = self.node.get("resources")
        for part in ("requests", "limits"):
            for key, value in resources.get(part).pairs:
                if key.endswith("/gpu"):
                    container.read_gpus(self.draft, value.text, value.line)
                    if key != "nvidia.com/gpu":
                        self.draft.note(value.line, f"{key} became gpus = {value.text}")
                elif part == "limits":
                    self.draft.lost(value.line, f"resources.limits.{key}")

    def _mount(self, mount: Node, volume: Node) -> None:
        draft, inside = self.draft, mount.get("mountPath").text
        if mount.get("subPath"):
            draft.note(mount.line, f"the subPath of {inside} is not carried over")
        read_only = ":ro" if mount.get("readOnly").text == "true" else ""
        if path := volume.get("hostPath", "path").text:
            container.read_volume(draft, f"{path}:{inside}{read_only}", mount.line)
        elif claim := volume.get("persistentVolumeClaim", "claimName").text:
            container.read_volume(draft, f"{claim}:{inside}{read_only}", mount.line)
            draft.note(mount.line, f"the claim {claim} became a volume of that name")
        elif inside == "/dev/shm" and volume.get("emptyDir"):  # noqa: S108 - where vLLM's processes meet
            size = volume.get("emptyDir", "sizeLimit")
            if size:
                container.read_shm(draft, size.text, size.line)
            else:
                draft.note(mount.line, f"{inside} has no sizeLimit there: set [server] shm")
        else:
            draft.lost(mount.line, f"the volume at {inside}")

    def _port(self, port: Node) -> str:
        inside, host = port.get("containerPort").text, port.get("hostPort").text
        return f"{host or inside}:{inside}"

    def _rest(self) -> None:
        for key, value in self.node.pairs:
            if key not in _READ | _SILENT:
                self.draft.lost(value.line, key)
        for key in _OF_THE_POD:
            if self.pod.get(key):
                self.draft.lost(self.pod.get(key).line, key)
