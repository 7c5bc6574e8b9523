"""`[server.args]`: vLLM's own flags, checked against the facts of its versions."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts import canonical, flag_status, flags, versions
from pytest_vllm.profile.table import faults

if TYPE_CHECKING:
    from collections.abc import Mapping

_TAG = re.compile(r":v?(\d+\.\d+(?:\.\d+)*(?:\.?post\d+|rc\d+)?)")
#: NVIDIA's vLLM containers are tagged by month; the vLLM inside is another number.
NGC_VERSIONS = {"25.09": "0.10.1.1+381074ae.nv25.09"}


def checked_args(args: Mapping[str, Any]) -> dict[str, Any]:
    """Flags under vLLM's spelling, with values of a kind that they take. Raises all faults at once."""
    checked: dict[str, Any] = {}
    found = []
    for name, value in args.items():
        spelled = name.lstrip("-").replace("_", "-")
        wrong = _unknown(name) or _wrong_kind(spelled, value)
        if spelled in checked:
            wrong = f"[server.args] {name} is given twice, once as {spelled!r}"
        if wrong:
            found.append(((name,), wrong))
        checked[spelled] = value
    if found:
        raise faults(found)
    return checked


def _unknown(name: str) -> str:
    status = flag_status(name)
    if status.state != "unknown":
        return ""
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
    if not image:
        return ""
    if "nvcr.io/nvidia/vllm:" in image:
        month = image.rpartition(":")[2][:5]
        return NGC_VERSIONS.get(month, "")
    found = _TAG.search(image)
    return found[1] if found else ""


def flag_notes(args: Mapping[str, Any], version: str) -> list[str]:
    """What a version makes of flags that it does not simply take: one line each."""
    notes = []
    for name in args:
        status = flag_status(name, version)
        instead = f"; write {status.replaced_by}" if status.replaced_by else ""
        if status.state == "removed":
            notes.append(f"--{name} is gone since vLLM {status.removed}{instead}")
        elif status.state == "not-yet":
            notes.append(f"--{name} comes with vLLM {status.added} only")
        elif status.state == "deprecated":
            notes.append(f"--{name} is deprecated since vLLM {status.deprecated_since}{instead}")
    return notes
