"""A run's extract: who was tested, and what it showed, in prints and figures, without the texts of answers.

`extract.json` lies in every run folder, and each profile's part in the history. Its size is bounded: about
100 kB for a gate of all bundled checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.baseline import Baseline
from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.report.compare import answers, surface
from pytest_vllm.report.compare.fields import Kinds
from pytest_vllm.wire.failure import HELD_UP, TOO_BUSY, Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.wire.recording import Recording

FORMAT = "pytest-vllm-extract"
FORMAT_VERSION = 1
#: Greedy answers that are kept, those that had the server to themselves first.
MOST_TEXTS = 400
#: The status of an exchange that this server was not asked, or this machine could not ask it in time.
UNASKED = "not asked"
#: Verdicts whose requirement is kept with them.
TOLD = (Verdict.FAIL, Verdict.ADVISORY, Verdict.WAIVED, Verdict.UNDECIDED)


class ExtractError(ValueError):
    """The file is not an extract, or one of a newer version."""


def observed(
    recordings: Mapping[str, Recording],
    log: Sequence[str],
    document: Mapping[str, Any] | None,
    models: Iterable[str],
) -> dict[str, Any]:
    """What a server showed, as JSON, from its recordings and its log.

    `statuses` holds the exchanges that were not answered with 200, of those whose ids are in
    `recorded`; UNASKED says nothing of the server.

    Args:
        recordings: by key.
        log: the server's log lines.
        document: what `/openapi.json` answered; None when nothing.
        models: names of the served models.
    """
    every = list(recordings.values())
    lone = answers.alone(every)
    kinds = Kinds(models)
    for one in every:
        kinds.read(one)
    said = answers.texts(every, lone)
    kept = sorted(said, key=lambda asked: ("l" not in said[asked][2], said[asked][0]))[:MOST_TEXTS]
    return {
        "kinds": kinds.plain(),
        "recorded": sorted({_base(one.key) for one in every}),
        "statuses": _grouped((one.key, _status(one)) for one in every if one.status != 200),
        "texts": {asked: said[asked] for asked in kept},
        "left_out": len(said) - len(kept),
        "scored": answers.scored(recordings, lone),
        "metrics": surface.metrics(every),
        "settings": surface.settings(every),
        "headers": surface.headers(every),
        "routes": surface.routes(log, document),
        "requests": surface.request_fields(document),
        "startup": surface.startup(log),
        "alone": {key: round(recordings[key].seconds, 3) for key in sorted(lone)},
    }


def verdicts(results: Iterable[Result]) -> dict[str, Any]:
    """The verdicts of one profile.

    `verdicts`: level -> verdict -> check -> cases; `families` of checks that are not of conformance; `facts`:
    the requirements that do not hold; `held`: checks that are undecided since the
    asking machine was busy.
    """
    rows = list(results)
    levels = sorted({str(row.level) for row in rows})
    return {
        "families": {_base(row.check): str(row.family) for row in rows if row.family != "conformance"},
        "verdicts": {
            level: _grouped((row.check, str(row.verdict)) for row in rows if row.level == level)
            for level in levels
        },
        "facts": {row.check: row.fact for row in rows if row.verdict in TOLD},
        "held": sorted(
            row.check for row in rows if row.verdict is Verdict.UNDECIDED and of_this_machine(row.reason)
        ),
    }


def of_this_machine(reason: str) -> bool:
    """Whether a check was not judged for what the asking machine did, not the server."""
    return HELD_UP in reason or TOO_BUSY in reason


def assembled(run: Mapping[str, Any], profiles: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a run.

    Args:
        run: `id`, `started` (ISO), `seconds`, `suite`, `partial`, `replayed`.
        profiles: name -> `answer`, `why`, `identity`, verdicts, `observed`, `boot`, `figures`, `loads`.
    """
    return {"format": FORMAT, "version": FORMAT_VERSION, "run": dict(run), "profiles": dict(profiles)}


def checked(body: Any) -> dict[str, Any]:
    """The document, once it is known to be one. Raises ExtractError."""
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        told = body.get("format") if isinstance(body, dict) else None
        raise ExtractError(f"this is not an extract of a run: its format is {told!r}")
    if not isinstance(body.get("version"), int) or body["version"] > FORMAT_VERSION:
        raise ExtractError(
            f"extract version {body.get('version')} is newer than {FORMAT_VERSION}: update pytest-vllm"
        )
    if not isinstance(body.get("profiles"), dict) or not isinstance(body.get("run"), dict):
        raise ExtractError("the extract is damaged: it has no run or no profiles")
    return body


def spread(part: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Check -> its verdict and its level, of a profile's part."""
    return {
        name: (verdict, level)
        for level, grouped in part["verdicts"].items()
        for name, verdict in ungrouped(grouped)
    }


def ungrouped(grouped: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[tuple[str, str]]:
    """(id, value) of everything that was written in groups."""
    for value, names in grouped.items():
        for base, cases in names.items():
            for case in cases:
                yield (f"{base}[{case}]" if case else base), value


def as_baseline(name: str, document: Mapping[str, Any]) -> Baseline:
    """The baseline that a run is for later ones. Raises ExtractError where the server did not boot."""
    part = document["profiles"].get(name)
    if part is None or "identity" not in part:
        raise ExtractError(f"run {document['run'].get('id')} holds no verdicts of {name}")
    who = part["identity"]
    return Baseline(
        profile=name,
        version=who["version"],
        taken=str(document["run"]["started"])[:10],
        simulated=who["simulated"],
        verdicts={check: verdict for check, (verdict, _) in sorted(spread(part).items())},
        hardware=who["hardware"],
        loads=part.get("loads", {}),
        model=who["model"],
    )


def _status(recording: Recording) -> str:
    failure = recording.failure
    if failure is not None and (failure.ours or failure in (Failure.UNFIT, Failure.NOT_SENT)):
        return UNASKED
    return str(recording.status) if recording.status is not None else "no answer"


def _base(name: str) -> str:
    return name.partition("[")[0]


def _grouped(rows: Iterable[tuple[str, str]]) -> dict[str, dict[str, list[str]]]:
    """Value -> id -> its cases; an id without a case has the case `""`."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, value in sorted(rows):
        base, _, case = name.partition("[")
        found.setdefault(value, {}).setdefault(base, []).append(case.removesuffix("]"))
    return found
