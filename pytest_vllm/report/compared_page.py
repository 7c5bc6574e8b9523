"""The comparison of two runs as one page, in the look of the report. A view of its document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.report.compared import HEAVY, TITLES, greedy, of, speed_cells, who
from pytest_vllm.report.html import rendered

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What the page needs beside the report's own style.
STYLE = """h2.inline { display: inline; } summary { margin-top: 1.5rem; }
@media print { details { break-inside: avoid; } }
"""


def page(document: Mapping[str, Any]) -> str:
    """The HTML page of a comparison (`compare.comparison`)."""
    return rendered(
        "compared.html.j2",
        document,
        style=STYLE,
        sides={side: who(document[side]) for side in ("before", "after")},
        differences_of=differences_of(document),
    )


def differences_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """What the tables of a comparison need, in its page and in the report of a run of two servers."""
    groups = [(title, of(document, weight), weight in HEAVY) for weight, title in TITLES.items()]
    return {
        "groups": [group for group in groups if group[1]],
        "speed_rows": list(speed_cells(document["speeds"])),
        "sizes": document["sizes"],
        "greedy": document["greedy"],
        "said": greedy(document["greedy"]) if document["greedy"] else "",
        "who": who(document["before"]),
    }
