"""What differs in routes, request fields, metrics, headers and start-up messages."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts.surface import metrics as known_metrics
from pytest_vllm.report.compare.difference import Difference, Weight

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: How alike two metrics' names are that are one renamed.
ALIKE = 0.75
#: Answers that have a header, for its absence to say anything.
MANY = 20
#: The header that lets pages of other origins read an answer, and the exchange that asks as one of them.
ORIGIN, ABROAD = "access-control-allow-origin", "security.cross-origin"
#: Labels of `vllm:cache_config_info` that are sizes, which differ from start to start.
SIZES = (
    "num_gpu_blocks",
    "num_cpu_blocks",
    "kv_cache_size_tokens",
    "kv_cache_max_concurrency",
    "kv_cache_memory_bytes",
)


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], versions: tuple[str, str]
) -> Iterator[Difference]:
    """Every difference between two `observed` parts of servers of these versions."""
    yield from _routes(before["routes"], after["routes"])
    yield from _parameters(before["requests"], after["requests"])
    yield from _metrics(before["metrics"], after["metrics"], versions)
    both = {*before["recorded"]} & {*after["recorded"]}
    yield from _headers(before["headers"], after["headers"], foreign=ABROAD in both)
    yield from _settings(before["settings"], after["settings"])
    yield from _log(before["startup"], after["startup"])


def _routes(before: list[str], after: list[str]) -> Iterator[Difference]:
    if not before or not after:
        return
    for route in sorted({*before} - {*after}):
        yield Difference(Weight.BREAKS, "routes", route, "served", "", "clients that call it get 404 or 405")
    for route in sorted({*after} - {*before}):
        yield Difference(
            Weight.INFO, "routes", route, "", "served", "new; what it gives away is worth a look"
        )


def _parameters(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """Fields of request bodies, as `/openapi.json` describes them."""
    shared: dict[tuple[Weight, str, str, str, str], list[str]] = {}
    for route in sorted(before.keys() & after.keys()):
        one, other = _body(before, route), _body(after, route)
        for name in sorted(one.keys() | other.keys()):
            if one.get(name) != other.get(name):
                found = _parameter(name, one.get(name, ""), other.get(name, ""))
                shared.setdefault(found, []).append(route)
    for (weight, name, was, now, means), routes in shared.items():
        yield Difference(weight, "parameters", f"{name} of {', '.join(routes)}", was, now, means)


def _body(requests: Mapping[str, Any], route: str) -> Mapping[str, str]:
    fields = requests[route]
    found: Mapping[str, str] = requests.get(fields["as"], {}) if set(fields) == {"as"} else fields
    return found


def _parameter(name: str, was: str, now: str) -> tuple[Weight, str, str, str, str]:
    if not now:
        return Weight.BREAKS, name, was, "", "clients that send it are refused, or it is ignored"
    if not was:
        weight = Weight.BREAKS if now.endswith("!") else Weight.INFO
        return weight, name, "", now, "clients that leave it out are refused" if now.endswith("!") else "new"
    if now.endswith("!") and not was.endswith("!"):
        return Weight.BREAKS, name, was, now, "clients that leave it out are refused"
    if was.partition("=")[0].rstrip("!") == now.partition("=")[0].rstrip("!") and "=" in was + now:
        return Weight.BEHAVIOUR, name, was, now, "clients that leave it out get another default"
    return Weight.INFO, name, was, now, "described otherwise"


def _metrics(
    before: Mapping[str, str], after: Mapping[str, str], versions: tuple[str, str]
) -> Iterator[Difference]:
    if not before or not after:
        return
    gone, fresh = before.keys() - after.keys(), set(after.keys() - before.keys())
    facts = known_metrics(versions[0]) if versions[0] else {}
    for name in sorted(gone):
        told = next((facts[one].renamed_to for one in (name, f"{name}_total") if one in facts), "")
        told = told.removesuffix("_total")
        alike = [one for one in fresh if before[name].split()[0] == after[one].split()[0]]
        close = difflib.get_close_matches(name, alike, n=1, cutoff=ALIKE)
        twin = told if told in fresh else (close[0] if close else "")
        if twin:
            fresh.discard(twin)
            means = f"dashboards and alerts that read {name} see nothing; the new name is {twin}"
            yield Difference(
                Weight.BREAKS, "metrics", f"{name} became {twin}", before[name], after[twin], means
            )
        else:
            means = f"dashboards and alerts that read {name} see nothing"
            if told in after:
                means += f"; read {told} instead"
            yield Difference(Weight.BREAKS, "metrics", name, before[name], "", means)
    for name in sorted(fresh):
        yield Difference(Weight.INFO, "metrics", name, "", after[name], "new")
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            yield _metric(name, before[name], after[name])


def _metric(name: str, was: str, now: str) -> Difference:
    (kind, *labels), (other, *others) = was.split(), now.split()
    lost = {*",".join(labels).split(",")} - {*",".join(others).split(","), ""}
    if kind != other:
        means = f"queries that treat it as a {kind} give nonsense"
        return Difference(Weight.BREAKS, "metrics", f"type of {name}", kind, other, means)
    if lost and others:
        means = f"queries by label {', '.join(sorted(lost))} find nothing"
        return Difference(Weight.BREAKS, "metrics", f"labels of {name}", was, now, means)
    means = "a family without samples shows no labels" if lost else "sums over it count more series"
    return Difference(Weight.INFO, "metrics", f"labels of {name}", was, now, means)


def _headers(before: Mapping[str, int], after: Mapping[str, int], *, foreign: bool) -> Iterator[Difference]:
    """Headers that are gone or new; `foreign`: both were asked as by a page of another origin."""
    for name in sorted(before.keys() - after.keys()):
        weight = Weight.BEHAVIOUR if before[name] >= MANY else Weight.INFO
        means = "clients that read it get nothing"
        if name == ORIGIN and foreign:
            weight, means = Weight.BREAKS, "browsers keep its answers from pages of other origins"
        yield Difference(weight, "headers", name, f"in {_answers(before[name])}", "", means)
    for name in sorted(after.keys() - before.keys()):
        weight, means = Weight.INFO, "new"
        if name == ORIGIN and foreign:
            weight, means = Weight.BEHAVIOUR, "pages of other origins can read its answers"
        yield Difference(weight, "headers", name, "", f"in {_answers(after[name])}", means)


def _answers(number: int) -> str:
    return f"{number} answer{'s' * (number != 1)}"


def _settings(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Difference]:
    """What the engine chose, by the labels of its configuration."""
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name] and name not in SIZES:
            means = "the engine runs with another setting"
            yield Difference(
                Weight.BEHAVIOUR, "flags", f"cache setting {name}", before[name], after[name], means
            )


def _log(before: Mapping[str, list[str]], after: Mapping[str, list[str]]) -> Iterator[Difference]:
    for line in sorted({*after["warnings"]} - {*before["warnings"]}):
        yield Difference(Weight.INFO, "log", line, "", "start-up warning", "new: read it once")
    for line in sorted({*before["warnings"]} - {*after["warnings"]}):
        yield Difference(Weight.INFO, "log", line, "start-up warning", "", "is not said any more")
    gone, fresh = (
        {*one["choices"]} - {*other["choices"]} for one, other in ((before, after), (after, before))
    )
    for line in sorted(fresh):
        was = difflib.get_close_matches(line, gone, n=1, cutoff=0.5)
        weight = Weight.BEHAVIOUR if was else Weight.INFO
        means = "another backend or kernel: speed and rounding may differ" if was else ""
        yield Difference(weight, "log", line, was[0] if was else "", "", means)
