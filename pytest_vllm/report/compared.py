"""A comparison of two runs as terminal text and as Markdown. Views of its JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.report.markdown import code, plain
from pytest_vllm.report.text import clip, count, printable, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WIDTH = 100
#: From here on a size is written without decimals.
WHOLE = 1e5
#: Differences of each weight that are shown; JSON has them all.
MOST = 25
#: Differences that a run of two servers prints of each weight.
SHOWN = {"breaks clients": 10, "speed": 10, "behaviour": 5}
HEAD = "| what | before | after | consequence |\n|---|---|---|---|\n"
SPEED_HEAD = "| load | figure | before | after | ratio |\n|---|---|---:|---:|---:|\n"
HEAVY = ("breaks clients", "behaviour", "speed")
TITLES = {
    "breaks clients": "Breaks clients",
    "behaviour": "Behaviour",
    "speed": "Speed",
    "for information": "For information",
}


def text(document: Mapping[str, Any], *, every: bool = False) -> str:
    """The comparison for a terminal; those for information as counts unless `every` is asked for."""
    lines = [f"{name:7} {who(document[name])}" for name in ("before", "after")]
    lines += ["", f"{document['answer']['text']}."]
    for what, why in document["not_compared"].items():
        lines.append(f"not compared: {what}, because {why}")
    for weight, title in TITLES.items():
        rows = of(document, weight)
        if rows and (every or weight in HEAVY):
            lines += ["", f"{title}: {len(rows)}"]
            shown = rows if every else rows[:MOST]
            lines += [line for row in shown for line in _lines(row)]
            lines += [f"  … {len(rows) - MOST} more; --all shows them"] if len(rows) > len(shown) else []
        elif rows:
            lines += ["", f"{title}: {len(rows)} ({_areas(rows)}); --all shows them"]
    lines += _speed_lines(document)
    lines += _size_lines(document)
    said = document["greedy"]
    if said:
        lines += ["", f"greedy answers: {greedy(said)}"]
    return "\n".join(printable(line) for line in lines) + "\n"


def beside(document: Mapping[str, Any] | None, why: str, width: int) -> list[str]:
    """The comparison with an older server under a verdict: what weighs most of it, and the speeds.

    Args:
        document: the comparison; None where there is none.
        why: why there is none.
        width: columns.
    """
    if document is None:
        return wrap(printable(f"not compared with the older server: {why}"), width)
    lines = wrap(printable(f"compared with {who(document['before'])}"), width)
    lines += _indented(document["answer"]["text"], width)
    for weight, most in SHOWN.items():
        rows = of(document, weight)
        lines += [f"  {TITLES[weight]}: {len(rows)}"] if rows else []
        lines += [
            piece
            for row in rows[:most]
            for line in _lines(row, unbroken=True)
            for piece in _hung(line, width)
        ]
        lines += [f"    … {len(rows) - most} more in report.html"] if len(rows) > most else []
    for what, why_not in document["not_compared"].items():
        lines += _indented(f"not compared: {what}, because {why_not}", width)
    return [clip(printable(line), width) for line in [*lines, *_speed_lines(document, width)[1:]]]


def _hung(line: str, width: int) -> list[str]:
    """A line of a list, what does not fit below it."""
    text = line.lstrip()
    begin = len(line) - len(text) + 2
    first, *rest = wrap(printable(text), width - begin - 2)
    return [f"{' ' * begin}{first}", *(f"{' ' * (begin + 2)}{one}" for one in rest)]


def _indented(text: str, width: int) -> list[str]:
    return [f"  {line}" for line in wrap(printable(text), width - 2)]


def summary(document: Mapping[str, Any]) -> str:
    """The same for a CI job's page: a table of what weighs most, and the speeds."""
    rows = [row for weight, most in SHOWN.items() for row in of(document, weight)[:most]]
    left = sum(len(of(document, weight)) for weight in SHOWN) - len(rows)
    blocks = [
        f"### Compared with {plain(who(document['before']))}",
        f"{plain(document['answer']['text'])}.",
    ]
    if rows:
        lines = [_row(row) for row in rows]
        lines += [f"| … {left} more in report.html |  |  |  |"] if left else []
        blocks.append(HEAD + "\n".join(lines))
    if document["speeds"]:
        cells = [f"| {' | '.join(map(plain, row))} |" for row in speed_cells(document["speeds"][:MOST])]
        blocks.append(SPEED_HEAD + "\n".join(cells))
    return "\n\n".join(blocks)


def markdown(document: Mapping[str, Any]) -> str:
    """The comparison for a CI summary."""
    blocks = [f"## {plain(document['answer']['text'])}"]
    blocks.append("\n".join(f"- {name}: {plain(who(document[name]))}" for name in ("before", "after")))
    left_out = [
        f"- Not compared: {plain(what)}, because {plain(why)}"
        for what, why in document["not_compared"].items()
    ]
    blocks += ["\n".join(left_out)] if left_out else []
    for weight, title in TITLES.items():
        rows = of(document, weight)
        if rows:
            lines = [_row(row) for row in rows[:MOST]]
            lines += [f"| … {len(rows) - MOST} more |  |  |  |"] if len(rows) > MOST else []
            table = HEAD + "\n".join(lines)
            if weight in HEAVY:
                blocks.append(f"### {title}: {len(rows)}\n\n{table}")
            else:
                blocks.append(f"<details><summary>{title}: {len(rows)}</summary>\n\n{table}\n\n</details>")
    if document["speeds"]:
        lines = [f"| {' | '.join(map(plain, cells))} |" for cells in speed_cells(document["speeds"])]
        blocks.append("### Speeds\n\n" + SPEED_HEAD + "\n".join(lines[: 2 * MOST]))
    if document["greedy"]:
        blocks.append(f"Greedy answers: {plain(greedy(document['greedy']))}")
    return "\n\n".join(blocks) + "\n"


