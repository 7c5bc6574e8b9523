"""Bad input gets one clear error, with the nearest right word, and never a traceback."""

from __future__ import annotations

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
