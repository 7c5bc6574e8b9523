"""Files beside a script are found by its own path, wherever pytest runs; secrets that may be missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.profile.importers import ImportProblem, imported

if TYPE_CHECKING:
    from pathlib import Path

HERE = {
    "by the script's path": 'D="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\nsource "$D/vars.sh"\n',
    "by its folder": 'cd "$(dirname "$0")"\n. ./vars.sh\n',
    "by the folder above": 'cd "$(dirname "$0")/.."\n. scripts/vars.sh\n',
}


@pytest.mark.parametrize("how", HERE)
def test_a_script_given_by_a_relative_path(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it reads lies where it lies, not where pytest was started."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "vars.sh").write_text("LENGTH=512\n")
    (tmp_path / "scripts" / "serve.sh").write_text(
        HERE[how] + 'vllm serve org/a --max-model-len "${LENGTH:-4096}"\n'
    )
    monkeypatch.chdir(tmp_path)
    found = imported("scripts/serve.sh")
    assert found.profile.server.args == {"max-model-len": 512}
    assert not any("not there" in one for one in found.notes)


@pytest.mark.parametrize(
    ("written", "optional"),
    [
        ("-e HF_TOKEN=${HF_TOKEN:-}", True),
        ('${HF_TOKEN:+-e HF_TOKEN="$HF_TOKEN"}', True),
        ("-e HF_TOKEN=$HF_TOKEN", False),
        ("-e HF_TOKEN=${HF_TOKEN:?}", False),
    ],
)
def test_a_secret_that_may_be_missing(written: str, optional: bool) -> None:
    """The deployment starts without it, and so does the gate."""
    server = imported(f"docker run {written} vllm/vllm-openai:v0.32.0 --model org/a\n").profile.server
    assert server.env["HF_TOKEN"].optional is optional  # type: ignore[union-attr]


def test_a_key_that_may_be_missing_is_needed_here() -> None:
    """A flag has its value or is not there: the gate asks for the one that clients send."""
    found = imported('vllm serve org/a --api-key "${VLLM_API_KEY:-}"\n')
    assert any("VLLM_API_KEY may be empty there; here it has to be set" in one for one in found.notes)


def test_a_path_below_the_script_is_made_whole(tmp_path: Path) -> None:
    """The gate starts the server in a folder of its own."""
    (tmp_path / "model").mkdir()
    (tmp_path / "a.sh").write_text("vllm serve ./model\n")
    assert imported(tmp_path / "a.sh").profile.server.model == str(tmp_path / "model")


def test_an_entry_point_that_starts_one_server_in_several_ways() -> None:
    """Each way ends in the same command: there is nothing to choose."""
    script = 'if a; then exec \\"$@\\"; fi; if b; then exec \\"$@\\"; fi; exec \\"$@\\"'
    head = "services: {a: {image: own/vllm, entrypoint: "
    text = f'{head}[sh, -c, "{script}", x], command: [vllm, serve, org/a]}}}}'
    assert imported(text).profile.server.model == "org/a"


@pytest.mark.parametrize(
    ("gpu", "count"), [("H100:8", 8), ("H100:80GB:2", 2), ("24GB", 1), ("{name: H100, count: 4}", 4)]
)
def test_dstack_counts_its_gpus(gpu: str, count: int) -> None:
    """A run is told how many it has."""
    text = (
        f"type: service\ncommands:\n  - vllm serve org/a -tp $DSTACK_GPUS_NUM\nresources: {{gpu: '{gpu}'}}\n"
    )
    text = text.replace("'{", "{").replace("}'", "}")
    assert imported(text).profile.server.args["tensor-parallel-size"] == count


def test_a_text_that_is_not_known_sets_nothing_that_is() -> None:
    """`eval` of lines that are read when it runs adds what nobody knows."""
    text = (
        'A=(--seed 1)\nwhile read -r line; do\n  eval "A+=($line)"\ndone < more\nvllm serve org/a "${A[@]}"\n'
    )
    with pytest.raises(ImportProblem, match="line"):
        imported(text)


def test_a_container_whose_id_is_kept() -> None:
    """It is started as any other; one that only answers a question is not."""
    line = "ID=$(docker run {} vllm/vllm-openai:v0.32.0 --model org/a)\n"
    assert imported(line.format("-d --gpus all")).profile.server.gpus == "all"
    with pytest.raises(ImportProblem, match="no command runs vLLM"):
        imported(line.format("--rm"))
