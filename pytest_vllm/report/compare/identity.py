"""What a run was of, and whether two of them may be compared."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.report.compare.answers import prompts
from pytest_vllm.wire.recording import Undecided

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_vllm.wire.recording import Recording
    from pytest_vllm.wire.server import Server

_COMMIT = re.compile(r"\+(?:g)?([0-9a-f]{7,40})\b|\.g([0-9a-f]{7,40})\b")
#: Parts of the identity of which a difference makes figures and answers those of another machine.
MACHINE = {"hardware": "hardware", "gpus": "GPU", "driver": "driver"}


def identity(
    server: Server,
    recordings: Mapping[str, Recording],
    *,
    facts: Mapping[str, Any],
    profile: Mapping[str, Any],
    suite: str,
    machine: Mapping[str, str],
) -> dict[str, Any]:
    """What identifies a run, as JSON; what nobody tells is empty.

    Args:
        server: what was probed.
        recordings: by key.
        facts: what the launcher and the start-up log tell (image digest, GPUs, backend).
        profile: `hardware`, `path` of the model, `revision` and `env` (names) of the profile.
        suite: pytest-vllm's version.
        machine: `kernel` and `driver` of the machine it ran on; empty where it ran elsewhere.
    """
    commit = _COMMIT.search(server.version)
    return {
        "version": server.version,
        "commit": (commit[1] or commit[2]) if commit else "",
        "image": str(facts.get("image-digest") or facts.get("image-id") or ""),
        "simulated": server.simulated,
        "launcher": server.launcher,
        "model": server.model,
        "path": str(profile.get("path", "")),
        "revision": str(profile.get("revision") or server.args.get("revision") or ""),
        "template": prompts(recordings),
        "fingerprint": _fingerprint(recordings.values()),
        "flags": {name: _shown(value) for name, value in sorted(server.args.items())},
        "env": sorted(profile.get("env", ())),
        "hardware": str(profile.get("hardware", "")),
        "gpus": sorted(map(str, facts.get("gpus") or ())),
        "driver": machine.get("driver", ""),
        "kernel": machine.get("kernel", ""),
        "suite": suite,
        "max_model_len": server.max_model_len,
        "max_num_seqs": server.max_num_seqs,
        "capabilities": sorted(name for name, one in server.capabilities.items() if one.present),
    }


def incomparable(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Why two runs cannot be compared at all, in words; empty when they can."""
    if before["simulated"] != after["simulated"]:
        which = ["the simulator" if one["simulated"] else "a real server" for one in (before, after)]
        return f"one run was of {which[0]}, the other of {which[1]}"
    if before["model"] != after["model"]:
        return f"the runs served two models, {before['model']} and {after['model']}"
    return ""


def other_machine(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Why speeds, memory and texts of two runs are not comparable, in words; empty when they are."""
    found = []
    for part, word in MACHINE.items():
        one, other = before[part], after[part]
        if one and other and one != other:
            found.append(f"{word} {_shown(one)} and {_shown(other)}")
        elif bool(one) != bool(other) and part == "hardware":
            found.append(f"hardware {_shown(one or other)} and hardware that the profile does not name")
    return "the runs were on different machines: " + ", ".join(found) if found else ""


def this_machine(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Why speeds of simulators that answer at once are not comparable, in words; empty for all others."""
    if any(one["simulated"] and one["hardware"] in ("", "sim") for one in (before, after)):
        return "this simulator answers at once, so its speeds are those of the machine it ran on"
    return ""


def other_load(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Why texts are not comparable, in words: another model behind the same name."""
    for part, word in (("path", "weights"), ("revision", "revision")):
        if before[part] and after[part] and before[part] != after[part]:
            return f"the runs served other {word}: {before[part]} and {after[part]}"
    return ""


def _fingerprint(recordings: Iterable[Recording]) -> str:
    for one in recordings:
        if one.request.path == "/v1/chat/completions" and one.status == 200 and not one.request.streams:
            try:
                return str(one.json.get("system_fingerprint") or "")
            except (Undecided, AttributeError):
                continue
    return ""


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return str(value)
