"""Speculative decoding: tokens are drafted in every decoding step, and some of them are right."""

from __future__ import annotations

from dataclasses import dataclass, field

#: Drafted tokens that are right, step after step: one and a half on average.
RIGHT = (1, 3, 0, 2)


@dataclass
class Drafts:
    """`size` tokens are drafted each time, 0 for none; `accepted` counts by position in the draft.

    Where drafts are `as_matched`, as those of suffix decoding are, `size` is the most: drafted are as many as
    the text so far was seen before, so one more than was right the last time.
    """

    size: int = 0
    as_matched: bool = False
    made: int = 0
    tokens: int = 0
    accepted: list[int] = field(init=False)
    _matched: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        """Nothing accepted yet."""
        self.accepted = [0] * self.size

    @property
    def next(self) -> int:
        """Tokens that the next draft has."""
        return min(self.size, self._matched) if self.as_matched else self.size

    def right(self, room: int) -> int:
        """Draft once; how many tokens are right, `room` at most."""
        drafted = self.next
        if not drafted:
            return 0
        good = min(RIGHT[self.made % len(RIGHT)], drafted, room)
        self.made += 1
        self.tokens += drafted
        self._matched = good + 1
        for position in range(good):
            self.accepted[position] += 1
        return good
