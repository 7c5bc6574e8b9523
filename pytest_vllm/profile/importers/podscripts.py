"""Scripts that a pod gets from a ConfigMap of the same file, read in the place of their names."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.dockermade import followed
from pytest_vllm.profile.importers.shellwords import Word
from pytest_vllm.profile.importers.yamlnodes import NOTHING, Node

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.profile.importers.podspecs import Place


def read_scripts(places: Sequence[Place], documents: Sequence[Node]) -> list[tuple[int, str]]:
    """Put the text of a script into the command that starts it; line and text of what has to be said."""
    said: list[tuple[int, str]] = []
    for place in places:
        held = _held(place, documents)
        given = [one for key in ("command", "args") for one in place.node.get(key).items]
        if not held or not given or not isinstance(place.node.value, dict):
            continue
        words, script = followed([Word(one.text, one.line) for one in given], partial(_text, held))
        if script:
            nodes = [Node(one.text, one.text, one.line) for one in words]
            place.node.value["command"] = Node(nodes, [one.text for one in words], words[0].line)
            place.node.value.pop("args", None)
            said.append((words[0].line, f"{script} is read, of a ConfigMap: its lines count from here on"))
    return said


def _text(held: Mapping[str, str], inside: str) -> str:
    return held.get(inside, "")


def _held(place: Place, documents: Sequence[Node]) -> dict[str, str]:
    """Place in the container -> text, of what the ConfigMaps of the file hold."""
    maps = {
        one.get("metadata", "name").text: one.get("data")
        for one in documents
        if one.get("kind").text == "ConfigMap"
    }
    sources = {one.get("name").text: one.get("configMap") for one in place.pod.get("volumes").items}
    found: dict[str, str] = {}
    for mount in place.node.get("volumeMounts").items:
        source = sources.get(mount.get("name").text, NOTHING)
        data = maps.get(source.get("name").text)
        for key, text in data.pairs if data else ():
            names = {one.get("key").text: one.get("path").text for one in source.get("items").items}
            name, folder = names.get(key, key), mount.get("mountPath").text.rstrip("/")
            path = mount.get("subPath").text
            if not path or path == name:
                found[folder if path else f"{folder}/{name}"] = text.text
    return found
