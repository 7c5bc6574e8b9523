"""The case sets are well made, right for every version, and harmless to servers that they could end."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.declare.exchanges import EXCHANGES, Case
from pytest_vllm.facts import guarded_prefixes, metrics, nearest, routes, versions
from pytest_vllm.locate import case_file
from tests.unit.judging import checks, judge, server
from tests.unit.suites_b.judging import AREAS, healthy

if TYPE_CHECKING:
    from pytest_vllm.wire.server import Server

RECENT = versions()[versions().index("0.10.0") :]
FILES = ("bad-requests", "odd-requests", "hostile-requests", "security-routes", "untrusted-fields")


def rows(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(case_file(name).read_text("utf-8"))
    return found


def built(exchange: str, on: Server, **given: Any) -> Any:
    for area in AREAS:
        import_module(f"suites.{area}.exchanges")
    return EXCHANGES[exchange].build(server=on, **given)


@pytest.mark.parametrize("name", [*FILES, "metric-families"])
def test_ids_are_unique(name: str) -> None:
    ids = [row["id"] for row in rows(name)]

    assert len(ids) == len(set(ids))


def test_the_negative_matrix_is_wide() -> None:
    assert len(rows("bad-requests")) >= 45


def test_bad_requests_are_meant_to_be_refused() -> None:
    wrong = {
        row["id"] for row in rows("bad-requests") for status in row["status"] if not 400 <= status <= 501
    }

    assert wrong == set()


@pytest.mark.parametrize("version", RECENT)
def test_metric_families_are_those_of_the_version(version: str) -> None:
    known = metrics(version)
    exposed = {name for name, metric in known.items() if not metric.hidden and not metric.when}
    on = server(version)
    told = [
        row
        for row in rows("metric-families")
        if on.at_least(row.get("since", "0")) and not ("until" in row and on.at_least(row["until"]))
    ]
    ending = {"counter": "_total"}
    names = {row["family"] + ending.get(row["type"], ""): row for row in told}

    assert set(names) - exposed == set()
    assert {name: row["type"] for name, row in names.items()} == {name: known[name].type for name in names}


@pytest.mark.parametrize("version", RECENT)
def test_every_family_of_a_version_is_told(version: str) -> None:
    told = {row["family"] for row in rows("metric-families")}
    gone = [
        name
        for name in told
        if name not in {n.removesuffix("_total") for n in metrics(version)} | set(metrics(version))
    ]
    on = server(version)
    kept = [
        row for row in rows("metric-families") if row["family"] in gone and on.at_least(row.get("since", "0"))
    ]

    assert [row["family"] for row in kept if "until" not in row or not on.at_least(row["until"])] == []


@pytest.mark.parametrize("version", RECENT)
def test_guarded_routes_are_those_of_the_version(version: str) -> None:
    on = server(version)
    told = [row for row in rows("security-routes") if row["kind"] == "guarded"]
    now = [row["path"] for row in told if on.at_least(row.get("since", "0"))]

    assert [path for path in now if not path.startswith(guarded_prefixes(version))] == []


@pytest.mark.parametrize("version", RECENT)
def test_development_routes_need_the_development_mode(version: str) -> None:
    on, known = server(version), routes(version)
    told = [r["path"] for r in rows("security-routes") if r["kind"] in ("development", "profiler")]
    since = {row["path"]: row.get("since", "0") for row in rows("security-routes")}
    open_by_default = [p for p in told if p in known and on.at_least(since[p]) and not known[p].needs]

    assert open_by_default == []


@pytest.mark.parametrize("row", rows("hostile-requests"), ids=lambda row: row["id"])
def test_a_hostile_request_is_not_sent_to_older_versions(row: dict[str, Any]) -> None:
    older = nearest("0.20.0")
    request = built("errors.hostile", server(older), hostile_request=Case(row["id"], row))

    assert request.json["n"] == -1
    assert not set(row.get("set", {})) & request.json.keys()


@pytest.mark.parametrize("version", ["", "0.18.0"])
def test_what_a_version_cannot_bear_is_not_sent(version: str) -> None:
    on = server(version)

    assert built("errors.fan-out", on).json["n"] == -1
    assert "structured_outputs" not in built("errors.stream-bad-regex", on).json
    assert "response_format" not in built("metrics.failed", on, metrics_completion=None).json


def test_hostile_checks_are_not_run_on_older_versions() -> None:
    recorded = healthy("errors").keys()
    hostile = [c for c in checks("errors") if c.spec.id == "errors.hostile" and c.key in recorded]
    verdicts = {judge(check, healthy("errors"), server("0.10.2")).verdict for check in hostile}

    assert verdicts == {"not-run"}


def test_the_spoiled_request_keeps_what_it_does_not_spoil() -> None:
    row = next(row for row in rows("bad-requests") if row["id"] == "temperature-negative")
    request = built("errors.bad", server(), bad_request=Case(row["id"], row))

    assert request.json["temperature"] == -1
    assert request.json["messages"]
    assert request.json["max_tokens"] == 1
    assert request.expect is None


def test_raw_requests_name_the_served_model() -> None:
    row = next(row for row in rows("bad-requests") if row["id"] == "json-nan")
    request = built("errors.bad", server(), bad_request=Case(row["id"], row))

    assert '"smollm2-135m"' in request.content
    assert "NaN" in request.content
    assert "%" not in request.content


def test_a_prompt_that_is_too_long_has_more_words_than_the_context_tokens() -> None:
    text = built("errors.context-chat", server()).json["messages"][0]["content"]

    assert len(text.split()) > 4096


@pytest.mark.parametrize(
    ("check_id", "area", "version"),
    [
        ("stream.no-empty-tool-calls", "streaming", "0.23.0"),
        ("stream.usage.options-empty", "streaming", "0.17.1"),
        ("metrics.cache.size-adds-up", "metrics", "0.23.0"),
    ],
)
def test_a_requirement_of_newer_versions_is_not_run_on_older_ones(
    check_id: str, area: str, version: str
) -> None:
    check = next(check for check in checks(area) if check.spec.id == check_id)

    assert judge(check, healthy(area), server(version)).verdict == "not-run"


def test_usage_that_the_operator_forces_is_no_fault() -> None:
    check = next(check for check in checks("streaming") if check.spec.id == "stream.usage.not-asked")

    assert judge(check, healthy("streaming"), server(enable_force_include_usage=True)).verdict == "not-run"


def test_a_flat_error_is_right_before_0_10_1() -> None:
    recordings = dict(healthy("errors"))
    check = next(check for check in checks("errors") if check.spec.id == "errors.envelope.keys")
    for key, recording in recordings.items():
        if (recording.status or 0) >= 400 and recording.text.startswith('{"error":{'):
            flat = json.dumps(json.loads(recording.body)["error"]).encode()
            recordings[key] = recording.with_response(chunks=((0.1, flat),))

    assert judge(check, recordings, server("0.10.0")).verdict == "pass"
    assert judge(check, recordings, server("0.10.1")).verdict == "fail"


def test_foreign_traffic_makes_deltas_undecided() -> None:
    recordings = dict(healthy("metrics"))
    done = recordings["metrics.completion"]
    line = 'http_requests_total{handler="/v1/completions",method="POST",status="2xx"}'
    before = next(row for row in (done.metrics_before or "").splitlines() if row.startswith(line))
    count = float(before.rpartition(" ")[2]) - 3
    recordings["metrics.completion"] = done.with_response(
        metrics_before=(done.metrics_before or "").replace(before, f"{line} {count}")
    )
    check = next(check for check in checks("metrics") if check.spec.id == "metrics.tokens.prompt")
    judged = judge(check, recordings)

    assert judged.verdict == "undecided"
    assert "4 requests came in meanwhile" in judged.why


def test_a_server_that_does_not_repeat_itself_is_not_accused() -> None:
    recordings = dict(healthy("streaming"))
    again = recordings["streaming.completion-again"]
    other = again.body.replace(b"four", b"five")
    recordings["streaming.completion-again"] = again.with_response(chunks=((0.1, other),))
    check = next(c for c in checks("streaming") if c.spec.id == "stream.parity.completion-text")

    assert judge(check, recordings).verdict == "undecided"


def test_a_proxy_that_refuses_every_put_is_not_accused() -> None:
    recordings = {
        key: one.with_response(status=405) if key.startswith("security.route") else one
        for key, one in healthy("security").items()
    }
    check = next(c for c in checks("security") if c.spec.id == "security.no-development-routes")

    assert judge(check, recordings).verdict == "undecided"
