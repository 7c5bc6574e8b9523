"""Services of a compose file whose image is built: what their Dockerfile starts."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.bounded import Unreadable, read_bounded
from pytest_vllm.profile.importers.dockerfile import Built, read_built
from pytest_vllm.profile.importers.dockermade import copied, followed, text_of
from pytest_vllm.profile.importers.origin import ImportProblem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.shellwords import Word
    from pytest_vllm.profile.importers.yamlnodes import Node

    Held = Callable[[str], str]


def built(origin: Origin, node: Node) -> tuple[Built, Path] | None:
    """What the image of a service starts by itself, and the folder that it is built in.

    None where it is not built, and where its Dockerfile is not there or cannot be read as one.
    """
    build = node.get("build")
    if not build or build.get("dockerfile_inline"):
        return None
    folder = origin.folder / (build.get("context").text or "." if build.pairs else build.text)
    named = build.get("dockerfile").text
    file = folder / (named or "Dockerfile")
    if not named and not file.is_file():
        file = folder / "dockerfile"
    given = build.get("args")
    arguments = {name: one.text for name, one in given.pairs}
    arguments |= {name: value for one in given.items for name, _, value in [one.text.partition("=")] if value}
    arguments = {name: value for name, value in arguments.items() if "$" not in value}
    try:
        text = read_bounded(file)
        inner = replace(origin, text=text, shown=str(file), folder=file.parent)
        return read_built(inner, arguments), folder
    except (Unreadable, ImportProblem):
        return None


def not_there(origin: Origin, node: Node) -> str:
    """Of a service that is built, that its Dockerfile is not there; empty otherwise."""
    build = node.get("build")
    if not build or node.get("image") or build.get("dockerfile_inline"):
        return ""
    folder = (build.get("context").text or ".") if build.pairs else build.text
    written = f"{folder}/{build.get('dockerfile').text or 'Dockerfile'}"
    return "" if (origin.folder / written).is_file() else f"built from {written}, which is not there"


def named(origin: Origin, document: Node, service: str) -> str:
    """What compose calls the image of a service that names none."""
    project = origin.environ.get("COMPOSE_PROJECT_NAME") or document.get("name").text or origin.folder.name
    return f"{re.sub(r'[^a-z0-9_-]', '', project.lower()).lstrip('_-')}-{service}"


def started(
    found: tuple[Built, Path], own: tuple[list[Word], list[Word]], line: int, held: Held
) -> list[Word]:
    """Entry point and command of a container: what the service says takes the place of what the image has.

    Args:
        found: as `built` has it.
        own: entry point and command of the service.
        line: what messages name for words of the Dockerfile.
        held: the texts of files that the service mounts.
    """
    made, folder = found
    entrypoint, command = own
    words = [
        *(entrypoint or [replace(one, line=line) for one in made.entrypoint]),
        *(command or [replace(one, line=line) for one in made.command if not entrypoint]),
    ]
    return followed(words, lambda inside: held(inside) or copied(inside, made.made, folder))[0]


def mounted(origin: Origin, node: Node) -> Held:
    """The texts of files that a service mounts from beside the compose file."""
    places: dict[str, Path] = {}
    for one in node.get("volumes").items:
        parts = one.text.split(":") if one.text else [one.get("source").text, one.get("target").text]
        if len(parts) > 1 and parts[0].startswith("."):
            places[parts[1]] = origin.folder / parts[0]

    def at(inside: str) -> str:
        for target, source in places.items():
            path = source if inside == target else source / inside.removeprefix(f"{target}/")
            if inside == target or inside.startswith(f"{target}/"):
                return origin.written.get(os.path.normpath(path)) or (text_of(path) if path.is_file() else "")
        return ""

    return at
