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
    found = run.report["causes"]
    assert sorted(check for cause in found for check in cause["checks"]) == sorted(failed)
    assert found[0]["area"] == "usage"
    blocks = re.findall(r"^_+ (\S+) _+$", run.text, re.MULTILINE)
    assert blocks == [cause["check"] for cause in found], "one block of evidence for each cause"
    last = max(place for place, line in enumerate(run.text.split("\n")) if line.startswith("=="))
    assert any(line.startswith("NO-GO") for line in run.text.split("\n")[last:]), "the answer comes last"
    assert re.search(r"^failed +\d+  usage.within-limit", run.text, re.MULTILINE)
