"""The files of a run: JSON against its schema, Markdown within its limit, HTML that loads nothing."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
import re
import subprocess
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pytest_vllm.report import html, json_report, junit, markdown
from pytest_vllm.report.timeline import timeline
from pytest_vllm.report.write import write_all
from pytest_vllm.verdict import Level, Verdict, decide
from pytest_vllm.wire.redact import Redactor
from tests.golden.sample_runs import (
    CHAT,
    RUNS,
    answer,
    go,
    no_go,
    record,
    result,
    run_of,
    server,
    two_profiles,
    undecided,
    waivers,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.runrecord import RunRecord
    from pytest_vllm.wire.recording import Request

HOSTILE = (
    "</script></pre><script>alert(1)</script>```\n# pwned\n"
    "<img src=x onerror=alert(1)> | [a](http://x) \x1b[2J"
)


def curl(request: Request, url: str, *, key_env: str) -> str:
    return f'#!/bin/sh\necho {request.method} {url}{request.path} "${{{key_env}:-no key}}"\n'


def document(record: RunRecord) -> dict[str, Any]:
    return json_report.document(record, Redactor(), curl)


def read_back(record: RunRecord) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json_report.dumps(document(record)))
    return loaded


def hostile() -> RunRecord:
    """A server that answers with markup, and a check that repeats it."""
    row = result("chat.envelope.object", Verdict.FAIL, reason=HOSTILE, fact=f"A fact. {HOSTILE}")
    body = {**CHAT, "object": HOSTILE, HOSTILE: HOSTILE}
    run = run_of(server(model=HOSTILE), answer("chat.plain", body), died=HOSTILE, facts={HOSTILE: HOSTILE})
    return record({"sim": run}, [row, result("x.y", Verdict.NOT_RUN, reason=HOSTILE)])


def many(count: int) -> RunRecord:
    """So many failing checks, each with a long reason and body."""
    rows = [
        result(f"chat.envelope.fact-{n}", Verdict.FAIL, reason="x" * 500, area=f"area-{n}")
        for n in range(count)
    ]
    rows += [result(f"lora.fact-{n}", Verdict.NOT_RUN, reason=f"{n} {'y' * 300}") for n in range(count)]
    return record({"sim": run_of(server(), answer("chat.plain", {"a": ["z" * 70] * 40}))}, rows)


# JSON


def test_the_schema_is_a_schema() -> None:
    """The shipped schema is valid under its own draft."""
    jsonschema.Draft202012Validator.check_schema(json_report.schema())


@pytest.mark.parametrize("name", RUNS)
def test_a_report_fits_its_schema(name: str) -> None:
    """Whatever a run holds, its report validates."""
    jsonschema.validate(read_back(RUNS[name]()), json_report.schema(), jsonschema.Draft202012Validator)


def objects(schema: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every object schema with named properties."""
    found = []
    if isinstance(schema, dict):
        if "properties" in schema and "type" in schema:
            found.append((path, schema))
        for key, value in schema.items():
            found += objects(value, f"{path}/{key}")
    return found


def test_the_schema_is_closed() -> None:
    """Every object names all of its properties, requires them, and allows no others."""
    for path, schema in objects(json_report.schema()):
        assert schema["additionalProperties"] is False, path
        assert sorted(schema["required"]) == sorted(schema["properties"]), path


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), 2),
        (("more",), 1),
        (("answer", "answer"), "MAYBE"),
        (("answer", "exit_code"), 7),
        (("answer", "counts", "pass"), -1),
        (("run", "seconds"), "5.1"),
        (("results", 0, "verdict"), "passed"),
        (("results", 0, "extra"), True),
        (("servers", 0, "capabilities", 0, "present"), "yes"),
        (("results", 18, "evidence"), {}),
    ],
)
def test_the_schema_refuses_a_wrong_report(path: tuple[str | int, ...], value: Any) -> None:
    """A version, word, type or field that is not agreed is refused."""
    report: Any = read_back(go())
    place = report
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, json_report.schema(), jsonschema.Draft202012Validator)


