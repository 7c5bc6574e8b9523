"""Which vLLM an image holds, as far as its name says: only some tags count vLLM's releases.

The table `lineage.json` says for each maker of images what its tags mean, with where that is written.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_RELEASE = re.compile(r"v?(\d+\.\d+(?:\.\d+)*(?:\.?post\d+|rc\d+)?)(?![\d.])")
_NAMED = re.compile(r"(?:^|[-_.])vllm[-_]?v?(\d+\.\d+(?:\.\d+)*(?:\.?post\d+|rc\d+)?)(?![\d.])")
_TABLE = Path(__file__).parent / "lineage.json"


@dataclass(frozen=True)
class Lineage:
    """What is known of an image.

    Args:
        maker: who builds it; empty when nobody in the table does.
        version: the vLLM inside; empty when the name does not say it.
        known: whether the maker's tags count vLLM's releases.
    """

    maker: str = ""
    version: str = ""
    known: bool = False


@cache
def _rows() -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(_TABLE.read_text("utf-8"))["entries"])


def lineage(image: str | None) -> Lineage:
    """Where an image comes from, and which vLLM it holds.

    Args:
        image: a name as `docker run` takes it; None for none.
    """
    rest = (image or "").partition("@")[0]
    repository, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        repository, tag = rest, ""
    for row in _rows():
        if re.search(row["repository"], repository):
            return _of(row, tag)
    named = _NAMED.search(tag)
    return Lineage(version=named[1] if named else "")


def _of(row: dict[str, Any], tag: str) -> Lineage:
    if row["tag"] == "vllm":
        found = _RELEASE.match(tag)
        return Lineage(row["maker"], found[1] if found else "", known=True)
    if row["tag"] == "listed":
        hits = [
            one
            for start, one in row["versions"].items()
            if re.match(rf"{re.escape(start)}(?!\d|\.post)", tag)
        ]
        return Lineage(row["maker"], hits[0] if hits else "")
    named = _NAMED.search(tag)
    return Lineage(row["maker"], named[1] if named else "")
