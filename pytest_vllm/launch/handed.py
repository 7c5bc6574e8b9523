"""What NCCL only hands on: a call of its own met a fault that another line names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.launch.words import Found, matches

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What it says of a call; and the faults that the call may have met.
_HANDED_ON = (
    (
        re.compile(r"unhandled (?:cuda|hip) error|ncclUnhandledCudaError|Cuda failure"),
        frozenset(
            {
                "illegal-memory-access",
                "device-lost",
                "device-assert",
                "no-kernel-image",
                "driver-too-old",
                "cuda-out-of-memory",
            }
        ),
    ),
    (re.compile(r"unhandled system error|ncclSystemError"), frozenset({"shm-too-small", "too-many-files"})),
)


def by_device(lines: Sequence[str], follower: Found) -> Found | None:
    """What failed, where NCCL says no more than that something did; a warning may be all that tells."""
    of = next((faults for words, faults in _HANDED_ON if words.search(follower.line)), None)
    if of is None:
        return None
    found = (one for n, text in enumerate(lines, 1) for one in matches(n, text, ran=True))
    return next((one for one in found if one.cause.id in of), None)
