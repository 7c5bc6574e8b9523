"""The version of a vLLM: one meaning for checks, waivers, preflight, facts and the simulator.

A version is its release (`0.32.0`) and its post release (`0.8.5.post1`), nothing else:

- A pre-release or development build (`0.33.0rc1`, `0.33.0.dev17+g1a2b3c`, `0.33.0rc2.dev5`) counts as the
  release it leads to, whose code it mostly has.
- What a vendor or fork adds (`+cu130`, `+cpu`, `+nv25.09`, `+rocm700`, `-foo`, `.foo`) does not count.
- A leading `v` does not count; `0.32` is `0.32.0`.
- A text without such a number in front (``""``, `latest`, `nightly`, `dev`, a commit): unknown.

So whatever begins at 0.33 (a check, a waiver, a flag) begins with 0.33.0rc1 for all of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, total_ordering

from packaging.specifiers import InvalidSpecifier, SpecifierSet

_TEXT = re.compile(r"v?(\d+(?:\.\d+)+)(?:[._-]?post(\d+))?(?![0-9])", re.IGNORECASE)
_PARTS = 4


@total_ordering
@dataclass(frozen=True)
class Version:
    """A release of vLLM; compares with others by what counts.

    Args:
        text: as somebody wrote it.

    Raises ValueError for a text that is not a version.
    """

    text: str = field(compare=False)
    numbers: tuple[int, ...] = field(init=False)
    post: int = field(init=False)

    def __post_init__(self) -> None:
        """Read what counts."""
        found = _TEXT.match(self.text.strip())
        if found is None:
            raise ValueError(f"{self.text!r} is not a version: write it like 0.32.0")
        numbers = [int(part) for part in found[1].split(".")]
        object.__setattr__(self, "numbers", tuple(numbers + [0] * (_PARTS - len(numbers))))
        object.__setattr__(self, "post", int(found[2] or 0))

    def __str__(self) -> str:
        """What counts of it: `0.32.0`, `0.8.5.post1`."""
        numbers = list(self.numbers)
        while len(numbers) > 3 and numbers[-1] == 0:
            numbers.pop()
        return ".".join(map(str, numbers)) + (f".post{self.post}" if self.post else "")

    def __lt__(self, other: object) -> bool:
        """Whether it is older."""
        if not isinstance(other, Version):
            return NotImplemented
        return (self.numbers, self.post) < (other.numbers, other.post)

    def within(self, versions: str) -> bool:
        """Whether it lies in a range such as `>=0.27,<0.31`. Raises ValueError for other texts."""
        return span(versions).contains(str(self))


@cache
def version_of(text: str | None) -> Version | None:
    """The version that a text names; None when it names none (`latest`, a commit, nothing)."""
    try:
        return Version(text or "")
    except ValueError:
        return None


@cache
def span(versions: str) -> SpecifierSet:
    """A range of versions, its bounds read as versions are; "" holds all. Raises ValueError otherwise."""
    try:
        given = SpecifierSet(versions)
        bounds = [f"{one.operator}{_bound(one.version)}" for one in given]
    except (InvalidSpecifier, ValueError) as error:
        raise ValueError(f"{versions!r} is not a range of versions: write it like >=0.27,<0.31") from error
    return SpecifierSet(",".join(bounds))


def _bound(text: str) -> str:
    if text.endswith(".*"):
        return text
    return str(Version(text if "." in text else f"{text}.0"))
