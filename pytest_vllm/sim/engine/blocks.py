"""The KV cache: blocks, and which of them hold a known prefix."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

Key = int


def block_keys(
    ids: Sequence[int], size: int, salt: Hashable, start: Key | None = None, begin: int = 0
) -> list[Key]:
    """A key per full block of `ids` from token `begin` on; it stands for the block and all before it."""
    keys: list[Key] = []
    previous = hash(("first", hash_of(salt))) if start is None else start
    for at in range(begin, len(ids) - size + 1, size):
        previous = hash((previous, tuple(ids[at : at + size])))
        keys.append(previous)
    return keys


def hash_of(salt: Hashable) -> int:
    """A stable number for a salt: Python's own string hash differs between runs."""
    number = 0
    for char in repr(salt):
        number = (number * 1000003 + ord(char)) & 0xFFFFFFFFFFFF
    return number


class BlockPool:
    """Counts blocks: blank ones, cached ones that nobody uses (oldest first), and used ones."""

    def __init__(self, blocks: int) -> None:
        """One block of the given number is kept back, as in vLLM."""
        self.total = max(1, blocks - 1)
        self.blank = self.total
        self.users: dict[Key, int] = {}
        self.idle: OrderedDict[Key, None] = OrderedDict()

    @property
    def available(self) -> int:
        """Blocks that can be taken."""
        return self.blank + len(self.idle)

    @property
    def usage(self) -> float:
        """Used fraction of the cache."""
        return 1 - self.available / self.total

    def known_prefix(self, keys: Sequence[Key]) -> int:
        """How many leading blocks are in the cache."""
        count = 0
        for key in keys:
            if key not in self.users:
                break
            count += 1
        return count

    def pin(self, keys: Sequence[Key]) -> None:
        """Use cached blocks."""
        for key in keys:
            self.users[key] += 1
            self.idle.pop(key, None)

    def take(self, count: int) -> bool:
        """Take blocks for new content, the longest unused cached ones last. False when too few are left."""
        if count > self.available:
            return False
        from_blank = min(count, self.blank)
        self.blank -= from_blank
        for _ in range(count - from_blank):
            key, _ = self.idle.popitem(last=False)
            del self.users[key]
        return True

    def remember(self, key: Key) -> bool:
        """A taken block is full now: it can be found by its key. False when another block has that key."""
        if key in self.users:
            return False
        self.users[key] = 1
        return True

    def release(self, keys: Sequence[Key], plain: int) -> None:
        """Give back blocks: remembered ones stay findable, the last of them is dropped first."""
        self.blank += plain
        for key in reversed(keys):
            self.users[key] -= 1
            if self.users[key] == 0:
                self.idle[key] = None

    def forget(self) -> bool:
        """Drop all cached prefixes. False while any block is in use."""
        if self.available != self.total:
            return False
        self.blank, self.users = self.total, {}
        self.idle.clear()
        return True