def who(side: Mapping[str, Any]) -> str:
    """`0.32.0 on sim, run 2026…, 2026-11-29: GO`, with what qualifies it."""
    marks = [mark for mark, on in (("simulated", side["simulated"]), ("partial", side["partial"])) if on]
    build = f"+{side['commit'][:9]}" if side["commit"] and side["commit"] not in side["version"] else ""
    version = f"vLLM {side['version']}{build}" if side["version"] else "vLLM of unknown version"
    mark = f" ({', '.join(marks)})" if marks else ""
    return f"{version}, {side['model']}, profile {side['profile']}, run {side['run']}: {side['answer']}{mark}"


def of(document: Mapping[str, Any], weight: str) -> list[Mapping[str, Any]]:
    """The differences of a weight, in the document's order."""
    return [row for row in document["differences"] if row["weight"] == weight]


def greedy(said: Mapping[str, Any]) -> str:
    """How many greedy answers differ, in one line."""
    parts = [f"{said['differ']} of {said['asked']} differ"]
    if said["lone"]:
        parts.append(f"{said['lone_differ']} of the {said['lone']} that had the server to themselves")
    if said["near"]:
        parts.append(f"{said['near']} where two tokens were close")
    if said["drift"] is not None:
        parts.append(
            f"log probabilities of equal prompts {said['drift']:.3g} nats apart on average "
            f"({said['scored']} tokens)"
        )
    return ", ".join(parts)


def speed_cells(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str, str, str]]:
    """Load, figure, before, after and ratio of each speed, as text."""
    for row in rows:
        ratio = row["ratio"]
        last = row["why"]
        if ratio:
            last = (
                f"{ratio['value']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f}) {row['change']}".rstrip()
            )
        yield row["load"], row["figure"], _interval(row["before"]), _interval(row["after"]), last


def _interval(ends: Mapping[str, Any]) -> str:
    value = f"{ends['value']:.4g}"
    return (
        value
        if ends["low"] is None or ends["high"] is None
        else f"{value} ({ends['low']:.4g} to {ends['high']:.4g})"
    )


def change(row: Mapping[str, Any]) -> str:
    """`pass → fail`, `added null`, `removed …`, as far as the row tells."""
    before, after = row["before"], row["after"]
    if before and after:
        return f"{before} → {after}"
    return f"was {before}" if before else after


def verdict_of(row: Mapping[str, Any]) -> str:
    """What became of a check, and its level: `broken MUST`, `not asked now SHOULD`; empty for all else."""
    if not row["change"]:
        return ""
    ends = {"not-run": "not asked now", "undecided": "undecided now"}
    word = ends.get(row["after"], row["change"]) if row["change"] == "broken" else row["change"]
    return f"{word} {row['level']}"


def amount(value: float) -> str:
    """A size for people: every digit of what is large, six of what is not."""
    return f"{value:,.0f}" if abs(value) >= WHOLE else f"{value:,.6g}"


def _lines(row: Mapping[str, Any], *, unbroken: bool = False) -> Iterator[str]:
    """A difference and what it means; `unbroken`: each on one line, for whoever wraps them."""
    mark = f"{verdict_of(row)} " if row["change"] else ""
    told = change(row)
    yield clip(f"  {mark}{row['what']}: {told}" if told else f"  {mark}{row['what']}", 2 * WIDTH)
    for part in (row["means"], row["source"] and f"known: {row['source']}"):
        if part:
            words = clip(" ".join(part.split()), 3 * WIDTH)
            for line in [words] if unbroken else wrap(words, WIDTH - 6):
                yield f"      {line}"


def _row(row: Mapping[str, Any]) -> str:
    what = f"{verdict_of(row)} {row['what']}".strip()
    means = "; ".join(part for part in (row["means"], row["source"]) if part)
    cells = [plain(clip(" ".join(cell.split()), 2 * WIDTH)) for cell in (what,)]
    cells += [code(cell).replace("|", "\\|") if cell else "" for cell in (row["before"], row["after"])]
    cells.append(plain(clip(" ".join(means.split()), 3 * WIDTH)))
    return f"| {' | '.join(cells)} |"


def _areas(rows: Sequence[Mapping[str, Any]]) -> str:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["area"]] = counts.get(row["area"], 0) + 1
    return ", ".join(f"{area} {number}" for area, number in counts.items())


def _speed_lines(document: Mapping[str, Any], width: int = 0) -> list[str]:
    """The speeds as a table; where it is wider than `width`, one by one, since the ratio stands last."""
    cells = [("load", "figure", "before", "after", "ratio"), *speed_cells(document["speeds"])]
    if len(cells) == 1:
        return []
    widths = [max(len(row[place]) for row in cells) for place in range(5)]
    table = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    head = ["", f"Speeds: {count(len(cells) - 1, 'figure')}"]
    if not width or max(map(len, table)) + 2 <= width:
        return [*head, *(f"  {line}" for line in table)]
    for load, figure, before, after, ratio in cells[1:]:
        head += _hung(f"  {load}, {figure}: {before} → {after}; {ratio}", width)
    return head


def _size_lines(document: Mapping[str, Any]) -> list[str]:
    rows = document["sizes"]
    return (
        [
            "",
            "Start and memory",
            *(
                f"  {row['figure']:36} {amount(row['before']):>14}  {amount(row['after']):>14}  {row['unit']}"
                for row in rows
            ),
        ]
        if rows
        else []
    )
