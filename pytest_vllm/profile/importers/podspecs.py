"""Pod specs wherever they stand: Deployments, LeaderWorkerSets, KServe, Ray, definitions nobody listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import container
from pytest_vllm.profile.importers.program import other_program
from pytest_vllm.profile.importers.vllmline import program_length
from pytest_vllm.profile.importers.yamlnodes import NOTHING, Node

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Parts of a path that say nothing of a pod's role.
_PLAIN = frozenset({"spec", "template", "podTemplate", "items", "jobTemplate", "containers"})


@dataclass(frozen=True)
class Place:
    """A container where it was found.

    Args:
        node: the container.
        pod: the table that holds it: volumes, nodeSelector and the like; NOTHING where there is none.
        above: the tables around the pod, the document first.
        path: the keys that lead to the pod.
        document: the document it is in.
    """

    node: Node
    pod: Node
    above: tuple[Node, ...]
    path: tuple[str, ...]
    document: Node

    @property
    def owner(self) -> Node:
        """The object that it belongs to: the nearest one around it that has a kind and a name."""
        named = [one for one in self.above if one.get("kind").text and one.get("metadata", "name").text]
        return named[-1] if named else self.document

    @property
    def names(self) -> tuple[str, str, str]:
        """What it may be called, the shortest first: object, object/role, object/role/container."""
        own = self.node.get("name").text
        name = self.owner.get("metadata", "name").text or own
        roles = [
            table.get("name").text or table.get("groupName").text if part.isdigit() else part
            for part, table in zip(self.path, [*self.above[1:], self.pod], strict=True)
            if part not in _PLAIN
        ]
        role = f"{name}/{roles[-1] if roles and roles[-1] else own}"
        return name, role, f"{role}/{own}"

    @property
    def replicas(self) -> Node:
        """How many there are of it, as the nearest table around it says."""
        return next((one.get("replicas") for one in reversed(self.above) if one.get("replicas")), NOTHING)


def places(document: Node) -> list[Place]:
    """Every container of a document, those that only start a pod left out."""
    return list(_places(document, (), (), document))


def _places(node: Node, above: tuple[Node, ...], path: tuple[str, ...], document: Node) -> Iterator[Place]:
    within = node.get("containers")
    for one in within.items if isinstance(within.value, list) else ():
        if one.pairs:
            yield Place(one, node, above, path, document)
    for name, inner in node.pairs:
        if name in ("initContainers", "ephemeralContainers") or (name == "containers" and within.items):
            continue
        if _is_container(inner):
            yield Place(inner, NOTHING, (*above, node), (*path, name), document)
        yield from _places(inner, (*above, node), (*path, name), document)
    for at, inner in enumerate(node.items if isinstance(node.value, list) else ()):
        yield from _places(inner, (*above, node), (*path, str(at)), document)


def _is_container(node: Node) -> bool:
    """A container that stands by itself, as in `mainContainer` or KServe's `model`."""
    return bool(node.get("image").text) and any(node.get(key) for key in ("command", "args"))


def started(place: Place) -> str:
    """What a container starts that does not start vLLM, where its command says it."""
    return other_program([one.text for key in ("command", "args") for one in place.node.get(key).items])


def runs_vllm(place: Place) -> bool:
    """Whether a container starts vLLM's server. A command that is another program does not, nor does Ray."""
    node = place.node
    command, args = ([one.text for one in node.get(key).items if one.text] for key in ("command", "args"))
    words = [*command, *args]
    started = program_length(words) or any("api_server" in one or "vllm serve" in one for one in words)
    if other_program(words) or container.simulates(node.get("image").text):
        return False
    in_ray = any(part in ("headGroupSpec", "workerGroupSpecs") for part in place.path)
    if command or in_ray or (args and not args[0].startswith("-") and " " in args[0]):
        return bool(started)
    return container.runs_vllm(node.get("image").text, words)


def labels(found: list[Place]) -> list[str]:
    """A name for each, as short as tells them apart."""
    for length in range(3):
        names = [one.names[length] for one in found]
        if len(set(names)) == len(names):
            return names
    return [f"{one.names[2]}:{one.node.line}" for one in found]
