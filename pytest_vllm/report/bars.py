"""What was measured against a promise, as rows with a bar: the value, how sure it is, where the promise lies.

Read from what checks observe, as `Measured.shown` writes it: name, value, what it is held to, both ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_NUMBER = r"[0-9.]+(?:e[+-]?[0-9]+)?"
_SHOWN = re.compile(
    rf"(?P<name>[\w-]+) (?P<value>{_NUMBER})(?P<unit> s)?"
    rf"(?:, floor (?P<floor>{_NUMBER})(?: s)?)?(?:, limit (?P<limit>{_NUMBER})(?: s)?)?"
    rf" \((?P<low>{_NUMBER}) to (?P<high>{_NUMBER}), "
)
WIDTH, HEIGHT = 220, 18
#: The bar of what is as good as promised ends here, as a share of the width.
SHARE = 0.6


@dataclass(frozen=True)
class Bar:
    """One figure beside its promise, all in the figure's unit.

    Args:
        name: the figure, `decode-tok-s`.
        value: the estimate.
        low: lower end of its interval.
        high: upper end.
        floor: the least that was promised; None without one.
        limit: the most that was promised; None without one.
        unit: `s` or empty.
    """

    name: str
    value: float
    low: float
    high: float
    floor: float | None
    limit: float | None
    unit: str = ""

    @property
    def promise(self) -> str:
        """`at least 6`, `at most 0.5 s`."""
        unit = f" {self.unit}" if self.unit else ""
        said = [f"at least {self.floor:.4g}{unit}"] if self.floor is not None else []
        return " and ".join([*said, *([f"at most {self.limit:.4g}{unit}"] if self.limit is not None else [])])

    @property
    def observed(self) -> str:
        """`3.3 (3.1 to 3.5)`, with the unit."""
        return f"{self.value:.4g}{f' {self.unit}' if self.unit else ''} ({self.low:.4g} to {self.high:.4g})"

    def svg(self, verdict: str) -> str:
        """The bar, coloured by the verdict: its interval as a thin line, the promise as an upright one."""
        bounds = [bound for bound in (self.floor, self.limit) if bound]
        scale = SHARE * WIDTH / max(bounds) if bounds else SHARE * WIDTH / max(self.value, 1e-9)

        def at(value: float) -> float:
            return round(min(value * scale, WIDTH - 2.0), 1)

        middle = HEIGHT / 2
        said = quoteattr(f"{self.name} {self.observed}, promised {self.promise}")
        marks = "".join(
            f'<line class="promise" x1="{at(bound)}" x2="{at(bound)}" y1="1" y2="{HEIGHT - 1}"/>'
            for bound in bounds
        )
        ends = f'x1="{at(self.low)}" x2="{at(self.high)}" y1="{middle}" y2="{middle}"'
        return (
            f'<svg class="gauge" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
            f'aria-label={said}><rect class={quoteattr(verdict)} x="0" y="5" width="{at(self.value)}" '
            f'height="{HEIGHT - 10}"/><line class="sure" {ends}/>{marks}</svg>'
        )


def bars(row: Mapping[str, Any]) -> list[Bar]:
    """What a result of `report.json` measured against a promise, in the order in which it was observed."""
    return [bar for text in row["observations"].values() for bar in _read(str(text)) if bar.promise]


def measured(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The table: a row for each bar, and for each check of speeds that did not pass and has none.

    Args:
        rows: the results of the family performance, in the order of the page.
    """
    made: list[dict[str, Any]] = []
    for row in rows:
        facts = {"check": row["check"], "profile": row["profile"], "verdict": row["verdict"]}
        found = bars(row)
        mine = [
            {"observed": f"{one.name} {one.observed}", "promise": one.promise, "bar": one} for one in found
        ]
        if row["verdict"] not in ("pass", "not-run"):
            mine = [{**(mine or [{"promise": "", "bar": None}])[0], "observed": row["reason"]}, *mine[1:]]
        made += [{**facts, **one} for one in mine]
    return made


def _read(text: str) -> Iterator[Bar]:
    for found in _SHOWN.finditer(text):
        part = found.groupdict()
        floor, limit = (None if part[name] is None else float(part[name]) for name in ("floor", "limit"))
        value, low, high = (float(part[name]) for name in ("value", "low", "high"))
        yield Bar(part["name"], value, low, high, floor, limit, (part["unit"] or "").strip())