def test_equal_runs_give_equal_text() -> None:
    """The order of names and recordings does not depend on how they arrived."""
    first, second = answer("chat.a", CHAT), answer("chat.b", CHAT)
    facts = {"b": {"y": 1, "x": 2}, "a": 3}
    turned = {"a": 3, "b": {"x": 2, "y": 1}}
    one = record({"sim": run_of(server(), first, second, facts=facts)}, [])
    two = record({"sim": run_of(server(), second, first, facts=turned)}, [])

    assert json_report.dumps(document(one)) == json_report.dumps(document(two))


def test_values_that_json_has_not_become_words() -> None:
    """Infinity, paths, dates and sets in a launcher's facts do not break the report."""
    facts = {"inf": float("inf"), "nan": float("nan"), "set": {"b", "a"}, "date": waivers().started}
    loaded = read_back(record({"sim": run_of(server(), facts=facts)}, []))

    assert loaded["servers"][0]["facts"] == {
        "inf": "inf",
        "nan": "nan",
        "set": ["a", "b"],
        "date": "2026-11-27T20:50:00+00:00",
    }


def test_evidence_is_there_for_what_did_not_pass() -> None:
    """A failing check carries its request, excerpt, log, rerun line and script; a passing one none."""
    results = {row["check"]: row for row in read_back(no_go())["results"]}
    failed = results["tools.stream.arguments-join"]["evidence"]

    assert failed["exchanges"][0]["request"] == "POST /v1/chat/completions"
    assert failed["exchanges"][0]["file"] == "spark-fp8/recordings/tools.required-stream.jsonl"
    assert failed["exchanges"][0]["lines"][-1] == {"text": "[DONE]", "at": 0.57, "left_out": 0}
    assert failed["log"][0].startswith("WARNING")
    assert failed["rerun"] == "pytest --vllm-profile=spark-fp8 --vllm-check=tools.stream.arguments-join"
    assert failed["script"] == "checks/tools.stream.arguments-join.sh"
    assert results["chat.sample.fact-1"]["evidence"] is None


def test_a_check_over_many_exchanges_shows_three_and_counts_the_rest() -> None:
    """Evidence stays readable however many recordings a check judged."""
    results = {row["check"]: row for row in read_back(no_go())["results"]}
    evidence = results["throughput.decode.floor"]["evidence"]

    assert (len(evidence["exchanges"]), len(evidence["curl"]), evidence["left_out"]) == (3, 3, 2)


def test_the_exchange_that_the_reason_names_is_shown() -> None:
    """With many exchanges, the named one and the refused one come before the first."""
    recordings = [answer(f"chat.k{n}", CHAT, status=500 if n == 7 else 200) for n in range(9)]
    row = result(
        "chat.all", Verdict.FAIL, reason="chat.k5: no id", exchanges=tuple(r.key for r in recordings)
    )
    report = read_back(record({"sim": run_of(server(), *recordings)}, [row]))

    shown = [one["key"] for one in report["results"][0]["evidence"]["exchanges"]]
    assert shown == ["chat.k0", "chat.k5", "chat.k7"]


def test_waivers_say_what_became_of_them() -> None:
    """Used, or expired; with the end date."""
    found = {one["check"]: (one["state"], one["until"]) for one in read_back(waivers())["waivers"]}

    assert found == {
        "stream.usage.null-before-final": ("used", "2027-03-31"),
        "chat.envelope.object": ("expired", "2026-10-01"),
    }


def test_families_are_kept_apart() -> None:
    """A speed that is too low is not counted as a fault of conformance."""
    families = read_back(no_go())["families"]

    assert (families["performance"]["fail"], families["conformance"]["fail"]) == (1, 2)


