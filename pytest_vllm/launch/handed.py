"""What NCCL only hands on: a call of its own met a fault of the device, which another line names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.launch.words import Found, matches

if TYPE_CHECKING:
    from collections.abc import Sequence

_HANDED_ON = re.compile(r"unhandled (?:cuda|hip) error|ncclUnhandledCudaError|Cuda failure")
_OF_DEVICES = frozenset(
    {"illegal-memory-access", "device-lost", "device-assert", "no-kernel-image", "driver-too-old"}
)


def by_device(lines: Sequence[str], follower: Found) -> Found | None:
    """What the device failed of, where NCCL says no more than that; a warning may be all that tells."""
    if not _HANDED_ON.search(follower.line):
        return None
    found = (one for n, text in enumerate(lines, 1) for one in matches(n, text, ran=True))
    return next((one for one in found if one.cause.id in _OF_DEVICES), None)
