"""One container of a pod, and the keys of its pod that concern it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import container
from pytest_vllm.profile.importers.beside import beside
from pytest_vllm.profile.importers.gpunames import hardware_named
from pytest_vllm.profile.importers.marks import secret_mark
from pytest_vllm.profile.importers.shellwords import Word, resolved
from pytest_vllm.profile.importers.variables import Variables
from pytest_vllm.profile.importers.vllmline import FILLED_IN
from pytest_vllm.profile.importers.yamlnodes import NOTHING, Node
from pytest_vllm.profile.importers.yamlwords import checked, no_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.profile.importers.account import Account
    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.podspecs import Place

_ENV_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
_SHELL = re.compile(r"(?:.*/)?(?:ba|da|z)?sh")
_PROBES = ("readinessProbe", "livenessProbe", "startupProbe")
_SHM = "/dev/shm"  # noqa: S108 - where vLLM's processes meet
#: What a memory folder without a limit becomes: enough for NCCL and the workers' queues.
_UNBOUND = "16g"
#: Labels of nodes that name the GPU in them.
_GPU_LABELS = re.compile(r".*(?:accelerator|gpu(?:\.nvidia\.com/|[.-])?(?:product|type|model|class|name)).*")


class ContainerReader:
    """Reads a container into a draft, and marks in the account what it took."""

    def __init__(self, draft: Draft, place: Place, account: Account, documents: list[Node]) -> None:
        """Read nothing yet."""
        self.draft, self.place, self.node, self.pod = draft, place, place.node, place.pod
        self.account, self.documents = account, documents
        self.names = Variables(draft.origin, draft.note, kind="kubernetes")
        #: Variables that come from an object of another file -> which; under "" all that one holds.
        self.elsewhere: dict[str, str] = {}

    def read(self) -> None:
        """Every key of the container that a profile has a place for; the others are noted."""
        draft, node, read = self.draft, self.node, self.account.read
        draft.set("image", node.get("image").text, node.get("image").line)
        read(node.get("image"))
        if "$(" in node.get("image").text or "${" in node.get("image").text:
            line, text = node.get("image").line, node.get("image").text
            draft.note(line, f"{text} is a template's parameter: set [server] image")
        for source in node.get("envFrom").items:
            self._source(source)
        for entry in node.get("env").items:
            self._variable(entry)
        self._group()
        self._start()
        self._gpus()
        self._volumes()
        for probe in _PROBES:
            if node.get(probe):
                draft.lost(node.get(probe).line, f"the {probe} (/health is asked anyway)")
                read(node.get(probe))
        self._namespaces()
        self._hardware()
        ports = [self._port(one) for one in node.get("ports").items if one.get("containerPort").text]
        draft.deployment["ports"] = ports
        for path, left in self.account.left(node):
            beside(draft.origin, self.place, path, left)
            draft.lost(left.line, path)

    def _namespaces(self) -> None:
        for key, value in (("hostIPC", "ipc"), ("hostNetwork", "network")):
            node = self.pod.get(key)
            if node.text.lower() != "true":
                continue
            self.account.read(node)
            if value == "ipc":
                self.draft.set("ipc", "host", node.line)
            else:
                self.draft.deployment["network"] = "host"

    def _group(self) -> None:
        """What a LeaderWorkerSet tells each of its pods; the first of a group is the one that serves."""
        for table in self.place.above:
            size = table.get("size").text
            if not (table.get("workerTemplate") and size.isdigit()):
                continue
            worker = "workerTemplate" in self.place.path and bool(table.get("leaderTemplate"))
            name = self.place.owner.get("metadata", "name").text or "leader"
            told = {
                "GROUP_SIZE": size,
                "WORKER_INDEX": str(int(worker)),
                "LEADER_ADDRESS": f"{name}-0.{name}",
            }
            for key, value in told.items():
                self.names.values.setdefault(f"LWS_{key}", value)

    def _start(self) -> None:
        """Command and arguments: the cluster fills in $(NAME), a shell in them sees the container's own."""
        draft = self.draft
        for key in ("command", "args"):
            checked(draft, self.node.get(key), "the cluster")
        start = [
            resolved([Word(one.text, one.line) for one in self.node.get(key).items], self.names)
            for key in ("command", "args")
        ]
        words = [*start[0], *start[1]]
        self._filled(words)
        if len(words) > 2 and words[2].text == "--" and _SHELL.fullmatch(words[0].text):
            start = [[*words[:2], *words[3:]], []]  # ends a shell's options; what follows is its script
        container.read_start(draft, start[0], start[1], self.names)
        self.account.read(self.node.get("command"), self.node.get("args"))

    def _filled(self, words: Sequence[Word]) -> None:
        """Refuse a name that an object of another file would fill in."""
        for word in words:
            for name in re.findall(r"\$\((\w+)\)", word.text):
                if where := self.elsewhere.get(name) or self.elsewhere.get(""):
                    fix = f"put that {where} into one file with it, or render all: kubectl kustomize ."
                    raise self.draft.origin.problem(word.line, f"$({name}) is not in this file", fix)

    def _put(self, name: str, value: str, line: int) -> None:
        if template := FILLED_IN.search(value):
            self.draft.note(line, f"{name} is left out: an operator fills {template[0]} in")
            self.names.values[name] = value
            return
        if template := re.search(r"\$\{[A-Za-z_]\w*[^{}]*\}", value):
            what = f"{name} has {template[0]} as it stands: a template fills it in, and a cluster does not"
            self.draft.note(line, what)
        self.draft.set_env(name, value, line)
        self.names.values[name] = value

    def _object(self, kind: str, name: str) -> Node:
        """An object of this file."""
        return next(
            (
                one
                for one in self.documents
                if one.get("kind").text == kind and one.get("metadata", "name").text == name
            ),
            NOTHING,
        )

    def _source(self, source: Node) -> None:
        """`envFrom`: all of a ConfigMap or Secret, where it is in the file."""
        prefix = source.get("prefix").text
        for kind, key in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
            name = source.get(key, "name").text
            held = self._object(kind, name) if name else NOTHING
            if not held:
                continue
            for table in ("data", "stringData"):
                for variable, value in held.get(table).pairs:
                    text = value.text if kind == "ConfigMap" else secret_mark(prefix + variable)
                    self._put(prefix + variable, text, value.line)
                self.account.read(held.get(table))
            if not self.account.left(held):
                self.account.read(held)
            self.account.read(source)
        if not self.account.has(source):
            kind, reference = (source.pairs or [("envFrom", NOTHING)])[0]
            self.draft.lost(source.line, f"envFrom {kind} {reference.get('name').text}".strip())
            self.elsewhere[""] = f"{kind.removesuffix('Ref')} {reference.get('name').text}"
            self.account.read(source)

    def _variable(self, entry: Node) -> None:
        name, source = entry.get("name").text, entry.get("valueFrom")
        if not name:
            return
        secret, configured = source.get("secretKeyRef"), source.get("configMapKeyRef")
        held = self._object("ConfigMap", configured.get("name").text) if configured else NOTHING
        value = held.get("data", configured.get("key").text) if configured else NOTHING
        if secret:
            key = secret.get("key").text
            mark = secret_mark(
                key if _ENV_NAME.fullmatch(key) else name,
                optional=secret.get("optional").text.lower() == "true",
            )
            self._put(name, mark, entry.line)
            self.account.read(source)
        elif value:
            self._put(name, value.text, entry.line)
            self.account.read(source, value)
            if not self.account.left(held):
                self.account.read(held)
        elif source:
            where = f" from {configured.get('name').text}" if configured else ""
            if configured:
                self.elsewhere[name] = f"configMap {configured.get('name').text}"
            self.draft.lost(entry.line, f"{name}, whose value the cluster fills in{where},")
            self.account.read(source)
        else:
            written = entry.get("value")
            if isinstance(written.value, dict | list):
                raise self.draft.origin.problem(written.line, f"the variable {name} is not text", "quote it")
            no_text(self.draft, written, "the cluster")
            self._put(name, self.names.text(written.text, entry.line), entry.line)
            self.account.read(written)
        self.account.read(entry.get("name"))

    def _gpus(self) -> None:
        resources = self.node.get("resources")
        if limit := resources.get("limits", "memory"):
            container.read_memory(self.draft, limit.text, limit.line, binary=False)
            self.account.read(limit)
        for part in ("requests", "limits"):
            for key, value in resources.get(part).pairs:
                name, _, device = key.partition("=")
                if name.endswith("/gpu") and device:  # podman's: a device of CDI, and no count
                    container.read_gpus(self.draft, device, value.line)
                    self.account.read(value)
                    self.draft.note(value.line, f"{key} became gpus = {device}")
                elif key.endswith("/gpu"):
                    container.read_gpus(self.draft, value.text, value.line)
                    self.account.read(value)
                    if key != "nvidia.com/gpu":
                        self.draft.note(value.line, f"{key} became gpus = {value.text}")

    def _volumes(self) -> None:
        volumes = {one.get("name").text: one for one in self.pod.get("volumes").items}
        for mount in self.node.get("volumeMounts").items:
            self._mount(mount, volumes.get(mount.get("name").text, NOTHING))

    def _mount(self, mount: Node, volume: Node) -> None:
        draft, inside, read = self.draft, mount.get("mountPath").text, self.account.read
        read(mount.get("name"), mount.get("mountPath"), mount.get("readOnly"), volume.get("name"))
        path, claim = volume.get("hostPath", "path"), volume.get("persistentVolumeClaim", "claimName")
        memory = volume.get("emptyDir")
        read_only = ":ro" if mount.get("readOnly").text.lower() == "true" else ""
        if mount.get("subPath"):
            draft.note(mount.line, f"the subPath of {inside} is not carried over")
            read(mount.get("subPath"))
        if path.text:
            container.read_volume(draft, f"{path.text}:{inside}{read_only}", mount.line)
            read(path, volume.get("hostPath", "type"))
        elif claim.text:
            container.read_volume(draft, f"{claim.text}:{inside}{read_only}", mount.line)
            draft.note(mount.line, f"the claim {claim.text} became a volume of that name")
            read(claim)
        elif inside == _SHM and memory:
            self._shared_memory(mount, memory)
        else:
            draft.lost(mount.line, f"the volume at {inside}")
            draft.deployment["mounts"] = [*draft.deployment.get("mounts", []), inside]
            read(volume)

    def _shared_memory(self, mount: Node, memory: Node) -> None:
        size = memory.get("sizeLimit")
        if size:
            container.read_shm(self.draft, size.text, size.line)
        else:
            container.read_shm(self.draft, _UNBOUND, mount.line)
            self.draft.note(
                mount.line,
                f"{_SHM} has no sizeLimit there, the pod's memory bounds it: shm = {_UNBOUND!r} here",
            )
        self.account.read(size, memory.get("medium"))
        if not memory.pairs:
            self.account.read(memory)

    def _port(self, port: Node) -> str:
        inside, host = port.get("containerPort"), port.get("hostPort")
        self.account.read(inside, host)
        return f"{host.text or inside.text}:{inside.text}"

    def _hardware(self) -> None:
        """The GPU that the pod asks nodes for by their labels."""
        asked = list(self.pod.get("nodeSelector").pairs)
        whole: dict[int, Node] = {}
        affinity = self.pod.get("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
        for term in affinity.get("nodeSelectorTerms").items:
            for one in term.get("matchExpressions").items:
                values = one.get("values").items
                if one.get("operator").text == "In" and len(values) == 1:
                    asked.append((one.get("key").text, values[0]))
                    whole[id(values[0])] = one
        for label, value in asked:
            name = hardware_named(value.text) if _GPU_LABELS.fullmatch(label.lower()) else ""
            if name:
                self.draft.hardware = name
                self.account.read(whole.get(id(value), value))
                self.draft.note(value.line, f"{label} {value.text} became hardware = {name}")