def test_each_profile_has_its_own_answer() -> None:
    """GO for one, NO-GO for the other and for the run."""
    report = read_back(two_profiles())

    assert [(one["name"], one["answer"]) for one in report["profiles"]] == [
        ("sim", "GO"),
        ("rtx5090-awq", "NO-GO"),
    ]
    assert (report["answer"]["answer"], report["answer"]["exit_code"]) == ("NO-GO", 1)


def test_a_failed_boot_has_its_own_answer() -> None:
    """DID NOT BOOT, exit status 20, with the steps to try."""
    report = read_back(RUNS["did-not-boot"]())

    assert (report["answer"]["answer"], report["answer"]["exit_code"]) == ("DID NOT BOOT", 20)
    assert report["boot_failures"][0]["try"][0] == "[server.args] max-model-len = 22000"


# Markdown


@pytest.mark.parametrize("count", [0, 1, 50, 400])
def test_markdown_fits_a_job_summary(count: int) -> None:
    """However much failed, it stays below 60 kB and says how the rest is found."""
    text = markdown.render(document(many(count)))

    assert len(text.encode()) < 60_000
    assert ("more failures in report.html" in text) == (count >= 50)


def test_markdown_with_wide_characters_fits_too() -> None:
    """The limit counts bytes."""
    rows = [result(f"chat.fact-{n}", Verdict.FAIL, reason="語" * 900) for n in range(200)]

    assert len(markdown.render(document(record({"sim": run_of(server())}, rows))).encode()) < 60_000


