"""People's own tests: a booted server, clients, metrics, and checks of their own that join the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.plugin.running import Gate

OWN = '''
import pytest
from pytest_vllm import MUST, check, exchange


def test_openai_client_answers(vllm_client, vllm_server):
    answer = vllm_client.chat.completions.create(
        model=vllm_server.model, messages=[{"role": "user", "content": "Say hi."}], max_tokens=4
    )
    assert answer.choices[0].finish_reason in ("stop", "length")


def test_metrics_move(vllm_http, vllm_metrics, vllm_server):
    with vllm_metrics() as delta:
        vllm_http.post("/v1/completions", json={"model": vllm_server.model, "prompt": "Hi", "max_tokens": 3})
    assert delta("vllm:generation_tokens_total") >= 1


@pytest.mark.asyncio
async def test_async_client_answers(vllm_async_client, vllm_server):
    answer = await vllm_async_client.completions.create(model=vllm_server.model, prompt="Hi", max_tokens=2)
    assert answer.usage.completion_tokens <= 2


def test_capabilities_say_how(vllm_capabilities):
    assert vllm_capabilities["chat"].present
    assert vllm_capabilities["chat"].how


@exchange("mine.greeting")
def mine_greeting(server):
    return server.chat("Say hello.", max_tokens=8)


@check("mine.greeting.answered", MUST, spec="profile:mine")
def test_greeting(mine_greeting):
    """Our greeting is answered."""
    assert mine_greeting.status == 200
'''


def test_own_tests_run_against_one_booted_server(gate: Gate) -> None:
    run = gate("--vllm-profile=sim", "test_mine.py", files={"test_mine.py": OWN})

    run.result.assert_outcomes(passed=5)
    assert run.exit == 0, run.text
    assert run.verdicts == {"mine.greeting.answered": "pass"}


def test_own_tests_run_under_xdist_with_one_boot(gate: Gate) -> None:
    run = gate("--vllm-profile=sim", "-n2", "test_mine.py", files={"test_mine.py": OWN})

    run.result.assert_outcomes(passed=5)
    assert run.text.count("vllm: ready") == 1
    assert run.verdicts == {"mine.greeting.answered": "pass"}


def test_a_failing_own_test_is_no_go(gate: Gate) -> None:
    failing = "def test_mine(vllm_server):\n    assert vllm_server.model == 'another'\n"
    run = gate("--vllm-profile=sim", "test_mine.py", files={"test_mine.py": failing})

    assert run.exit == 1
    assert "NO-GO" in run.text
    assert "1 of your own tests failed" in run.text


def test_own_tests_without_a_server_say_what_to_pass(gate: Gate) -> None:
    run = gate("test_mine.py", files={"test_mine.py": "def test_mine(vllm_server):\n    pass\n"})

    assert run.exit != 0
    assert "pass --vllm-profile=NAME or --vllm-url=URL" in run.text


def test_two_profiles_parametrise(gate: Gate) -> None:
    other = 'extends = "sim"\ndescription = "Another."\n'
    run = gate(
        "--vllm-profile=sim",
        "--vllm-profile=./other.toml",
        "test_mine.py",
        files={"test_mine.py": OWN, "other.toml": other},
    )

    run.result.assert_outcomes(passed=10)
    assert run.text.count("vllm: ready") == 2
