"""Lines, SARIF and fixes."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.preflight import check, judge, lines
from pytest_vllm.preflight.fixes import fixed
from pytest_vllm.preflight.render import lines as all_lines
from pytest_vllm.preflight.render import sarif, summary
from pytest_vllm.preflight.rule import ERROR, WARNING, Finding, Fix, drop, put
from pytest_vllm.profile.load import load

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.profile.model import Profile

TEXT = """\
# A deployment of ours.
hardware = "h100"
model = "qwen3-32b-fp8"

[server]
image = "vllm/vllm-openai:v0.32.0"  # pinned
model = "Qwen/Qwen3-32B-FP8"
gpus = "all"
ipc = "host"
volumes = ["~/.cache:/root/.cache"]

[server.args]
max_model_len = 65536         # too long
disable-log-requests = true   # gone
max-num-seqs = 32
reasoning-parser = "qwen3"    # stays
"""


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    """The profile above, as a file of a project."""
    folder = tmp_path / "vllm-profiles"
    folder.mkdir()
    (folder / "ours.toml").write_text(TEXT, "utf-8")
    return load("ours", tmp_path, environ={})


def test_a_line_per_finding(profile: Profile, tmp_path: Path) -> None:
    """File and line, severity, rule, what was observed, what it means, the fix."""
    removed, beyond = all_lines(check(profile, tmp_path), profile)

    assert removed == (
        "ours.toml:14: error    flags.removed         --disable-log-requests was removed in vLLM 0.17.0, "
        "until 0.33.0: vLLM 0.32.0 exits with 'unrecognized arguments'; fix: remove disable-log-requests"
    )
    assert beyond == (
        "ours.toml:13: error    context.beyond-model  max-model-len is 65,536, Qwen3-32B-FP8 has 40,960 "
        "positions: vLLM refuses to start; fix: max-model-len = 40960"
    )


def test_without_a_file_the_key_is_named(profile: Profile, tmp_path: Path) -> None:
    """As for a profile that was imported."""
    imported = profile.model_copy(update={"source": None})
    first, _ = all_lines(check(imported, tmp_path), imported)

    assert first.startswith("ours server.args.disable-log-requests: error ")


def test_the_summary_counts(profile: Profile, tmp_path: Path) -> None:
    """In words."""
    assert summary(judge(profile, tmp_path), profile).startswith("ours: 2 errors; no finding in ")
    assert summary([], profile) == "ours: no finding in 0 rules"


def test_the_header_shows_errors_of_a_real_launcher_alone(profile: Profile, tmp_path: Path) -> None:
    """At most five lines, none for a simulator."""
    found = check(profile, tmp_path)
    simulated = profile.model_copy(update={"server": profile.server.model_copy(update={"launcher": "sim"})})

    assert len(lines(found, profile)) == 2
    assert lines(found, simulated) == []
    assert lines([one for one in found if one.severity is WARNING], profile) == []
    many = lines(found * 4, profile)
    assert len(many) == 5
    assert many[-1].startswith("and 4 more errors: pytest --vllm-profile=ours --vllm-preflight")


def test_sarif_has_what_code_hosts_read(profile: Profile, tmp_path: Path) -> None:
    """The members that SARIF 2.1.0 requires, and a path relative to the project."""
    log = sarif(check(profile, tmp_path), profile, tmp_path, "0.1.0")
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]

    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    assert run["tool"]["driver"]["name"]
    assert {one["id"] for one in rules} == {"flags.removed", "context.beyond-model"}
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "vllm-profiles/ours.toml"
        assert place["region"]["startLine"] in (13, 14)


def test_a_fixed_profile_has_nothing_left_and_keeps_its_comments(profile: Profile, tmp_path: Path) -> None:
    """Underscores, comments and order stay; a removed key takes its comment along."""
    text, done = fixed(TEXT, check(profile, tmp_path))
    (tmp_path / "vllm-profiles" / "ours.toml").write_text(text, "utf-8")

    assert len(done) == 2
    assert text == TEXT.replace("65536         # too long", "40960         # too long").replace(
        "disable-log-requests = true   # gone\n", ""
    )
    assert check(load("ours", tmp_path, environ={}), tmp_path) == []


@pytest.mark.parametrize(
    ("fix", "key", "value"),
    [
        (put("server.args.new", 3), ("server", "args", "new"), 3),
        (put("deployment.restart", "always"), ("deployment", "restart"), "always"),
        (put("server.api-key", {"from-env": "K"}), ("server", "api-key"), {"from-env": "K"}),
        (Fix("server.args.max-num-seqs", "rename", to="other"), ("server", "args", "other"), 32),
        (put("server.volumes", ["a:/b", "c:/d"]), ("server", "volumes"), ["a:/b", "c:/d"]),
    ],
)
def test_each_kind_of_fix(fix: Fix, key: tuple[str, ...], value: object) -> None:
    """Sets in tables that are there and in new ones, renames in place."""
    text, done = fixed(TEXT, [Finding("x", "y", fix=fix)])
    found = tomllib.loads(text)
    for part in key:
        found = found[part]

    assert found == value
    assert done == [fix]
    assert "# pinned" in text


def test_fixes_that_clash_are_not_mixed() -> None:
    """The first of a key wins, and what is not there cannot be removed."""
    found = [
        Finding("a", "b", fix=put("server.args.max-num-seqs", 8), severity=ERROR),
        Finding("a", "b", fix=drop("server.args.max-num-seqs"), severity=WARNING),
        Finding("a", "b", fix=drop("server.args.not-there")),
    ]
    text, done = fixed(TEXT, found)

    assert tomllib.loads(text)["server"]["args"]["max-num-seqs"] == 8
    assert done == [found[0].fix]


def test_fixes_inside_pyproject() -> None:
    """The tables in front of the profile's own are kept."""
    before = "[tool.pytest-vllm.profiles.ours.server.args]\nmax-num-seqs = 1 # few\n"
    text, _ = fixed(
        before, [Finding("a", "b", fix=put("server.args.max-num-seqs", 8))],
        prefix=("tool", "pytest-vllm", "profiles", "ours"),
    )  # fmt: skip

    assert text == before.replace("= 1", "= 8")
