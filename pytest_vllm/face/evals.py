"""`@eval_set`: questions with known answers, asked at once, scored and judged as one check."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.verdict import Family, Level
from pytest_vllm.declare import evals, exchanges
from pytest_vllm.declare.checks import observe
from pytest_vllm.declare.exchanges import fixture_name, key_of
from pytest_vllm.face.decorators import RECORDINGS, check
from pytest_vllm.locate import file_beside
from pytest_vllm.wire.recording import NotRun, Undecided

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_vllm.declare.evals import Scoring
    from pytest_vllm.declare.recordings import Recordings
    from pytest_vllm.wire.recording import Recording, Request


def eval_set(
    file: str,
    *,
    id: str,  # noqa: A002 - the word for it
    floor: str,
    scorer: Scoring = "exact",
    level: Level = Level.MUST,
    samples: int = 1,
    temperature: float = 0.0,
    max_tokens: int = 256,
    needs: Sequence[str] = ("chat",),
    tier: str = "smoke",
    spec: str = "profile:evals",
    **params: Any,
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Make a test of questions with known answers; its docstring is the requirement.

    The questions are asked at once, as many as the server batches. The test takes the `score`, and may judge
    it further; afterwards the floor is judged. It is a check of the family capability.

    Args:
        file: questions, one JSON object a line; beside the test's file, or in a folder above, up to the root.
        id: the check's id, dotted, lower case.
        floor: `18 of 20` of these questions, or `90 %` of all like them, which fails only when the interval
            of 95 % lies below it.
        scorer: exact, includes, regex (over `ideal`), schema (over `schema`), or a function of the answer's
            text and the question that says whether it is right.
        level: MUST, SHOULD or INFO.
        samples: how often each question is asked; with a temperature, each time with another seed.
        temperature: 0 is greedy.
        max_tokens: of an answer, its reasoning included.
        needs: capabilities without which the check says nothing.
        tier: the cheapest tier that runs it.
        spec: `source:anchor` of the requirement.
        params: further fields of the request's body.

    Raises ValueError when the declaration or the file is wrong, FileNotFoundError when there is none.
    """

    def make(function: Callable[..., object]) -> Callable[..., object]:
        if inspect.iscoroutinefunction(function) or samples < 1:
            raise ValueError(f"eval set {id}: a plain function, and samples from 1 on")
        source = function.__code__.co_filename
        path = file_beside(file, Path(source))
        rows = evals.read_questions(path)
        judged, least = evals.scorer_of(scorer, rows), evals.Floor.of(floor)
        fields = {"max_tokens": max_tokens, "temperature": temperature, **params}
        asked = {row["id"]: row for row in _asked(rows, samples, fields)}
        _declare(id, list(asked.values()), fields, source)

        @functools.wraps(function)
        def judge(**fixtures: Any) -> None:
            recordings = fixtures[RECORDINGS] if kept else fixtures.pop(RECORDINGS)
            keys = {key_of(id, [name]): row["question"] for name, row in asked.items()}
            answers = {key: (row, _answer(recordings, key)) for key, row in keys.items()}
            score = evals.scored(answers, judged, least)
            observe("score", score.words)
            function(**fixtures, **({"score": score} if takes else {}))
            score.judge()

        names = list(inspect.signature(function).parameters)
        takes, kept = "score" in names, RECORDINGS in names
        wanted = dict.fromkeys([*(name for name in names if name != "score"), RECORDINGS])
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [inspect.Parameter(name, keyword) for name in wanted]
        judge.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        how = {"family": Family.CAPABILITY, "needs": needs, "tier": tier, "exchanges": (f"{id}[",)}
        return check(id, level, spec=spec, **how)(judge)  # type: ignore[arg-type]

    return make


def _asked(
    rows: Sequence[Mapping[str, Any]], samples: int, fields: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Every question as often as it is asked: its case's id, the question, and its seed."""
    sampled = bool(fields["temperature"])
    return [
        {
            "id": row["id"] if samples == 1 else f"{row['id']}.{turn + 1}",
            "question": row,
            "seed": {"seed": turn} if sampled and "seed" not in fields else {},
        }
        for row in rows
        for turn in range(samples)
    ]


def _declare(id: str, rows: Sequence[Mapping[str, Any]], fields: Mapping[str, Any], source: str) -> None:  # noqa: A002
    """The exchanges of a set, one for each time a question is asked."""
    case = f"{fixture_name(id)}_question"
    exchanges.declared_cases(case, rows)

    def build(**given: Any) -> Request:
        asked = given[case]
        request: Request = given["server"].chat(asked["question"]["input"], **fields, **asked["seed"])
        return request

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, keyword) for name in ("server", case)]
    build.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    # the file that declares it: xdist's controller imports that to know the exchange
    build.__code__ = build.__code__.replace(co_filename=source)
    exchanges.declared(id, build)


def _answer(recordings: Recordings, key: str) -> Recording | Exception:
    try:
        return recordings.get(key)
    except (Undecided, NotRun) as why:
        return why
