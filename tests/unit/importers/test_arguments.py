"""vLLM's own rules for its arguments, and what is said of flags that no release had."""

from __future__ import annotations

import pytest

from pytest_vllm.profile.importers import ImportProblem, imported

RUN = "docker run {image} --model org/a {flags}"
RELEASE, NEWER, FORK = "vllm/vllm-openai:v0.32.0", "vllm/vllm-openai:v9.1.0", "registry.corp/vllm:1.4.2"


def test_the_beginning_of_a_flag_is_the_flag_where_one_begins_so() -> None:
    """As argparse takes it; the note says which."""
    found = imported("vllm serve org/a --max-num-seq 8 --gpu_memory_util=0.9", environ={})

    assert found.profile.server.args == {"max-num-seqs": 8, "gpu-memory-utilization": 0.9}
    assert found.notes[0] == "the text:1: --max-num-seq is short for --max-num-seqs"


def test_a_beginning_of_several_flags_is_refused() -> None:
    """VLLM refuses it too."""
    with pytest.raises(ImportProblem, match=r"--max-num may be .*--max-num-batched-tokens, .*; write it out"):
        imported("vllm serve org/a --max-num 8", environ={})


@pytest.mark.parametrize("image", [NEWER, FORK, "vllm/vllm-openai:nightly", "vllm/vllm-openai"])
def test_a_flag_of_another_vllm_is_not_judged(image: str) -> None:
    """It reaches the profile, and the note says that nobody knows it."""
    found = imported(RUN.format(image=image, flags="--brand-new 3 --other --seed 1"), environ={})

    assert found.profile.server.args == {"brand-new": 3, "other": True, "seed": 1}
    assert [note.partition(" is not known to pytest-vllm")[0] for note in found.notes[:2]] == [
        "the text:1: --brand-new",
        "the text:1: --other",
    ]


def test_a_flag_that_a_release_does_not_have_is_refused() -> None:
    """There, the facts hold."""
    with pytest.raises(ImportProblem, match="unknown vllm flag '--brand-new'"):
        imported(RUN.format(image=RELEASE, flags="--brand-new 3"), environ={})
