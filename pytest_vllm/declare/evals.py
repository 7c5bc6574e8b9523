"""Questions with known answers: how they are written down, how answers are scored, what a floor says. Pure.

A file holds one JSON object a line, as OpenAI's evals write them: `input` (a text, or chat messages), `ideal`
(one right answer or several), and if need be `id` and `schema`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pytest_vllm.declare.jsonlines import json_lines
from pytest_vllm.wire.recording import NotRun, Recording, Undecided

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Scorer = Callable[[str, Mapping[str, Any]], bool]
Scoring = Literal["exact", "includes", "regex", "schema"] | Scorer
#: Standard deviations of a two-sided interval of 95 %.
Z = 1.959964
SHOWN = 3
_COUNT = re.compile(r"(\d+) of (\d+)")
_SHARE = re.compile(r"(\d+(?:\.\d+)?) ?%")


@dataclass(frozen=True)
class Floor:
    """How many answers must be right.

    Args:
        text: as it is written: `18 of 20`, or `90 %`.
        share: the same, from 0 to 1.
        counted: whether these very questions are meant, instead of all that they stand for.
    """

    text: str
    share: float
    counted: bool

    @classmethod
    def of(cls, text: str) -> Floor:
        """`18 of 20` or `90 %`. Raises ValueError for anything else."""
        if (count := _COUNT.fullmatch(text.strip())) and 0 < int(count[2]) >= int(count[1]):
            return cls(text, int(count[1]) / int(count[2]), counted=True)
        if (share := _SHARE.fullmatch(text.strip())) and float(share[1]) <= 100:
            return cls(text, float(share[1]) / 100, counted=False)
        raise ValueError(
            f"floor {text!r}: write '18 of 20' (of these questions) or '90 %' (of all like them)"
        )


def wilson(right: int, total: int) -> tuple[float, float]:
    """The interval of 95 % of a share, from 0 to 1 (Wilson 1927). Raises ValueError without a total."""
    if total < 1:
        raise ValueError("a share of nothing has no interval")
    share, z2 = right / total, Z * Z
    centre = share + z2 / (2 * total)
    reach = Z * math.sqrt(share * (1 - share) / total + z2 / (4 * total * total))
    return max(0.0, (centre - reach) / (1 + z2 / total)), min(1.0, (centre + reach) / (1 + z2 / total))


@dataclass(frozen=True)
class Score:
    """How a set of questions was answered.

    Args:
        right: how many answers are right.
        total: how many questions were asked.
        floor: how many must be right.
        wrong: of each wrong answer its key and what was said.
        unanswered: of each question without a whole answer its key and why.
    """

    right: int
    total: int
    floor: Floor
    wrong: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = field(default=())

    @property
    def interval(self) -> tuple[float, float]:
        """What the share of right answers may be over all such questions, 95 %."""
        return wilson(self.right, self.total)

    @property
    def words(self) -> str:
        """`17 of 20 right (85 %; 95 % interval 64 to 95 %), floor 18 of 20`."""
        low, high = self.interval
        share = f"{100 * self.right / self.total:.0f} %; 95 % interval {100 * low:.0f} to {100 * high:.0f} %"
        return f"{self.right} of {self.total} right ({share}), floor {self.floor.text}"

    def judge(self) -> None:
        """Raise AssertionError below the floor, Undecided where that is not sure.

        A question without a whole answer is neither right nor wrong: it counts only where it cannot matter.
        """
        worst, best = self._held(self.right), self._held(self.right + len(self.unanswered))
        if worst is best is True:
            return
        if worst is best is False:
            listed = "\n".join(self.wrong[:SHOWN])
            more = f"\n… {len(self.wrong) - SHOWN} more" if len(self.wrong) > SHOWN else ""
            raise AssertionError(f"{self.words}\n{listed}{more}")
        reasons = "; ".join(self.unanswered[:SHOWN])
        why = f"{len(self.unanswered)} questions have no whole answer: {reasons}" if reasons else ""
        raise Undecided(": ".join(filter(None, [self.words, why or "more questions would decide"])))

    def _held(self, right: int) -> bool | None:
        """Whether so many right answers reach the floor; None where chance may have decided that."""
        if right >= self.floor.share * self.total - 1e-9:
            return True
        return False if self.floor.counted or wilson(right, self.total)[1] < self.floor.share else None


def read_questions(path: Path) -> list[dict[str, Any]]:
    """The questions of a file, each with an `id`. Raises ValueError naming the line that is wrong."""
    rows: list[dict[str, Any]] = []
    for number, row in json_lines(path):
        if not isinstance(row, dict) or not isinstance(row.get("input"), str | list):
            shape = "an object with `input`, a text or chat messages"
            raise ValueError(f"{path}:{number}: a question is {shape}")  # noqa: TRY004 - a file's fault
        rows.append({**row, "id": str(row.get("id", number))})
    twice = {row["id"] for row in rows if sum(one["id"] == row["id"] for one in rows) > 1}
    if twice:
        raise ValueError(f"{path}: the id {min(twice)} is given twice")
    if not rows:
        raise ValueError(f"{path}: no questions in it; one JSON object a line")
    return rows


def scorer_of(scoring: Scoring, rows: Sequence[Mapping[str, Any]]) -> Scorer:
    """What decides whether an answer is right. Raises ValueError where a question lacks what it needs."""
    if callable(scoring):
        return scoring
    if scoring not in _SCORERS:
        raise ValueError(
            f"scorer {scoring!r}: one of {', '.join(_SCORERS)}, or a function of text and question"
        )
    needed, scorer = _SCORERS[scoring]
    lacking = [str(row["id"]) for row in rows if needed not in row]
    if lacking:
        raise ValueError(f"question {lacking[0]} has no `{needed}`, which the scorer {scoring} needs")
    return scorer


def scored(
    answers: Mapping[str, tuple[Mapping[str, Any], Recording | Exception]], scorer: Scorer, floor: Floor
) -> Score:
    """The score of recorded answers.

    Args:
        answers: by key, the question and its recording, or why there is none.
        scorer: what decides.
        floor: how many must be right.
    """
    right, wrong, unanswered = 0, [], []
    for key, (row, recording) in answers.items():
        try:
            if isinstance(recording, Exception):
                raise recording
            text = _said(recording)
        except (Undecided, NotRun) as why:
            unanswered.append(str(why) if key in str(why) else f"{key}: {why}")
            continue
        if scorer(text, row):
            right += 1
        else:
            ideal = f", not {row['ideal']!r}" if "ideal" in row else ""
            wrong.append(f"{key}: {text[:120]!r}{ideal}")
    return Score(right, len(answers), floor, tuple(wrong), tuple(unanswered))


def _said(recording: Recording) -> str:
    """What the answer says, without its reasoning. Raises Undecided when there is no whole one."""
    try:
        choice = recording.ok["choices"][0]
        text, ended = choice["message"].get("content") or "", choice.get("finish_reason")
    except (LookupError, TypeError, AttributeError) as error:
        raise Undecided(f"{recording.key}: the answer has no message") from error
    if not text.strip() and ended == "length":
        raise Undecided(f"{recording.key}: nothing was said before max_tokens (reasoning takes them too)")
    return str(text)


def _ideals(row: Mapping[str, Any]) -> list[str]:
    ideal = row["ideal"]
    return [str(one) for one in ideal] if isinstance(ideal, list) else [str(ideal)]


def _exact(text: str, row: Mapping[str, Any]) -> bool:
    return text.strip() in [ideal.strip() for ideal in _ideals(row)]


def _includes(text: str, row: Mapping[str, Any]) -> bool:
    return any(ideal in text for ideal in _ideals(row))


def _regex(text: str, row: Mapping[str, Any]) -> bool:
    return any(re.search(ideal, text) for ideal in _ideals(row))


def _schema(text: str, row: Mapping[str, Any]) -> bool:
    from pytest_vllm.schemas import fits  # noqa: PLC0415 - only such sets pay for it

    try:
        value = json.loads(text)
    except ValueError:
        return False
    return fits(row["schema"], value)


_SCORERS: dict[str, tuple[str, Scorer]] = {
    "exact": ("ideal", _exact),
    "includes": ("ideal", _includes),
    "regex": ("ideal", _regex),
    "schema": ("schema", _schema),
}
