"""`[server.args]`: vLLM's own flags, checked against the facts of its versions."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts import canonical, flag_status, flags, version_of, versions
from pytest_vllm.facts.launchers import LAUNCHERS
from pytest_vllm.facts.lineage import lineage
from pytest_vllm.profile.table import faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: The project's own images, by a release's tag; with an operating system or CUDA behind it.
_RELEASE = re.compile(
    r"(?:docker\.io/)?vllm/vllm-openai(?:-rocm|-cpu|-xpu)?:v?\d+\.\d+[\w.]*(?:-[\w.-]+)?(?:@sha256:[0-9a-f]+)?"
)
_NAME = re.compile(r"-{0,2}[A-Za-z][\w-]*(?:\.[\w.-]+)?")


def checked_args(args: Mapping[str, Any]) -> dict[str, Any]:
    """Flags under vLLM's spelling, with values of a kind that they take. Raises all faults at once."""
    checked: dict[str, Any] = {}
    found = []
    for name, value in args.items():
        spelled = name.lstrip("-").replace("_", "-")
        wrong = _wrong_kind(spelled, value)
        if spelled in checked:
            wrong = f"[server.args] {name} is given twice, once as {spelled!r}"
        if wrong:
            found.append(((name,), wrong))
        checked[spelled] = value
    if found:
        raise faults(found)
    return checked


def unknown_flags(args: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Flags that no version of vLLM in the facts has, each with what is wrong with it."""
    for name in args:
        if not _NAME.fullmatch(name):
            yield (
                name,
                f"{name!r} in [server.args] cannot be a flag of vLLM: write it without dashes in front",
            )
        elif flag_status(name).state == "unknown":
            yield name, _unknown(name)


def covered(launcher: str, image: str | None, version: str | None) -> bool:
    """Whether the facts speak for a vLLM: a release, up to the newest that was read, as the project made it.

    A fork's image, a nightly and tomorrow's release may know flags that no release had. Outside of a
    container, and without a version, it is taken for a release.
    """
    if not LAUNCHERS[launcher].container or not image:
        return not version or _released(version)
    return _RELEASE.fullmatch(image) is not None and _released(version or image_version(image))


def _released(version: str) -> bool:
    found, newest = version_of(version), version_of(versions()[-1])
    return found is not None and newest is not None and "+" not in version and found <= newest


def not_known(what: str) -> str:
    """The words for a thing that the facts do not know and do not judge."""
    return f"{what} is not known to pytest-vllm, whose facts end at vLLM {versions()[-1]}: not judged"


def _unknown(name: str) -> str:
    status = flag_status(name)
    hint = f"; did you mean {status.similar[0]!r}?" if status.similar else ": no version of vLLM has it"
    return f"unknown vllm flag {name!r} in [server.args]{hint}"


def _wrong_kind(name: str, value: Any) -> str:
    if not isinstance(value, bool | int | float | str | list | dict):
        return f"[server.args] {name} is {value!r}: write text, a number, true, a list or a table"
    kind = _kind(name)
    if kind == "bool" and not isinstance(value, bool):
        return f"[server.args] {name} is {value!r}: it is a switch, write true or false"
    if kind in ("int", "float") and isinstance(value, bool | list | dict):
        return f"[server.args] {name} is {json.dumps(value)}: it needs a number"
    return ""


def _kind(name: str) -> str:
    for version in reversed(versions()):
        flag = flags(version).get(canonical(name))
        if flag is not None:
            return flag.type if "." not in name else "json"
    return ""


def image_version(image: str | None) -> str:
    """The version of vLLM as an image's tag tells it, empty when it does not."""
    return lineage(image).version


def flag_notes(args: Mapping[str, Any], version: str) -> list[str]:
    """What a version makes of flags that it does not simply take: one line each."""
    notes = []
    for name in args:
        status = flag_status(name, version)
        if status.state == "unknown":
            notes.append(not_known(f"--{name}"))
        instead = f"; write {status.replaced_by}" if status.replaced_by else ""
        if status.state == "removed":
            notes.append(f"--{name} is gone since vLLM {status.removed}{instead}")
        elif status.state == "not-yet":
            notes.append(f"--{name} comes with vLLM {status.added} only")
        elif status.state == "deprecated":
            notes.append(f"--{name} is deprecated since vLLM {status.deprecated_since}{instead}")
    return notes
