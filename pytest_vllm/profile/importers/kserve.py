"""KServe: an InferenceService laid over the ServingRuntime that it names, as its controller does.

Source: https://kserve.github.io/website/docs/concepts/resources/servingruntime - the model's container
is merged into the runtime's: arguments are appended, variables and resources win by name, all else replaces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.yamlnodes import NOTHING, Node

if TYPE_CHECKING:
    from collections.abc import Sequence

_RUNTIMES = ("ServingRuntime", "ClusterServingRuntime")
#: The container that a model is merged into.
_CONTAINER = "kserve-container"
#: Keys of `model` that choose a runtime and are no part of a container.
_CHOOSING = ("modelFormat", "protocolVersion", "runtime", "runtimeVersion", "storageUri", "storage")
#: Lists of a container to which a model's own entries are added; of each name the last one counts.
_ADDED = ("args", "env", "envFrom", "volumeMounts", "ports")
#: Keys of `predictor` that are no part of a pod.
_SCALING = re.compile(r"model|containers|.*Replicas|scale\w*|timeout|batcher|logger|canaryTrafficPercent")
_NAME = re.compile(r"\{\{\s*\.Name\s*\}\}")


@dataclass
class Merged:
    """The documents of a file, with every InferenceService whose runtime is among them merged.

    Args:
        documents: what is left, in their order; a runtime that was merged stands in its services alone.
        notes: what one of the two took back: line and text.
    """

    documents: list[Node]
    notes: list[tuple[int, str]] = field(default_factory=list)


def merged(documents: Sequence[Node]) -> Merged:
    """Lay the InferenceServices of a file over the ServingRuntimes of it."""
    runtimes = [one for one in documents if one.get("kind").text in _RUNTIMES]
    found, used = Merged([]), set()
    for document in documents:
        runtime = _runtime(document, runtimes)
        if runtime:
            used.add(id(runtime))
            document = _laid_over(document, runtime, found.notes)  # noqa: PLW2901 - it stands in its place
        found.documents.append(document)
    found.documents = [one for one in found.documents if id(one) not in used]
    return found


def _runtime(document: Node, runtimes: list[Node]) -> Node:
    """The runtime of an InferenceService: the one that it names, or the only one for its format."""
    model = document.get("spec", "predictor", "model")
    if document.get("kind").text != "InferenceService" or not model:
        return NOTHING
    named, form = model.get("runtime").text, model.get("modelFormat", "name").text

    def fits(one: Node) -> bool:
        if named:
            return one.get("metadata", "name").text == named
        return form in [known.get("name").text for known in one.get("spec", "supportedModelFormats").items]

    fitting = [one for one in runtimes if fits(one)]
    return fitting[0] if len(fitting) == 1 else NOTHING


def _laid_over(service: Node, runtime: Node, notes: list[tuple[int, str]]) -> Node:
    name, kind = service.get("metadata", "name").text, runtime.get("kind").text
    predictor, spec = service.get("spec", "predictor"), runtime.get("spec")
    model = predictor.get("model")
    containers = spec.get("containers").items
    own = [one for one in containers if one.get("name").text == _CONTAINER] or containers[:1]
    if not own:
        return service
    layer = _table(model, {key: one for key, one in model.pairs if key not in _CHOOSING})
    container = _container(own[0], layer, notes)
    version = model.get("runtimeVersion")
    if version and not model.get("image"):
        image = container.get("image")
        tagged = replace(version, value=f"{_untagged(image.text)}:{version.text}")
        notes.append(
            (image.line, f"the tag of {image.text} does not count: runtimeVersion is {version.text}")
        )
        container = _table(container, {**dict(container.pairs), "image": tagged})
    pod = dict(_over(spec, _table(predictor, _pod(predictor)), notes).pairs)
    pod["containers"] = replace(
        spec.get("containers"), value=[container if one is own[0] else one for one in containers]
    )
    pod |= {key: one for key, one in predictor.pairs if _SCALING.fullmatch(key)}
    pod.pop("model", None)
    if storage := model.get("storage"):
        pod["storage"] = storage
    outer = dict(service.get("spec").pairs)
    if least := pod.pop("minReplicas", None):
        outer["replicas"] = least
    notes.append((runtime.line, f"the {kind} {runtime.get('metadata', 'name').text} is merged into {name}"))
    for key, one in runtime.pairs:
        if key not in ("apiVersion", "kind", "metadata", "spec", "status"):
            notes.append((one.line, f"{key} of the runtime is not carried over"))
    if uri := model.get("storageUri"):
        notes.append((uri.line, f"{uri.text} is mounted at /mnt/models there: mount it in [server] volumes"))
    within = _table(service.get("spec"), {**outer, "predictor": _table(predictor, pod)})
    return _named(_table(service, {**dict(service.pairs), "spec": within}), name)


def _pod(predictor: Node) -> dict[str, Node]:
    return {key: one for key, one in predictor.pairs if not _SCALING.fullmatch(key)}


def _container(below: Node, above: Node, notes: list[tuple[int, str]]) -> Node:
    """A container with another one over it."""
    added = {
        key: replace(above.get(key) or below.get(key), value=[*below.get(key).items, *above.get(key).items])
        for key in _ADDED
        if below.get(key) and above.get(key)
    }
    plain = _table(above, {key: one for key, one in above.pairs if key not in added})
    return _table(below, {**dict(_over(below, plain, notes).pairs), **added})


def _over(below: Node, above: Node, notes: list[tuple[int, str]], path: str = "") -> Node:
    """A table with another one over it, key by key; lists of named entries are added to."""
    found = dict(below.pairs)
    for key, one in above.pairs:
        known = found.get(key, NOTHING)
        where = f"{path}.{key}" if path else key
        if known.pairs and one.pairs:
            found[key] = _over(known, one, notes, where)
        elif key in ("volumes", "tolerations", "imagePullSecrets") and known:
            found[key] = replace(one, value=[*known.items, *one.items])
        else:
            if known and known.plain != one.plain and key != "name":
                notes.append((known.line, f"{where} of the runtime does not count: line {one.line} gives it"))
            found[key] = one
    return _table(below, found)


def _table(like: Node, pairs: dict[str, Node]) -> Node:
    return Node(pairs, {key: one.plain for key, one in pairs.items()}, like.line)


def _named(node: Node, name: str) -> Node:
    """The same with KServe's placeholder of the service's name filled in."""
    if isinstance(node.value, str):
        return replace(node, value=_NAME.sub(lambda _: name, node.value)) if "{{" in node.value else node
    if isinstance(node.value, list):
        return replace(node, value=[_named(one, name) for one in node.value])
    return replace(node, value={key: _named(one, name) for key, one in node.pairs}) if node.pairs else node


def _untagged(image: str) -> str:
    head, colon, tail = image.partition("@")[0].rpartition(":")
    return head if colon and "/" not in tail else image.partition("@")[0]
