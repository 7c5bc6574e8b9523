"""`--vllm-plan` prints what a run would send, and starts nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.plugin.running import Gate


def test_the_plan_names_requests_tokens_and_time(gate: Gate) -> None:
    run = gate("--vllm-profile=sim", "--vllm-plan", "--vllm-check=chat")

    assert run.exit == 0, run.text
    assert run.folders == []
    assert re.search(r"plan of sim, tier gate: \d+ checks; nothing was started or sent", run.text)
    assert re.search(r"record   [\d,]+ requests, 32 at once", run.text)
    assert re.search(r"about \d+ s \(at 20 tokens a second a request", run.text)


def test_a_plan_needs_a_server(gate: Gate) -> None:
    run = gate("--vllm-plan")

    assert run.exit == 4
    assert "--vllm-plan needs to know for which server" in run.text
