"""Bad input gets one clear error, with the nearest right word, and never a traceback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.running import Gate

TYPO = """
[server]
launcher = "sim"
model = "sim/tiny"

[server.args]
max-modle-len = 4096
"""


@pytest.mark.parametrize(
    ("args", "exit_code", "words"),
    [
        (["--vllm-profile=spark-fp9"], 4, ["spark-fp9", "did you mean", "spark-fp8"]),
        (["--vllm-profile=./missing.toml"], 4, ["missing.toml"]),
        (["--vllm-profle=sim"], 4, ["unknown option --vllm-profle; did you mean --vllm-profile?"]),
        (["--vllm-profile=sim", "--vllm-launcher=dokcer"], 4, ["dokcer", "docker"]),
        (
            ["--vllm-profile=sim", "--vllm-concurrency=0"],
            4,
            ["'0' is not a positive integer (for instance 8)"],
        ),
        (["--vllm-profile=sim", "--vllm-check=chat.envelop"], 5, ["chat.envelop", "did you mean"]),
        (["--vllm-profile=sim", "--vllm-check=health", "--vllm-check=caht"], 4, ["caht names no check"]),
        (["--vllm-profile=sim", "--vllm-check=health", "--vllm-check=caht", "-n2"], 4, ["caht names no"]),
        (["--vllm-url=http://me:planted@spark"], 4, ["--vllm-url: it carries a login", "VLLM_API_KEY"]),
        (["--vllm-url=http://spark?api_key=planted"], 4, ["--vllm-url: it carries a query"]),
        (
            ["--vllm-url=http://me:pla/planted@spark", "--junitxml=j.xml"],
            4,
            ["--vllm-url: it carries a login"],
        ),
        (
            ["--vllm-profile=sim", "--vllm-proxy=http://me:p/planted@spark"],
            4,
            ["--vllm-proxy: a login is never"],
        ),
        (["--vllm-url=spark", "--vllm-proxy=socks5://x"], 4, ["--vllm-proxy: write", "http://HOST:PORT"]),
        (["--vllm-url=spark", "--vllm-client-key=k.pem"], 4, ["--vllm-client-cert=FILE too"]),
        (["--vllm-replay=nowhere"], 4, ["no run.json there"]),
        (
            ["--vllm-profile=sim", "suites/helth"],
            4,
            ["suites/helth: there is no such suite; did you mean suites/health?"],
        ),
        (["suites/health"], 4, ["these checks need a server", "--vllm-profile=NAME"]),
        (["--vllm-check=health"], 4, ["--vllm-check needs to know of which server"]),
        (["--vllm-url=ftp://spark/"], 4, ["ftp://spark/ is not a URL of an HTTP server"]),
        (["--vllm-url=https://spark", "--vllm-ca-file=none.pem"], 4, ["none.pem: there is no such file"]),
        (["-o", "vllm_profiles=sim"], 4, ["unknown key vllm_profiles", "did you mean vllm_profile?"]),
        (
            ["--vllm-profile=sim", "--vllm-check=health", "-k", "zzz"],
            5,
            ["NOTHING RAN  -k zzz left nothing to run"],
        ),
        (["--vllm-profile=sim", "-o", "vllm_suites=yess"], 4, ["vllm_suites in the ini file", "'yess'"]),
    ],
)
def test_one_clear_error(gate: Gate, args: list[str], exit_code: int, words: list[str]) -> None:
    run = gate(*args)

    assert run.exit == exit_code, run.text
    assert [word for word in words if word not in run.text] == []
    assert "Traceback" not in run.text
    assert "planted" not in run.text, "a secret is not repeated"


def test_a_typo_in_a_profile_names_file_line_and_the_right_key(gate: Gate) -> None:
    run = gate("--vllm-profile=./mine.toml", files={"mine.toml": TYPO})

    assert run.exit == 4
    assert "mine.toml:7" in run.text
    assert "max-modle-len" in run.text
    assert "max-model-len" in run.text
    assert "Traceback" not in run.text


def test_an_unreachable_url_is_exit_20(gate: Gate) -> None:
    run = gate("--vllm-url=http://127.0.0.1:1")

    assert run.exit == 20
    assert "did not boot" in run.text
    assert "http://127.0.0.1:1" in run.text
    assert "Traceback" not in run.text


ABOUT = '[server]\nlauncher = "sim"\nmodel = "m"\n\n[expect]\nchecks = ["models", "helth"]\n'


def test_what_a_profile_is_about_is_not_misspelt(gate: Gate) -> None:
    run = gate("--vllm-profile=./about.toml", files={"about.toml": ABOUT})

    assert run.exit == 4, run.text
    assert "[expect] checks: 'helth' names no check; did you mean health?" in run.text


TWINS = """
from pytest_vllm import MUST, check

@check("ours.one", MUST, spec="profile:one")
def test_first(vllm_server):
    "One holds."
    assert vllm_server.url

@check("ours.one", MUST, spec="profile:one")
def test_second(vllm_server):
    "Two holds."
    assert not vllm_server.url
"""


@pytest.mark.parametrize("more", [[], ["-n2"]])
def test_two_checks_of_one_id_are_refused(gate: Gate, more: list[str]) -> None:
    run = gate("test_twins.py", "--vllm-profile=sim", *more, files={"test_twins.py": TWINS})

    assert run.exit == 4, run.text
    assert "check ours.one is declared twice, by test_twins.py::test_first and" in run.text


def test_a_damaged_run_is_judged_as_far_as_it_can_be_read(gate: Gate) -> None:
    made = gate("--vllm-profile=sim", "--vllm-check=health")
    folder = made.folders[-1]
    cut = next((folder / "sim" / "recordings").glob("health.*.jsonl"))
    cut.write_bytes(cut.read_bytes()[:100])
    run = gate(f"--vllm-replay={folder}", "--vllm-check=health")

    assert run.exit == 21, run.text
    assert "1 recording of the replayed run cannot be read" in run.text
    kept = folder / "run.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text("utf-8")), "version": 2}), "utf-8")
    run = gate(f"--vllm-replay={folder}", "--vllm-check=health")

    assert run.exit == 4, run.text
    assert "its format 2 is later than 1: update pytest-vllm" in run.text
    kept.write_text("{", "utf-8")
    run = gate(f"--vllm-replay={folder}", "--vllm-check=health")

    assert run.exit == 4, run.text
    assert "its run.json cannot be read" in run.text
    assert "Traceback" not in run.text
