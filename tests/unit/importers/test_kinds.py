"""The table of docs/importing.md: each of its cells is a text that is imported here."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pytest_vllm.profile.importers import ImportProblem, imported
from pytest_vllm.profile.write import to_toml

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
FAMILIES: list[dict[str, Any]] = [
    tomllib.loads(file.read_text("utf-8")) for file in sorted((HERE / "kinds").glob("*.toml"))
]
ROWS = [(family, row) for family in FAMILIES for row in family["row"]]
FATES = ("read", "noted", "refused")


@pytest.mark.parametrize(("family", "row"), ROWS, ids=[f"{f['kind']}-{r['what']}" for f, r in ROWS])
def test_a_cell(family: dict[str, Any], row: dict[str, str], tmp_path: Path) -> None:
    """What the table says becomes of it."""
    file = tmp_path / family["file"]
    if "beside" in family:
        (tmp_path / family["beside"]).write_text(row["text"])
    file.write_text(family["frame"].replace("{}", row["text"]))

    if row["fate"] == "refused":
        with pytest.raises(ImportProblem, match=re.escape(row["shows"])):
            imported(file, environ={"HOME": "/home/me"})
        return
    found = imported(file, environ={"HOME": "/home/me"})
    told = {"read": to_toml(found.profile), "noted": "\n".join(found.notes)}
    assert row["shows"] in told[row["fate"]]
    assert not re.search(r"hf_AAAA|sk-abcdef", "\n".join(told.values()))


def table() -> str:
    """The rows by family and fate."""
    lines = ["| kind | read | noted | refused |", "| --- | --- | --- | --- |"]
    for family in FAMILIES:
        cells = ["; ".join(row["what"] for row in family["row"] if row["fate"] == fate) for fate in FATES]
        lines.append(f"| {family['kind']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_table_is_that_of_the_document() -> None:
    """docs/importing.md holds it word for word, between two comments."""
    text = (ROOT / "docs" / "importing.md").read_text("utf-8")
    found = re.search(r"<!-- kinds: [^\n]*-->\n(.*?)\n<!-- end of kinds -->", text, re.DOTALL)

    assert found is not None
    assert found[1] == table()
