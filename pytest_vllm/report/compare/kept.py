"""Extracts on disk: of a run folder, of the history of a profile; and how long that is kept."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.report.compare.extract import ExtractError, checked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE, HISTORY, REPORT = "extract.json", "history", "report.json"
#: The word for the newest run of a profile that was GO and left nothing out.
LAST_GOOD = "last-good"
#: Runs of a profile that its history keeps; the oldest are removed. At 100 kB each, 20 MB.
MOST = 200
#: Bytes of an extract that are read.
LARGEST = 8 * 2**20


def write(folder: Path, document: Mapping[str, Any]) -> Path:
    """Write a run's extract into its folder, whole or not at all. Raises OSError."""
    return _write(folder / FILE, document)


def remember(history: Path, document: Mapping[str, Any]) -> None:
    """Add each profile of a run to its history, and remove the oldest entries. Raises OSError."""
    for name, part in document["profiles"].items():
        folder = history / folder_name(name)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(folder / f"{document['run']['id']}.json", {**document, "profiles": {name: part}})
        for old in sorted(folder.glob("*.json"))[:-MOST]:
            old.unlink(missing_ok=True)


def read(path: Path) -> dict[str, Any]:
    """The extract in a file, or of a run folder. Raises ExtractError in words for people, OSError."""
    found = path / FILE if path.is_dir() else path
    if not found.exists() and path.is_dir():
        raise ExtractError(
            f"{path} has no {FILE}: it is not a run folder, or one of an older pytest-vllm; make one with "
            f"pytest-vllm replay {path}"
        )
    if not found.exists():
        raise ExtractError(f"there is no {path}: give a run folder, its {FILE}, or PROFILE:{LAST_GOOD}")
    if found.stat().st_size > LARGEST:
        raise ExtractError(f"{found} is larger than {LARGEST // 2**20} MiB: it is not an extract")
    try:
        return checked(json.loads(found.read_text("utf-8")))
    except (RecursionError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ExtractError(f"{found}: it is not JSON ({type(error).__name__})") from error
    except ExtractError as error:
        raise ExtractError(f"{found}: {error}") from None


def runs(history: Path, profile: str) -> list[dict[str, Any]]:
    """Every extract of a profile that can be read, oldest first."""
    found = []
    for path in sorted((history / folder_name(profile)).glob("*.json")):
        try:
            document = read(path)
        except (ExtractError, OSError):
            continue
        if profile in document["profiles"]:
            found.append(document)
    return sorted(found, key=lambda one: str(one["run"].get("started", "")))


def profiles(history: Path) -> list[str]:
    """The profiles that have a history, as far as their folders tell."""
    return sorted(path.name for path in history.iterdir() if path.is_dir()) if history.is_dir() else []


def last_good(history: Path, profile: str, *, but: str = "") -> dict[str, Any]:
    """The newest run of a profile that was GO with every check of a gate. Raises ExtractError.

    Args:
        history: the folder of all histories.
        profile: its name.
        but: the id of a run that is not meant: what is compared with it came before.
    """
    every = [one for one in runs(history, profile) if one["run"]["id"] != but]
    for one in reversed(every):
        if one["profiles"].get(profile, {}).get("answer") == "GO" and _whole(one["run"]):
            return dict(one)
    none = "it has no other run yet" if but else "it has no run yet"
    why = "none was GO with all of its checks" if every else none
    raise ExtractError(f"{profile} has no {LAST_GOOD} run in {history}: {why}")


def with_reasons(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The extract of a run folder, with the reasons of its report, which only that folder has."""
    try:
        results = json.loads((folder / REPORT).read_text("utf-8"))["results"]
        reasons: dict[str, dict[str, str]] = {}
        for row in results:
            if row["verdict"] != "pass" and row["reason"]:
                reasons.setdefault(row["profile"], {})[row["check"]] = row["reason"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return document
    for name, part in document["profiles"].items():
        part["reasons"] = reasons.get(name, {})
    return document


def _whole(run: Mapping[str, Any]) -> bool:
    return not run.get("partial") and run.get("tier") != "smoke"


def folder_name(profile: str) -> str:
    """The folder of a profile's history: its name where any file system takes it."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", profile).strip(".") or "_"


def _write(path: Path, document: Mapping[str, Any]) -> Path:
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        fresh.write_text(json.dumps(document, ensure_ascii=True, separators=(",", ":")) + "\n", "utf-8")
        os.replace(fresh, path)  # noqa: PTH105 - the atomic one
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    return path
