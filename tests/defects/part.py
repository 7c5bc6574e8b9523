"""Which checks judge a broken server that is booted: a part of them, for its time, or all.

Recording everything anew takes seconds for each of a hundred servers. So the part is: every check of the
defect's area, every check that the defect names, the areas that tell whether a server lives, and a fixed
sample of all others: by the checksum of its key, whatever the defect is. What that makes a server answer is
then judged by every check it is enough for. Loads are measured only for the areas of speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from pytest_vllm.decide.verdict import SIGNS_OF_LIFE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.sim.defects.registry import Defect
    from tests.defects.judging import Check

#: One check in so many, of those outside of the defect's area.
SAMPLE = 6
#: A check over more exchanges than these is in no sample: one of them would ask for half the plan.
WIDE = 8


def part_for(defect: Defect, checks: Sequence[Check]) -> list[Check]:
    """The checks that judge this defect when it is booted, in order."""
    vital = {check.area for check in checks if check.spec.id in SIGNS_OF_LIFE}
    named = {check.area for check in checks if check.spec.id in defect.catches}

    def asks(check: Check) -> bool:
        if check.area in {defect.area, *vital} or check.spec.id in defect.catches:
            return True
        return len(check.exchanges) <= WIDE and crc32(check.key.encode()) % SAMPLE == 0

    wanted = [check for check in checks if not check.measured or check.area in {defect.area, *named}]
    asked = {key for check in wanted if asks(check) for key in check.exchanges}
    return [check for check in wanted if asked.issuperset(check.exchanges)]
