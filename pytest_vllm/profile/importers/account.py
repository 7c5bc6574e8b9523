"""What of a tree of YAML nodes was read: the rest is found by construction, not by a list of known keys."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.yamlnodes import Node

Path = tuple[str, ...]

#: Keys that say nothing of the server: path pattern -> why. All others are read or noted.
IRRELEVANT = {
    r"apiVersion|kind": "what the object is",
    r"status(\..*)?": "what the cluster wrote there",
    r"(.*\.)?metadata\.(name|generateName|namespace|labels|annotations|creationTimestamp|uid|"
    r"resourceVersion|generation|managedFields|ownerReferences|finalizers|selfLink)(\..*)?": "its name tags",
    r"(.*\.)?selector(\.matchLabels)?(\..*)?": "which pods belong to it",
    r"(.*\.)?(strategy|updateStrategy|rolloutStrategy|revisionHistoryLimit|progressDeadlineSeconds|"
    r"minReadySeconds|podManagementPolicy)(\..*)?": "how the cluster replaces it",
    r"imagePullPolicy|terminationMessage(Path|Policy)|stdin|tty|name": "how a container is shown and fetched",
    r"restartPolicy|dnsPolicy|schedulerName|terminationGracePeriodSeconds|enableServiceLinks": (
        "what the cluster does around a pod"
    ),
    r"ports\.\d+\.(name|protocol)": "what a port is called",
    r"resources\.requests\.(cpu|memory|ephemeral-storage)": "where there is room for it",
}
_IRRELEVANT = re.compile("|".join(f"(?:{one})" for one in IRRELEVANT))


@dataclass
class Account:
    """The nodes that a reader took, whole subtrees."""

    _read: set[int] = field(default_factory=set)

    def read(self, *nodes: Node) -> None:
        """These were read, with all that is in them."""
        self._read.update(id(node) for node in nodes if node)

    def has(self, node: Node) -> bool:
        """Whether this very node was read."""
        return id(node) in self._read

    def took(self, document: Node) -> bool:
        """Whether a document was read so far that nothing is left of it."""
        return bool(document) and self.has(document)

    def left(self, root: Node) -> list[tuple[str, Node]]:
        """What was not read and is not irrelevant: the largest parts, by their path from the root."""
        _, found = self._left(root, ())
        return [(".".join(path), node) for path, node in found if path]

    def _left(self, node: Node, path: Path) -> tuple[bool, list[tuple[Path, Node]]]:
        """Whether a node was left as a whole, and its parts that were."""
        if id(node) in self._read or not node or _IRRELEVANT.fullmatch(".".join(path)):
            return False, []
        children = list(node.pairs)
        if isinstance(node.value, list):
            children = [(str(at), one) for at, one in enumerate(node.value)]
        if not children:
            return True, [(path, node)]
        found = [self._left(one, (*path, name)) for name, one in children]
        if path and all(whole for whole, _ in found):
            return True, [(path, node)]
        return False, [one for _, parts in found for one in parts]
