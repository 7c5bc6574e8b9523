"""Values with units as profiles write them, and back: durations, sizes, shares.

Base units: seconds, bytes, fractions of one. Plain numbers are already in base units. Everything raises
ValueError with a sentence that says what would be right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeGuard

_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_BYTES = {"": 1, "B": 1}
for _power, _prefix in enumerate("KMGT", start=1):
    _BYTES |= {f"{_prefix}B": 1000**_power, f"{_prefix}iB": 1024**_power}

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?\s*(?:ms|h|m|s)\s*)+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|h|m|s)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?i?B|)")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%(?:\s+of\s+([a-z-]+))?")
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:tok|tokens)/s")
_LOAD_PART = re.compile(r"(\d+(?:\.\d+)?)(k?)\s*(streams?|prompt|output)")
_SHM = re.compile(r"\d+(?:\.\d+)?\s*(?:[kmgt]i?b?|b)?", re.IGNORECASE)

#: What a share can be a share of: the ceiling that hardware and model allow.
SHARE_OF = ("ceiling",)


@dataclass(frozen=True)
class Share:
    """A bound relative to what the hardware and the model allow: `40 % of ceiling`."""

    fraction: float
    of: str = "ceiling"

    def __str__(self) -> str:
        """As it is written in a profile."""
        return f"{self.fraction * 100:g} % of {self.of}"


@dataclass(frozen=True)
class Load:
    """The load at which a limit holds.

    Args:
        streams: requests in flight.
        prompt: tokens of each prompt, None when unsaid.
        output: tokens of each answer, None when unsaid.
    """

    streams: int = 1
    prompt: int | None = None
    output: int | None = None


def seconds(value: object) -> float:
    """A duration: `15m`, `2h30m`, `900ms`, or a number of seconds."""
    if _number(value):
        return _positive(value, 'a duration is not negative: "15m", "900ms", "2h30m" or a number of seconds')
    if isinstance(value, str) and _DURATION.fullmatch(value.strip()):
        return sum(float(count) * _SECONDS[unit] for count, unit in _DURATION_PART.findall(value))
    raise ValueError('not a duration, such as "15m", "900ms" or "2h30m"')


def in_bytes(value: object) -> int:
    """A size: `16GiB` (2**30), `40 GB` (10**9), or a number of bytes."""
    if _number(value):
        return int(_positive(value, 'a size is not negative: "16GiB", "40 GB" or a number of bytes'))
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or found[2] == "iB":
        raise ValueError('not a size, such as "16GiB", "40 GB" or "512MiB"')
    return round(float(found[1]) * _BYTES[found[2]])


def fraction(value: object) -> float:
    """A share of one: `5 %` or `0.05`."""
    if _number(value) and 0 <= float(value) <= 1:
        return float(value)
    found = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or found[2] or float(found[1]) > 100:
        raise ValueError('not a share, such as "5 %" or 0.05')
    return float(found[1]) / 100


def tokens_per_second(value: object) -> float:
    """A speed: `6 tok/s`, or a number of tokens per second."""
    if _number(value):
        return _positive(value, 'a speed is not negative: "6 tok/s" or a number of tokens per second')
    found = _RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError('not a speed, such as "6 tok/s" or 6.0')
    return float(found[1])


def count(value: object) -> float:
    """A whole number of things."""
    if _number(value) and float(value) >= 0 and float(value).is_integer():
        return float(value)
    raise ValueError("not a whole number, such as 271360")


def share(value: object) -> Share | None:
    """`40 % of ceiling` as a structured bound; None for values that are not a share of something."""
    if isinstance(value, Share):
        return value
    if isinstance(value, dict) and value.keys() == {"fraction", "of"}:
        return Share(float(value["fraction"]), str(value["of"]))
    found = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or not found[2]:
        return None
    if found[2] not in SHARE_OF:
        raise ValueError(f'a share of {found[2]!r} is not known, only "40 % of ceiling"')
    return Share(float(found[1]) / 100, found[2])


def load(text: str) -> Load:
    """The load of a limit: `64 streams`, `2k prompt`, `8 streams, 2k prompt, 128 output` (k is 1,000)."""
    found: dict[str, int] = {}
    for part in text.split(","):
        match = _LOAD_PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(
                'not a load, such as "64 streams", "2k prompt" or "8 streams, 2k prompt, 128 output"'
            )
        amount = float(match[1]) * (1000 if match[2] else 1)
        found[match[3].rstrip("s")] = int(amount)
    return Load(found.get("stream", 1), found.get("prompt"), found.get("output"))


def shared_memory(value: str) -> str:
    """Docker's own notation, where `64g` and `64gb` both mean GiB; checked, kept as written."""
    if not _SHM.fullmatch(value.strip()):
        raise ValueError('not a size as `docker run --shm-size` takes it, such as "16g"')
    return value


def duration_text(value: float) -> str:
    """Seconds as a profile writes them: 900.0 -> `15m`, 0.5 -> `500ms`."""
    whole = round(value * 1000)
    parts = []
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        amount, whole = divmod(whole, size)
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts) or "0s"


def size_text(value: float) -> str:
    """Bytes as people read them: `66.3 GiB`; exact multiples lose the fraction."""
    for unit, size in (("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if value >= size:
            return f"{value / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{value:.0f} B"


def _number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _positive(value: float, message: str) -> float:
    if not 0 <= value < float("inf"):
        raise ValueError(message)
    return float(value)
