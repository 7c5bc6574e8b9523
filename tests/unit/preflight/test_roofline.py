"""Measured speeds beside ceilings: published and measured figures lie where people know them to lie."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.preflight.roofline import Place, Roofline
from pytest_vllm.profile.checkpoint import from_config
from pytest_vllm.profile.derived import Figures, figures_of
from pytest_vllm.profile.hardware import load_hardware
from pytest_vllm.profile.limits import SpeedBound
from pytest_vllm.profile.model import Profile, ServerPart
from pytest_vllm.profile.units import Load

if TYPE_CHECKING:
    from pathlib import Path

EAGER_LINE = "Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT kernel warmup."
#: A Qwen3-8B-like shape with a small vocabulary, as it ran on an H100 with vLLM 0.26.0.
SHAPE = {
    "architectures": ["Qwen3ForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 49_216,
    "tie_word_embeddings": False,
    "max_position_embeddings": 40_960,
}


def shipped(hardware: str, model: str, root: Path, *log: str, **args: object) -> Roofline:
    """The roofline of a shipped model on a shipped device."""
    figures = figures_of(Profile(hardware=hardware, model=model, server=ServerPart(args=args)), root)
    assert figures is not None
    return Roofline(figures, log)


def h100(root: Path, *log: str, **args: object) -> Roofline:
    """The roofline of the 8B shape on an H100."""
    (root / "config.json").write_text(json.dumps(SHAPE))
    profile = Profile(server=ServerPart(version="0.26.0", args=args))
    return Roofline(Figures(profile, load_hardware("h100", root), from_config(root)), log)


def test_an_8b_model_on_an_h100(tmp_path: Path) -> None:
    """3.35 TB/s over 14.7 GB are 228 tok/s; 152 were measured compiled, 35 in eager mode.

    The ceiling is 3 % higher: rows of the input embedding, 0.4 GB, are looked up and not read.
    """
    compiled = h100(tmp_path).standing("decode-tok-s", 152)
    told = h100(tmp_path, **{"enforce-eager": True}).standing("decode-tok-s", 35)
    seen = h100(tmp_path, EAGER_LINE).standing("decode-tok-s", 35)
    unsaid = h100(tmp_path).standing("decode-tok-s", 35)

    assert compiled is not None
    assert told is not None
    assert seen is not None
    assert unsaid is not None
    assert 3.35e12 / h100(tmp_path).figures.weight_bytes == pytest.approx(228, rel=0.005)
    assert 228 < compiled.ceiling < 228 * 1.03
    assert (compiled.place, compiled.causes) == (Place.USUAL, ())
    assert (told.place, seen.place, unsaid.place) == (Place.LOW, Place.LOW, Place.LOW)
    assert told.causes[0].startswith("eager mode")
    assert seen.causes[0].startswith("eager mode")
    assert not any("eager" in cause for cause in unsaid.causes)
    assert str(told).startswith("35 tok/s, 15% of the ceiling of 234")


def test_eager_mode_that_is_usual_all_the_same(tmp_path: Path) -> None:
    """Half of the ceiling is half of the ceiling, however it came about."""
    standing = h100(tmp_path, **{"enforce-eager": True}).standing("decode-tok-s", 130)

    assert standing is not None
    assert standing.place is Place.USUAL


@pytest.mark.parametrize(
    ("hardware", "model", "measured"),
    [
        ("gb10", "qwen3-32b", 3.7),  # lyb.re, March 2026
        ("gb10", "qwen3-32b-fp8", 6.5),
        ("rtx5090", "qwq-32b-awq", 65),
        ("gb10", "qwen35-35b-a3b-fp8", 28),  # rwlove/home-ops#13219
        ("gb10", "qwen35-35b-a3b-fp8", 47),
    ],
)
def test_published_figures_are_usual(hardware: str, model: str, measured: float, tmp_path: Path) -> None:
    """What deployments in order were seen to do is neither low nor impossible."""
    standing = shipped(hardware, model, tmp_path).standing("decode-tok-s", measured)

    assert standing is not None
    assert standing.place is Place.USUAL, standing


def test_aggregate_of_a_spark(tmp_path: Path) -> None:
    """Of 350 tok/s with 64 streams of 1,024 tokens, 300 to 400 were seen: shorter contexts allow more."""
    roofline = shipped("gb10", "qwen3-32b-fp8", tmp_path, **{"max-num-seqs": 64})

    standing = roofline.standing("aggregate-tok-s", 300, Load(64))

    assert standing is not None
    assert standing.ceiling == pytest.approx(350, rel=0.01)
    assert standing.place is Place.USUAL


def test_a_figure_above_the_ceiling_is_impossible_unless_tokens_are_drafted(tmp_path: Path) -> None:
    """65 tok/s of a 32B model in AWQ on an RTX 4090, whose ceiling is 57, was claimed once."""
    claimed = shipped("rtx4090", "qwen3-32b-awq", tmp_path).standing("decode-tok-s", 65)
    drafts = {"speculative-config": {"method": "ngram", "num_speculative_tokens": 3}}
    drafted = shipped("rtx4090", "qwen3-32b-awq", tmp_path, **drafts).standing("decode-tok-s", 65)

    assert claimed is not None
    assert drafted is not None
    assert claimed.ceiling == pytest.approx(56.7, rel=0.01)
    assert (claimed.possible, drafted.possible) == (False, True)
    assert claimed.causes


def test_chunked_prefill_on_a_hybrid_model_is_named(tmp_path: Path) -> None:
    """A flag that costs nine times the speed of prompts."""
    roofline = shipped("gb10", "qwen35-35b-a3b-fp8", tmp_path)
    ceiling = roofline.figures.prefill_ceiling()

    slow = roofline.standing("prefill-tok-s", ceiling * 0.4 / 9)
    right = roofline.standing("prefill-tok-s", ceiling * 0.4)

    assert slow is not None
    assert right is not None
    assert slow.place is Place.IMPLAUSIBLE
    assert "hybrid" in slow.causes[0]
    assert right.place is Place.USUAL


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("Your GPU does not have native support for FP4 computation but FP4 is used", "other hardware"),
        ("Using default MoE config. Performance might be sub-optimal!", "tuned"),
        ("NVFP4 linear falling back to the slow emulation", "fell back"),
        ("Initializing an LLM engine with config: device_config=cpu, seed=0", "CPU"),
    ],
)
def test_the_log_names_the_cause(line: str, cause: str, tmp_path: Path) -> None:
    """Lines that vLLM prints become the likeliest cause."""
    standing = shipped("gb10", "qwen3-32b-fp8", tmp_path, line).standing("decode-tok-s", 0.5)

    assert standing is not None
    assert standing.place is Place.IMPLAUSIBLE
    assert cause in standing.causes[0]


def test_nothing_is_said_of_cpus_and_tiny_steps(tmp_path: Path) -> None:
    """Neither has published figures."""
    cpu = shipped("cpu", "smollm2-135m", tmp_path, **{"enforce-eager": True})
    tiny = shipped("h100", "smollm2-135m", tmp_path)

    assert cpu.usual("decode-tok-s") == 0
    assert not cpu.eager
    standing = tiny.standing("decode-tok-s", 100)
    assert standing is not None
    assert standing.place is Place.UNTOLD
    assert tiny.standing("kv-cache-tokens", 1) is None


def test_the_cache_of_an_h100_to_the_token(tmp_path: Path) -> None:
    """58.09 GiB were 422,976 tokens on a real H100: the formula is exact to 0.1 %, whole blocks of 16."""
    roofline = h100(tmp_path, **{"kv-cache-memory-bytes": round(58.09 * 2**30)})

    assert roofline.figures.kv_cache_tokens == pytest.approx(422_976, rel=0.001)
    assert roofline.figures.kv_cache_tokens % 16 == 0


def test_a_share_of_the_ceiling(tmp_path: Path) -> None:
    """`40 % of ceiling` of 234 tok/s."""
    bound = SpeedBound.model_validate({"min": "40 % of ceiling"})

    assert h100(tmp_path).figures.floor("decode-tok-s", bound) == pytest.approx(0.4 * 234.3, rel=0.001)


def test_lines_for_people(tmp_path: Path) -> None:
    """What is usual, and where something is wrong."""
    lines = shipped("gb10", "qwen3-32b-fp8", tmp_path, **{"enforce-eager": True}).lines()

    assert lines[0].startswith("eager mode")
    assert lines[1] == (
        "decode-tok-s    60% of the ceiling and more is usual: 5 tok/s; below 2.5 something is wrong"
    )