def test_what_a_server_said_cannot_format_markdown() -> None:
    """Markup from outside stands in fences that it cannot close, or is escaped."""
    text = markdown.render(document(hostile()))
    fences = re.findall(r"^(`{3,})text\n(.*?)\n\1$", text, re.DOTALL | re.MULTILINE)
    outside = re.sub(r"^(`{3,})text\n.*?\n\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)

    assert any("# pwned" in inside for _, inside in fences)
    for mark in ("<script", "<img", "\n# pwned", "\x1b"):
        assert mark not in outside.replace("\\<", "")


def test_markdown_says_simulated() -> None:
    """A reader of the summary alone learns that no vLLM answered."""
    assert "**Simulated**" in markdown.render(document(go()))
    assert "imulated" not in markdown.render(document(no_go()))


# HTML


class Page(HTMLParser):
    """Tags, attributes and text of a page, and where its tags do not nest."""

    VOID = frozenset({"meta", "input", "br"})

    def __init__(self, text: str) -> None:
        """Read it."""
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the tag."""
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag that closes itself, as SVG has them."""
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """The innermost open tag is the one that closes."""
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every tag of that name."""
        return [attributes for name, attributes in self.tags if name == tag]


def page(record: RunRecord) -> Page:
    return Page(html.render(document(record)))


@pytest.mark.parametrize("name", RUNS)
def test_a_page_is_well_formed_and_loads_nothing(name: str) -> None:
    """Every opened tag is closed, ids are unique, and nothing is fetched from anywhere."""
    read = page(RUNS[name]())
    loading = [
        tag for tag, attributes in read.tags if "src" in attributes or tag in ("link", "iframe", "img")
    ]
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]

    assert loading == []
    assert (read.wrong, read.open) == ([], [])
    assert len(ids) == len(set(ids))
    assert not re.search(r"url\(|@import", html.render(document(RUNS[name]())))


def test_the_policy_names_the_pages_own_style_and_script() -> None:
    """The hashes in the policy are those of what stands in the page: it works, and nothing else runs."""
    text = html.render(document(no_go()))
    policy = page(no_go()).all("meta")[1]["content"] or ""

    for tag in ("style", "script"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert body
        digest = base64.b64encode(hashlib.sha256(body[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert not any("style" in attributes or "onclick" in attributes for _, attributes in page(no_go()).tags)


def test_what_a_server_said_is_text_in_a_page() -> None:
    """Markup from outside makes no tag."""
    read = page(hostile())

    assert len(read.all("script")) == 1
    assert read.all("img") == []
    assert "<img src=x onerror=alert(1)>" in read.text
    assert "\x1b" not in read.text


def test_a_page_answers_first_and_shows_the_evidence() -> None:
    """The answer is the heading; request, excerpt, log, rerun and curl are there."""
    read = page(no_go())
    first = read.text.index("NO-GO", read.text.index("pytest-vllm, "))

    for part in (
        "3 MUST checks failed",
        "tools.stream.arguments-join",
        "> POST /v1/chat/completions",
        'delta.tool_calls[0].function.arguments "unit"',
        "partial JSON could not be parsed",
        "--vllm-check=tools.stream.arguments-join",
        "echo POST http://127.0.0.1:49153",
    ):
        assert first < read.text.index(part), part


def test_a_page_says_simulated_in_title_and_text() -> None:
    """Whoever sees only the tab's title knows too."""
    text = html.render(document(go()))

    assert "<title>GO sim (simulated)</title>" in text
    assert "No vLLM and no GPU was involved." in text
    assert "imulated: the" not in html.render(document(no_go()))


def test_worst_checks_come_first() -> None:
    """Failures before what could not be decided, passes last."""
    badges = [row["data-verdict"] for row in page(undecided()).all("details") if "data-verdict" in row]

    assert badges[:3] == ["undecided", "undecided", "pass"]


def test_failures_are_shown_and_passes_hidden_at_first() -> None:
    """With failures, the filter starts without the passed checks; without any, with all."""

    def pressed(record: RunRecord) -> dict[str | None, str | None]:
        return {button["data-verdict"]: button["aria-pressed"] for button in page(record).all("button")}

    assert pressed(no_go()) == {"fail": "true", "pass": "false"}
    assert set(pressed(go()).values()) == {"true"}


# Timeline


def row(started: float, seconds: float, **more: Any) -> dict[str, Any]:
    base = {
        "key": "k",
        "method": "GET",
        "path": "/",
        "status": 200,
        "headers_at": 0.0,
        "error": "",
        "aborted": False,
    }
    return {**base, "started": started, "seconds": seconds, **more}


def test_exchanges_that_overlap_lie_in_different_lanes() -> None:
    """A lane is used again once it is free."""
    svg = timeline([row(0, 2), row(1, 2), row(2, 1), row(2.5, 1)])

    assert re.findall(r'class="wait" x="[\d.]+" y="(\d+)"', svg) == ["18", "34", "18", "50"]


def test_lost_and_refused_exchanges_are_marked() -> None:
    """5xx, no response and a broken one are lost; 4xx is refused; an abort on purpose is neither."""
    rows = [
        row(0, 1),
        row(0, 1, status=404),
        row(0, 1, status=None),
        row(0, 1, error="reset"),
        row(0, 1, error="closed", aborted=True),
    ]

    assert re.findall(r'class="bar (\w+)"', timeline(rows)) == [
        "answered",
        "refused",
        "lost",
        "lost",
        "answered",
    ]


def test_no_exchange_no_timeline() -> None:
    """Nothing recorded, nothing drawn."""
    assert timeline([]) == ""


def test_a_timeline_of_no_duration_is_drawn() -> None:
    """Recordings without times do not divide by zero."""
    assert "nan" not in timeline([row(0, 0)])


# Files


def test_what_is_written(tmp_path: Path) -> None:
    """Three reports and one executable script per check that did not pass; no half-written file."""
    written = write_all(two_profiles(), Redactor(), tmp_path / "new", curl=curl)
    script = written["checks/chat.envelope.object.sh"]

    assert sorted(written) == ["checks/chat.envelope.object.sh", "report.html", "report.json", "report.md"]
    assert sorted(p for p in (tmp_path / "new").rglob("*") if p.is_file()) == sorted(written.values())
    assert os.access(script, os.X_OK)
    said = subprocess.run([script], capture_output=True, text=True, check=True, env={"VLLM_API_KEY": "k"})
    assert said.stdout == "POST http://127.0.0.1:49200/v1/chat/completions k\n"


def test_a_script_for_two_profiles_holds_both(tmp_path: Path) -> None:
    """A check that fails on both profiles has one script that asks both servers."""
    both = two_profiles()
    rows = (*both.results, result("chat.envelope.object", Verdict.FAIL, reason="no\nobject"))
    written = write_all(dataclasses.replace(both, results=rows), Redactor(), tmp_path, curl=curl)
    text = written["checks/chat.envelope.object.sh"].read_text()

    assert text.count("#!/bin/sh") == 1
    assert text.count("\necho POST ") == 2
    assert "# no\n# object\n" in text


def test_a_reason_cannot_run_in_a_script(tmp_path: Path) -> None:
    """Every line of what a check said is a comment."""
    written = write_all(hostile(), Redactor(), tmp_path, curl=curl)
    script = next(path for name, path in written.items() if name.endswith(".sh"))
    ours = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]

    assert ours == ['echo POST http://127.0.0.1:49153/v1/chat/completions "${VLLM_API_KEY:-no key}"']


