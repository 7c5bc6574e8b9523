"""What a person reads first of a broken server is where it is broken."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.plugin.running import Gate


def test_the_likeliest_culprit_comes_first_everywhere(gate: Gate) -> None:
    run = gate(
        "--vllm-profile=sim",
        "--vllm-defect=chat.falsy-dropped",
        "--vllm-check=chat",
        "--vllm-check=reasoning",
        "--vllm-check=usage",
    )

    failed = [row["check"] for row in run.report["results"] if row["verdict"] == "fail"]
    assert failed[0] == "usage.within-limit"
    assert len(failed) > 1
    assert re.findall(r"^_+ (\S+) _+$", run.text, re.MULTILINE) == failed
    assert re.search(r"^failed +\d+  usage.within-limit", run.text, re.MULTILINE)
