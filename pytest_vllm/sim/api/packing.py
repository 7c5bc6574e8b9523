"""Numbers as pooling routes send them: plain, base64 or raw bytes, in one of several float types."""

from __future__ import annotations

import base64
import json
import struct
import sys
from bisect import bisect_left
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

Rows = list[Any]


def packed(values: Rows, body: dict[str, Any]) -> Any:
    """One output: a vector or a list of them, as `encoding_format` wants it."""
    if body.get("encoding_format", "float") == "float":
        return values
    return base64.b64encode(raw(values, body)).decode()


def raw(values: Rows, body: dict[str, Any]) -> bytes:
    """The bytes of an output in the type and the order of bytes that were asked for."""
    kind = body.get("embed_dtype") or "float32"
    order = body.get("endianness") or "native"
    little = sys.byteorder == "little" if order == "native" else order == "little"
    flat = list(chain.from_iterable(values)) if values and isinstance(values[0], list) else values
    mark = "<" if little else ">"
    if kind == "float32":
        return struct.pack(f"{mark}{len(flat)}f", *flat)
    if kind == "float16":
        return struct.pack(f"{mark}{len(flat)}e", *flat)
    if kind == "bfloat16":
        heads = [struct.unpack(">H", struct.pack(">f", value)[:2])[0] for value in flat]
        return struct.pack(f"{mark}{len(flat)}H", *heads)
    return bytes(_eighth(value, 3 if kind == "fp8_e4m3" else 2) for value in flat)


def bytes_reply(outputs: Sequence[Rows], body: dict[str, Any], head: dict[str, Any]) -> Reply:
    """All outputs as raw bytes, one after the other; a header has their places unless `bytes_only`."""
    texts = [raw(values, body) for values in outputs]
    items, at = [], 0
    for number, (values, text) in enumerate(zip(outputs, texts, strict=True)):
        items.append(
            {
                "index": number,
                "embed_dtype": body.get("embed_dtype") or "float32",
                "endianness": body.get("endianness") or "native",
                "start": at,
                "end": at + len(text),
                "shape": _shape(values),
            }
        )
        at += len(text)
    headers = [("content-type", "application/octet-stream")]
    if body["encoding_format"] == "bytes":
        headers.append(("metadata", json.dumps({**head, "data": items, "usage": head["usage"]})))
    return Reply(200, b"".join(texts), headers)


def _shape(values: Rows) -> list[int]:
    inner = [len(values[0])] if values and isinstance(values[0], list) else []
    return [len(values), *inner]


@cache
def _eighths(mantissa: int) -> tuple[list[float], list[int]]:
    """Every finite positive number of eight bits with so many of mantissa, in order, and its code."""
    bias = 7 if mantissa == 3 else 15
    last = 0x7E if mantissa == 3 else 0x7B
    numbers = []
    for code in range(last + 1):
        power, rest = code >> mantissa, (code & ((1 << mantissa) - 1)) / (1 << mantissa)
        numbers.append((1 + rest) * 2.0 ** (power - bias) if power else rest * 2.0 ** (1 - bias))
    return numbers, list(range(last + 1))


def _eighth(value: float, mantissa: int) -> int:
    numbers, codes = _eighths(mantissa)
    at = min(bisect_left(numbers, abs(value)), len(numbers) - 1)
    if at and abs(value) - numbers[at - 1] < numbers[at] - abs(value):
        at -= 1
    return codes[at] | (0x80 if value < 0 else 0)
