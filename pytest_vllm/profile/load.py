"""From a name or a path to a validated profile, or to one message that says what is wrong where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pytest_vllm.profile.errors import Fault, ProfileError, faults_of, keys_of, place
from pytest_vllm.profile.expand import expanded
from pytest_vllm.profile.hardware import hardware_names
from pytest_vllm.profile.model import GIVEN, Profile
from pytest_vllm.profile.modelfile import model_names
from pytest_vllm.profile.secrets import literal_secrets
from pytest_vllm.profile.sources import Document, ProfileName, find, names
from pytest_vllm.profile.words import unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["ProfileError", "ProfileName", "load", "names", "origin"]

#: What may stand at the top of a profile.
KEYS = sorted({"extends", *keys_of(Profile)} - set(GIVEN))


def load(
    name_or_path: str, rootdir: Path, *, environ: Mapping[str, str] | None = None, expand: bool = True
) -> Profile:
    """The profile of this name or path, complete with what it extends. Raises ProfileError.

    Args:
        name_or_path: a name, or a path (it ends in .toml or contains a slash).
        rootdir: pytest's root directory; `vllm-profiles/` and pyproject.toml lie there.
        environ: where `${NAME}` comes from, `os.environ` unless told otherwise.
        expand: whether to resolve `${NAME}`; False shows the profile as it is written.
    """
    document = find(name_or_path, rootdir, base=Path.cwd())
    documents = [document, *_extended(document, rootdir)]
    environ = os.environ if environ is None else environ
    raws = [_checked(each, documents[1:], environ if expand else None) for each in documents]
    raw = raws[0] if len(raws) == 1 else _merged(raws[1], raws[0])
    profile = _validated(raw, documents)
    _named(profile, documents, rootdir)
    return profile.model_copy(update={"name": document.name, "source": document.file})


def origin(profile: Profile, rootdir: Path) -> str:
    """Where a loaded profile came from: `built in`, `vllm-profiles`, `pyproject.toml` or its path."""
    for known in names(rootdir):
        if known.name == profile.name and known.source == profile.source:
            return known.origin
    return str(profile.source)


def _extended(document: Document, rootdir: Path) -> list[Document]:
    parent = document.raw.get("extends")
    if parent is None:
        return []
    if not isinstance(parent, str):
        raise document.error([Fault(("extends",), f"extends is {parent!r}: write the name of one profile")])
    try:
        base = find(parent, rootdir, base=document.file.parent, beside=document)
    except ProfileError as error:
        itself = f"{parent!r}, which is this profile itself: name another one, or a built-in one"
        why = itself if parent == document.name else error
        raise document.error([Fault(("extends",), f"extends {why}")]) from error
    if "extends" in base.raw:
        text = f"extends {parent!r}, which itself extends {base.raw['extends']!r}: one level only"
        raise document.error([Fault(("extends",), text)])
    return [base]


def _checked(document: Document, bases: list[Document], environ: Mapping[str, str] | None) -> dict[str, Any]:
    """One document's own tables, hyphenated and resolved; every fault in it is reported at its line."""
    written = {key: value for key, value in document.raw.items() if key != "extends"}
    faults = list(_spelled_twice(written))
    raw: dict[str, Any] = _hyphenated(written)
    faults += [Fault((key,), unknown("key", key, KEYS, "the profile")) for key in GIVEN if key in raw]
    faults += [
        Fault(path, f"{place(path)} holds a secret in plain text; {fix}")
        for path, fix in literal_secrets(raw)
    ]
    if environ is not None:
        raw, unresolved = expanded(raw, document.file.parent, environ)
        faults += [Fault(path, text) for path, text in unresolved]
    named = {fault.path for fault in faults}
    faults += [fault for fault in _invalid(_started(raw, bases)) if fault.path not in named]
    if faults:
        raise document.error(faults)
    return raw


def _started(raw: dict[str, Any], bases: list[Document]) -> dict[str, Any]:
    """The tables with what starts the server, which may stand in the profile that is extended."""
    own = raw.get("server")
    if not isinstance(own, dict):
        return raw
    for base in bases:
        server = base.raw.get("server")
        given = server if isinstance(server, dict) else {}
        own = {key: given[key] for key in ("launcher", "image", "version") if key in given} | own
    return {**raw, "server": own}


def _invalid(raw: dict[str, Any]) -> list[Fault]:
    try:
        Profile.model_validate(raw)
    except ValidationError as error:
        return faults_of(error.errors(), Profile, KEYS)
    return []


def _validated(raw: dict[str, Any], documents: list[Document]) -> Profile:
    try:
        return Profile.model_validate(raw)
    except ValidationError as error:
        faults = faults_of(error.errors(), Profile, KEYS)
        raise _owner(faults[0], documents).error(faults) from error


def _named(profile: Profile, documents: list[Document], rootdir: Path) -> None:
    """Whether hardware and model files of these names exist."""
    for key, known in (("hardware", hardware_names(rootdir)), ("model", model_names(rootdir))):
        name = getattr(profile, key)
        if name is not None and name not in known:
            fault = Fault((key,), unknown(key, name, known))
            raise _owner(fault, documents).error([fault])


def _owner(fault: Fault, documents: list[Document]) -> Document:
    return next((document for document in documents if document.has(fault.path)), documents[0])


def _merged(base: Any, over: Any) -> Any:
    """Tables merge, everything else is replaced."""
    if isinstance(base, dict) and isinstance(over, dict):
        return {
            **base,
            **{key: _merged(base[key], value) if key in base else value for key, value in over.items()},
        }
    return over


def _spelled_twice(raw: Any, path: tuple[str, ...] = ()) -> Iterator[Fault]:
    """Keys that a table has with hyphens and with underscores."""
    if not isinstance(raw, dict) or _theirs(path):
        return
    seen: set[str] = set()
    for key, value in raw.items():
        name = key.replace("_", "-")
        if name in seen:
            yield Fault((*path, name), f"{place((*path, name))} is given twice, once with underscores")
        seen.add(name)
        yield from _spelled_twice(value, (*path, name))


def _hyphenated(raw: Any, path: tuple[str, ...] = ()) -> Any:
    """Keys with hyphens wherever they are ours or vLLM's; variables and JSON values keep theirs."""
    if isinstance(raw, list):
        return [_hyphenated(item, path) for item in raw]
    if not isinstance(raw, dict) or _theirs(path):
        return raw
    return {(name := key.replace("_", "-")): _hyphenated(value, (*path, name)) for key, value in raw.items()}


def _theirs(path: tuple[str, ...]) -> bool:
    """Whether the keys of this table are neither ours nor vLLM's flags."""
    return path in (("server", "env"), ("deployment", "service")) or path[:2] == ("server", "args") != path
