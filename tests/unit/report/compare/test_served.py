"""Routes, request fields, metrics, headers, start-up messages and flags of two servers."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_vllm.report.compare import served, settings
from pytest_vllm.report.compare.difference import Difference, Weight
from tests.unit.report.compare.runs import answer, part_of, scrape

LOG = "(APIServer pid={pid}) {level} 11-29 04:19:{pid} [x.py:{pid}] {text}"


def family(name: str, kind: str = "gauge", label: str = "engine") -> str:
    return f'# HELP {name} Text.\n# TYPE {name} {kind}\n{name}{{{label}="0"}} 1.0\n'


def found(before: dict[str, Any], after: dict[str, Any]) -> list[Difference]:
    return list(served.differences(before["observed"], after["observed"], ("0.27.0", "0.32.0")))


def one_of(before: dict[str, Any], after: dict[str, Any]) -> Difference:
    (one,) = found(before, after)
    return one


def test_a_renamed_metric_breaks_dashboards() -> None:
    one = one_of(
        part_of([scrape(family("vllm:cache_use_perc"))]), part_of([scrape(family("vllm:cache_use_percent"))])
    )

    assert one.weight is Weight.BREAKS
    assert one.what == "vllm:cache_use_perc became vllm:cache_use_percent"


def test_a_metric_that_is_gone_breaks_and_a_new_one_informs() -> None:
    before, after = (
        part_of([scrape(family("vllm:alpha"))]),
        part_of([scrape(family("vllm:zebra_crossings", "counter"))]),
    )

    assert [(one.weight, one.what) for one in found(before, after)] == [
        (Weight.BREAKS, "vllm:alpha"),
        (Weight.INFO, "vllm:zebra_crossings"),
    ]


@pytest.mark.parametrize("other", [family("vllm:a", "counter"), family("vllm:a", label="rank")])
def test_another_type_or_label_of_a_metric_breaks(other: str) -> None:
    assert one_of(part_of([scrape(family("vllm:a"))]), part_of([scrape(other)])).weight is Weight.BREAKS


def test_values_of_metrics_are_not_differences() -> None:
    before = family("vllm:a")

    assert found(part_of([scrape(before)]), part_of([scrape(before.replace("1.0", "7.0"))])) == []


def test_a_route_that_is_gone_breaks_clients() -> None:
    log = ["INFO Route: /v1/models, Methods: GET", "INFO Route: /tokenize, Methods: POST"]
    one = one_of(part_of(log=log), part_of(log=log[:1]))

    assert (one.weight, one.what) == (Weight.BREAKS, "POST /tokenize")


def described(**fields: Any) -> dict[str, Any]:
    schema = {"properties": {name: one for name, one in fields.items() if name != "required"}}
    schema |= {"required": fields.get("required", [])}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Ask"}}}}
    return {"paths": {"/x": {"post": {"requestBody": body}}}, "components": {"schemas": {"Ask": schema}}}


@pytest.mark.parametrize(
    ("before", "after", "weight"),
    [
        ({"n": {"type": "integer"}}, {}, Weight.BREAKS),
        ({}, {"n": {"type": "integer"}}, Weight.INFO),
        ({}, {"n": {"type": "integer"}, "required": ["n"]}, Weight.BREAKS),
        (
            {"n": {"type": "integer", "default": 1}},
            {"n": {"type": "integer", "default": 2}},
            Weight.BEHAVIOUR,
        ),
    ],
)
def test_request_fields(before: dict[str, Any], after: dict[str, Any], weight: Weight) -> None:
    always: dict[str, Any] = {"model": {"type": "string"}}
    one = one_of(
        part_of(document=described(**always, **before)), part_of(document=described(**always, **after))
    )

    assert (one.weight, one.area, one.what) == (weight, "parameters", "n of POST /x")


def test_a_new_warning_informs_whatever_its_numbers() -> None:
    quiet = [LOG.format(pid=7, level="WARNING", text="Slow kernel on port 8000 at /tmp/x/y")]
    again = [LOG.format(pid=9, level="WARNING", text="Slow kernel on port 8123 at /var/z/y")]
    other = [*again, LOG.format(pid=9, level="WARNING", text="Old flag")]

    assert found(part_of(log=quiet), part_of(log=again)) == []
    assert one_of(part_of(log=quiet), part_of(log=other)).what == "WARNING Old flag"


def test_another_backend_is_behaviour() -> None:
    logs = [
        [LOG.format(pid=1, level="INFO", text=f"Using {name} attention backend.")]
        for name in ("FLASH_ATTN", "TRITON_ATTN")
    ]

    assert one_of(part_of(log=logs[0]), part_of(log=logs[1])).weight is Weight.BEHAVIOUR


def test_a_shorter_context_breaks_clients() -> None:
    before, after = part_of(max_model_len=8192)["identity"], part_of(max_model_len=4096)["identity"]
    (one,) = settings.differences(before, after)

    assert (one.weight, one.before, one.after) == (Weight.BREAKS, "8192", "4096")


def test_flags_and_capabilities_that_differ_are_told() -> None:
    before = part_of(flags={"dtype": "auto"}, capabilities=["tools"])["identity"]
    after = part_of(flags={"dtype": "half"}, capabilities=[])["identity"]

    assert [(one.weight, one.what) for one in settings.differences(before, after)] == [
        (Weight.INFO, "--dtype"),
        (Weight.BREAKS, "capability tools"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (["auth"], [], "requests without a key are served"),
        ([], ["auth"], "requests without a key are refused"),
    ],
)
def test_a_key_that_is_asked_for_no_more_or_anew_is_said_as_what_it_is(
    before: list[str], after: list[str], words: str
) -> None:
    was, now = part_of(capabilities=before)["identity"], part_of(capabilities=after)["identity"]
    (one,) = settings.differences(was, now)

    assert (one.weight, one.what) == (Weight.BREAKS, "capability auth")
    assert words in one.means


@pytest.mark.parametrize(
    ("asked", "weights"),
    [("security.cross-origin", ("breaks clients", "behaviour")), ("a.b", ("for information",) * 2)],
)
def test_the_header_that_lets_pages_of_other_origins_read_an_answer(
    asked: str, weights: tuple[str, str]
) -> None:
    """One answer shows it, where both servers were asked as by such a page; else its absence says nothing."""
    json_alone = (("content-type", "application/json"),)
    open_ = part_of([answer(asked, {}, headers=(*json_alone, ("access-control-allow-origin", "*")))])
    closed = part_of([answer(asked, {}, headers=json_alone)])

    for (one, other), weight in zip(((open_, closed), (closed, open_)), weights, strict=True):
        header = one_of(one, other)
        assert (header.what, str(header.weight)) == ("access-control-allow-origin", weight)
        assert header.means