def test_cases_have_scripts_of_their_own(tmp_path: Path) -> None:
    """A case's brackets make a safe file name, different from another case's."""
    rows = [
        result(f"chat.bad[{case}]", Verdict.FAIL, reason="r")
        for case in ("a/../../b", "a b", "a_b", "Ünicode")
    ]
    run = run_of(server(), answer("chat.plain", CHAT))
    written = write_all(record({"sim": run}, rows), Redactor(), tmp_path, curl=curl)
    scripts = [name for name in written if name.endswith(".sh")]

    assert len(scripts) == 4
    assert all(written[name].parent == tmp_path / "checks" for name in scripts)


def test_a_lone_surrogate_is_written(tmp_path: Path) -> None:
    """Text that UTF-8 cannot hold does not end the report."""
    row_ = result("chat.x", Verdict.FAIL, reason="half \udc80", observations={"text": "\udc80"})
    run = run_of(server(), answer("chat.plain", b'{"a": "\\udc80"}'))
    written = write_all(record({"sim": run}, [row_]), Redactor(), tmp_path, curl=curl)

    assert json.loads(written["report.json"].read_text())["results"][0]["reason"] == "half \udc80"


def test_writing_again_replaces(tmp_path: Path) -> None:
    """A second report of the same folder is the newer one."""
    write_all(go(), Redactor(), tmp_path, curl=curl)
    write_all(no_go(), Redactor(), tmp_path, curl=curl)

    assert json.loads((tmp_path / "report.json").read_text())["answer"]["answer"] == "NO-GO"


# JUnit


def test_junit_properties_name_the_check_and_the_run() -> None:
    """Id, level, family, verdict, profile, simulated; and the answer of the run."""
    row_ = result("chat.x", Verdict.FAIL, level=Level.MUST, observations={"key": "reasoning"})

    assert junit.properties(row_, simulated=True) == [
        ("vllm.check", "chat.x"),
        ("vllm.level", "MUST"),
        ("vllm.family", "conformance"),
        ("vllm.verdict", "fail"),
        ("vllm.profile", "sim"),
        ("vllm.simulated", "true"),
        ("vllm.observed.key", "reasoning"),
    ]
    assert junit.suite_properties(record({"sim": run_of(server())}, [row_])) == [
        ("vllm.run", "20261127-2050-7c1e"),
        ("vllm.answer", "NO-GO"),
        ("vllm.exit_code", "1"),
        ("vllm.simulated", "true"),
        ("vllm.server.sim", "0.32.0, sim, qwen3-30b"),
    ]


def test_the_decision_of_a_profile_follows_strict() -> None:
    """Under --vllm-strict an advisory check makes the profile NO-GO as well."""
    rows = (result("chat.x", Verdict.ADVISORY, reason="r"),)
    strict = record({"sim": run_of(server())}, rows, decision=decide(rows, strict=True), strict=True)

    assert [one["answer"] for one in read_back(strict)["profiles"]] == ["NO-GO"]
