"""The recordings of a run, as checks get them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import NotRun, Undecided
from pytest_vllm.wire.store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_vllm.wire.recording import Recording
    from pytest_vllm.wire.store import RecordingStore


def fitting(found: Sequence[Recording]) -> list[Recording]:
    """Those that fit the server and say something of it.

    Raises NotRun with the first one's reason when none fits, Undecided when of those none says anything.
    """
    kept = [one for one in found if one.failure is not Failure.UNFIT]
    if found and not kept:
        raise NotRun(f"{found[0].key}: {found[0].error}")
    told = [one for one in kept if one.failure is None or not one.failure.ours]
    if kept and not told:
        raise Undecided(kept[0].error)
    return told


def without_evidence(found: Iterable[Recording]) -> str:
    """Why what these leave open keeps a check from having passed; empty when they leave nothing open."""
    open_ = [one for one in found if one.failure is not None and one.failure.ours]
    return open_[0].error if open_ else ""


class Recordings:
    """Recordings by key; a missing one is undecided, never an error of the check."""

    def __init__(self, store: RecordingStore) -> None:
        """Read from a store that is complete; no recording is read until it is asked for."""
        self._store = store
        self._keys = sorted(store.keys())

    @classmethod
    def these(cls, rows: Iterable[Recording]) -> Self:
        """Recordings that are at hand already."""
        return cls(MemoryStore(rows))

    def get(self, key: str) -> Recording:
        """The recording of that key. Raises Undecided when there is none, NotRun when it does not fit."""
        if key not in self._store:
            raise Undecided(f"{key} was not recorded in this run")
        return fitting([self._store.get(key)])[0]

    def of(self, prefix: str) -> list[Recording]:
        """Every recording whose key begins so, by key, without those that do not fit the server.

        Raises Undecided when there is none, NotRun when none fits.
        """
        keys = [key for key in self._keys if key.startswith(prefix)]
        if not keys:
            raise Undecided(f"no exchange of {prefix} was recorded in this run")
        return fitting([self._store.get(key) for key in keys])
