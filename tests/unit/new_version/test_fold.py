"""Taking a version into what is known, and saying it in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.new_version import vllms
from tests.unit.new_version.test_reading import WORDED
from tools.new_version import store
from tools.new_version.fold import doubtful, fold, lacking
from tools.new_version.reading import Change, differences, read
from tools.new_version.simulated import extended
from tools.new_version.words import changed, undecided

if TYPE_CHECKING:
    from pathlib import Path

    from tools.new_version.fold import Changes, Topics

VERSION = "0.2.0"


@pytest.fixture
def changes(tmp_path: Path) -> Changes:
    """What the second of two small versions has otherwise."""
    return differences(read(vllms.first(tmp_path), WORDED), read(vllms.second(tmp_path), WORDED))[0]


@pytest.fixture
def topics(tmp_path: Path) -> Topics:
    """What is known of the first one."""
    known = read(vllms.first(tmp_path), WORDED)
    found: Topics = {topic: {"entries": entries} for topic, entries in known.items()}
    found["routes"]["guarded_prefixes"] = {"@": [["0.1.0", ["/v1"]]]}
    return found | {"versions": {"entries": {"0.1.0": {"date": "2026-12-01"}}}}


def test_a_new_version_is_taken_in_whole(topics: Topics, changes: Changes) -> None:
    found = fold(topics, lacking(topics, changes, VERSION), VERSION, "2027-01-01")

    flags = found["flags"]["entries"]
    assert list(found["versions"]["entries"]) == ["0.1.0", VERSION]
    assert flags["engine-backend"] == {"added": VERSION, "choices": ["a"], "type": "choice"}
    assert flags["backend"]["removed"] == VERSION
    assert flags["dtype"]["choices"] == {
        "@": [["0.1.0", ["auto", "half"]], [VERSION, ["auto", "float8", "half"]]]
    }
    assert found["routes"]["entries"]["/v1/talk"] == {"added": VERSION, "guarded": True, "methods": ["POST"]}
    assert found["fields"]["entries"]["ChatRequest.n"]["default"] == {"@": [["0.1.0", 1], [VERSION, None]]}
    assert "backend" in topics["flags"]["entries"], "what was given is left as it was"


def test_taking_it_in_again_changes_nothing(topics: Topics, changes: Changes) -> None:
    once = fold(topics, lacking(topics, changes, VERSION), VERSION, "2027-01-01")

    lacked = lacking(once, changes, VERSION)

    assert not any(lacked.values())
    assert fold(once, lacked, VERSION, "2027-01-01") == once


def test_what_a_person_wrote_of_a_known_version_stays(topics: Topics, changes: Changes) -> None:
    once = fold(topics, lacking(topics, changes, VERSION), VERSION, "2027-01-01")
    once["flags"]["entries"]["dtype"]["choices"]["@"][-1][1] = ["auto"]

    assert not lacking(once, changes, VERSION)["flags"]


def test_what_was_gone_may_come_back(topics: Topics) -> None:
    topics["flags"]["entries"]["old"] = {"type": "bool", "removed": "0.1.0"}
    back = {"flags": Change({"old": {"type": "bool"}})}

    found = fold(topics, lacking(topics, back, VERSION), VERSION, "2027-01-01")

    assert found["flags"]["entries"]["old"] == {"type": "bool", "absent": [["0.1.0", VERSION]]}


def test_versions_in_between_are_refused(topics: Topics) -> None:
    with pytest.raises(ValueError, match=r"older than 0\.1\.0"):
        fold(topics, {}, "0.0.5", "2027-01-01")


@pytest.mark.parametrize(
    ("key", "values", "doubt"),
    [
        ("default", {"default": "@compute()"}, True),
        ("default", {"default": "@required"}, False),
        ("default", {"default": None}, False),
        ("choices", {"choices": None}, True),
        ("choices", {"choices": None, "suggested": ["a"]}, False),
    ],
)
def test_what_is_perhaps_only_read_otherwise_is_doubted(
    key: str, values: dict[str, Any], doubt: bool
) -> None:
    assert doubtful(key, values) is doubt


def test_in_words(topics: Topics, changes: Changes) -> None:
    found = fold(topics, lacking(topics, changes, VERSION), VERSION, "2027-01-01")

    lines = list(changed(changes, found, "0.1.0"))

    assert lines[0] == "1 flag gone: backend: a server that is started with it does not start"
    assert "flag dtype: also takes float8" in lines
    assert "field ChatRequest.n: takes int|None, before int" in lines
    assert "1 metric new: vllm:in_flight" in lines


def test_what_is_left_to_a_person(changes: Changes) -> None:
    waivers = {"w.toml": 'versions = ">=0.1,<0.2"\nversions = "<0.3"\nversions = "<0.1"\n'}

    lines = list(undecided(changes, {"logs": (9, 1)}, ["a doubt"], VERSION, waivers))

    assert lines[0].startswith("logs: 1 entries found where the version before has 9")
    assert "a doubt" in lines
    assert any(line.startswith("route /v1/talk: ") for line in lines)
    assert any(line.startswith("w.toml: 1 range that held before end at 0.2.0") for line in lines)
    assert any(line.startswith("w.toml: 1 range reach into 0.2.0") for line in lines)


def test_the_simulator_learns_it_too() -> None:
    """On what is shipped: a flag, a metric and a request field of a version that does not exist yet."""
    topics, version = store.topics(), "99.0.0"
    new: Changes = {
        "flags": Change({"brand-new": {"type": "choice", "choices": ["b", "a"]}}, ["seed"]),
        "metrics": Change(
            {
                "vllm:brand_new": {"type": "gauge", "engines": ["V1"]},
                "vllm:of_a_part": {"type": "gauge", "engines": ["V1"], "component": "distributed/x"},
            }
        ),
        "cache-config": Change({"brand_new": {}}),
        "fields": Change({"ChatCompletionRequest.brand_new": {"type": "int|None"}}),
    }

    own = extended(store.simulated(), fold(topics, new, version, "2099-01-01"), new)

    assert own["flags"]["--brand-new"]["choices"] == [[version, ["a", "b"]]]
    assert own["flags"]["--seed"]["span"][1] == version
    assert own["metrics"]["families"]["vllm:brand_new"]["span"] == [version, ""]
    assert "vllm:of_a_part" not in own["metrics"]["families"]
    assert own["metrics"]["cache_config"]["brand_new"]["span"] == [version, ""]
    assert own["schema"]["added"]["ChatCompletionRequest"]["brand_new"] == version
    shape = own["schema"]["schemas"]["ChatCompletionRequest"]["properties"]["brand_new"]
    assert shape == {"anyOf": [{"type": "integer"}, {"type": "null"}]}


def test_nothing_new_writes_nothing() -> None:
    """The files are as this tool writes them, so that a new version's diff shows what is new alone."""
    assert store.save(store.topics(), store.simulated(), "2099-01-01") == []
