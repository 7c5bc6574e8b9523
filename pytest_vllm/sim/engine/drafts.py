"""Speculative decoding: tokens are drafted in every decoding step, and some of them are right."""

from __future__ import annotations

from dataclasses import dataclass, field

#: Drafted tokens that are accepted, step after step: one and a half of three on average.
ACCEPTED = (1, 3, 0, 2)


@dataclass
class Drafts:
    """`size` tokens are drafted each time, 0 for none; `accepted` counts by position in the draft."""

    size: int = 0
    made: int = 0
    accepted: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Nothing accepted yet."""
        self.accepted = [0] * self.size

    def right(self, room: int) -> int:
        """Draft once; how many tokens are right, `room` at most."""
        if not self.size:
            return 0
        good = min(ACCEPTED[self.made % len(ACCEPTED)], self.size, room)
        self.made += 1
        for position in range(good):
            self.accepted[position] += 1
        return good
