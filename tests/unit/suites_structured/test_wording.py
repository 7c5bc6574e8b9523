"""Broken engines are told from weak models by what they write."""

from __future__ import annotations

import pytest

from suites.canary.wording import run_fault, salad_fault

#: As a model of 135 million parameters writes.
WEAK = (
    "The boat is a sleek, modern vessel with a sleek design and a sleek hull. It's a sleek, modern vessel "
    "with a sleek hull and a sleek design. The boat is a sleek, modern vessel with a sleek hull. The boat"
)
GERMAN = (
    "Das Boot liegt ruhig auf dem Wasser, und die Sonne geht langsam unter. Ein Fischer zieht das Netz ein."
)
CHINESE = "小船在海上静静地漂着。太阳慢慢落下。渔夫收起了他的网。然后回家吃饭去了。"
CODE = "```python\ndef get_data(data_list):\n    return [item for item in data_list if item is not None]\n```"
SALAD = "to1 to10 can1 ToVerifyTo uessuess qzr lobLob vex13 nurn prtToVer kanx ulu ver9 to1 to10 can1 zor"


@pytest.mark.parametrize("text", [WEAK, GERMAN, CHINESE, CODE, "Paris.", ""])
def test_what_models_write_has_no_fault(text: str) -> None:
    assert (run_fault(text), salad_fault(text)) == ("", "")


@pytest.mark.parametrize(
    "text", ["!" * 64, "Rachel uess " + "f" * 40, "The boat is the " + "the " * 20, "! !" * 20]
)
def test_runs_are_told(text: str) -> None:
    assert run_fault(text)


def test_a_salad_of_pieces_is_told() -> None:
    assert salad_fault(SALAD) == "0 of 17 words are common ones"
