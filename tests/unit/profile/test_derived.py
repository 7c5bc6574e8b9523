"""Ceilings and capacities against figures that were computed or measured elsewhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.profile.checkpoint import from_config
from pytest_vllm.profile.derived import Figures, figures_of
from pytest_vllm.profile.errors import ProfileError
from pytest_vllm.profile.hardware import hardware_names, load_hardware
from pytest_vllm.profile.load import load
from pytest_vllm.profile.model import Profile, ServerPart
from pytest_vllm.profile.modelfile import load_model, model_names, model_of_repo

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.profile.conftest import Project


def built(hardware: str, model: str, root: Path, **args: object) -> Figures:
    """Figures of a model on a device."""
    profile = Profile(hardware=hardware, model=model, server=ServerPart(args=args))
    figures = figures_of(profile, root)
    assert figures is not None
    return figures


@pytest.mark.parametrize(
    ("model", "hardware", "tokens_per_second"),
    [
        ("qwen3-32b", "gb10", 4.3),
        ("qwen3-32b", "rtxpro6000", 28.0),
        ("qwen3-32b", "h100", 52.4),
        ("qwen3-32b-fp8", "gb10", 8.3),
        ("qwen3-32b-fp8", "rtxpro6000", 54.7),
        ("qwen3-32b-fp8", "h100", 102.0),
        ("qwen3-32b-awq", "gb10", 15.4),
        ("qwq-32b-awq", "rtx5090", 100.9),
        ("qwen3-32b-awq", "l40s", 48.6),
        ("qwen3-32b-nvfp4", "b200", 419.0),
    ],
)
def test_decode_ceilings(model: str, hardware: str, tokens_per_second: float, tmp_path: Path) -> None:
    """One stream reads all weights once per token."""
    assert built(hardware, model, tmp_path).decode_ceiling() == pytest.approx(tokens_per_second, rel=0.01)


def test_aggregate_ceilings(tmp_path: Path) -> None:
    """Streams share the weights and read a cache of their own."""
    figures = built("gb10", "qwen3-32b-fp8", tmp_path, **{"max-num-seqs": 128})

    ceilings = [figures.aggregate_ceiling(streams) for streams in (8, 16, 32, 64, 128)]

    assert ceilings == pytest.approx([62, 118, 211, 350, 520], rel=0.02)


def test_streams_above_the_batch_wait(tmp_path: Path) -> None:
    """More streams than `max-num-seqs` are no faster."""
    figures = built("gb10", "qwen3-32b-fp8", tmp_path, **{"max-num-seqs": 16})

    assert figures.aggregate_ceiling(64) == figures.aggregate_ceiling(16)


def test_prefill_is_bound_by_compute(tmp_path: Path) -> None:
    """3.9k tokens/s on GB10, 15.8k on an RTX PRO 6000, 31k on an H100."""
    ceilings = [
        built(name, "qwen3-32b-fp8", tmp_path).prefill_ceiling() for name in ("gb10", "rtxpro6000", "h100")
    ]

    assert ceilings == pytest.approx([3900, 15800, 31000], rel=0.01)


def test_experts_wake_up_with_the_batch(tmp_path: Path) -> None:
    """Of 256 experts, 8 of them per token: a step of 16 tokens touches 102, one of 64 touches 222."""
    model = load_model("qwen35-35b-a3b-fp8", tmp_path)
    idle = model.step_bytes(1) - 8 * (per_expert := (model.step_bytes(100_000) - model.step_bytes(1)) / 248)

    touched = [(model.step_bytes(batch) - idle) / per_expert for batch in (1, 16, 32, 64, 128)]

    assert touched == pytest.approx([8, 102, 163, 222, 252], abs=1)


def test_the_cpu_server_s_cache_to_the_token(tmp_path: Path) -> None:
    """2 GiB of cache for SmolLM2 were 93,184 tokens on a live vLLM 0.32.0, 22.75 contexts of 4,096."""
    server = ServerPart(env={"VLLM_CPU_KVCACHE_SPACE": "2"}, args={"max-model-len": 4096})
    figures = figures_of(Profile(hardware="cpu", model="smollm2-135m", server=server), tmp_path)

    assert figures is not None
    assert figures.kv_bytes_per_token == 23_040
    assert figures.kv_cache_tokens == 93_184
    assert figures.full_contexts == 22.75


def test_the_cpu_server_in_32_bits(tmp_path: Path) -> None:
    """The same in float32 were 46,592 tokens on a live vLLM 0.32.0; weights take twice as much."""
    args = {"max-model-len": 4096, "dtype": "float32"}
    server = ServerPart(env={"VLLM_CPU_KVCACHE_SPACE": "2"}, args=args)
    figures = figures_of(Profile(hardware="cpu", model="smollm2-135m", server=server), tmp_path)

    assert figures is not None
    assert (figures.kv_bytes_per_token, figures.kv_cache_tokens) == (46_080, 46_592)
    assert figures.weight_bytes == 538_060_032


def test_the_spark_s_cache(project: Project) -> None:
    """The server had 271,360 tokens; the estimate from above is within a tenth."""
    figures = figures_of(project.load("spark-fp8"), project.root)

    assert figures is not None
    assert 271_360 <= figures.kv_cache_tokens <= 271_360 * 1.1
    assert figures.weight_bytes == pytest.approx(34.3e9, rel=0.01)


def test_an_h100_s_cache(tmp_path: Path) -> None:
    """An 8B shape at utilisation 0.92 had 422,976 tokens of cache on a real H100."""
    config = {
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
    (tmp_path / "config.json").write_text(json.dumps(config))
    profile = Profile(server=ServerPart(version="0.26.0"))

    figures = Figures(profile, load_hardware("h100", tmp_path), from_config(tmp_path))

    assert figures.weight_bytes == pytest.approx(13.7 * 2**30, rel=0.01)
    assert figures.kv_cache_tokens == pytest.approx(422_976, rel=0.02)


def test_a_smaller_cache_type_holds_more(tmp_path: Path) -> None:
    """FP8 halves the bytes per token."""
    whole = built("gb10", "qwen3-32b-fp8", tmp_path)
    half = built("gb10", "qwen3-32b-fp8", tmp_path, **{"kv-cache-dtype": "fp8"})

    assert (whole.kv_bytes_per_token, half.kv_bytes_per_token) == (262_144, 131_072)


def test_more_devices_share_the_work(tmp_path: Path) -> None:
    """Two GPUs read half of the weights each."""
    two = built("h100", "qwen3-32b", tmp_path, **{"tensor-parallel-size": 2})

    assert two.decode_ceiling() == pytest.approx(2 * built("h100", "qwen3-32b", tmp_path).decode_ceiling())
    assert two.weight_bytes == pytest.approx(32.76e9, rel=0.01)


def test_what_does_not_fit_has_no_cache(tmp_path: Path) -> None:
    """65 GB of weights leave nothing of 24 GB."""
    assert built("rtx4090", "qwen3-32b", tmp_path).kv_cache_tokens == 0


def test_no_figures_without_hardware_or_model(project: Project) -> None:
    """A profile that names neither has no ceiling; the repository's name finds the model file."""
    project.write('[server]\nmodel = "my/model"\nimage = "x"')
    assert figures_of(project.load(), project.root) is None
    project.write('hardware = "gb10"\n[server]\nmodel = "Qwen/Qwen3-32B-FP8"\nimage = "x"')
    found = figures_of(project.load(), project.root)
    assert found is not None
    assert found.model.title == "Qwen3-32B-FP8"


def test_every_hardware_file_is_valid(tmp_path: Path) -> None:
    """No device promises more memory than its maker, and each step of precision is faster."""
    for name in hardware_names(tmp_path):
        device = load_hardware(name, tmp_path)
        peaks = [p for p in (device.tflops_bf16, device.tflops_fp8, device.tflops_fp4) if p]
        assert device.memory_gib <= device.memory_gb, name
        assert peaks == sorted(peaks), name
        assert device.source, name


def test_every_model_file_agrees_with_its_shape(tmp_path: Path) -> None:
    """Sizes that are written down are those that the shape gives."""
    for name in model_names(tmp_path):
        model = load_model(name, tmp_path)
        assert model.weights == pytest.approx(model.counted_weights(), rel=0.01), name
        assert model.active == pytest.approx(model.counted_active(), rel=0.01), name
        counted = model.model_copy(update={"read_bytes": 0}).step_bytes()
        assert model.read_bytes == pytest.approx(counted, rel=0.01), name
        assert model_of_repo(model.repo, tmp_path) == name, name


@pytest.mark.parametrize(
    ("name", "shape", "quantised"),
    [
        ("qwen3-32b-fp8", {"head_dim": 128}, {"quant_method": "fp8"}),
        ("llama32-3b", {"head_dim": 128, "tie_word_embeddings": True}, None),
        ("smollm2-135m", {"tie_word_embeddings": True}, None),
    ],
)
def test_config_json_gives_the_same(
    name: str, shape: dict[str, object], quantised: dict[str, object] | None, tmp_path: Path
) -> None:
    """A checkpoint's own description leads to the figures of the shipped file."""
    shipped = load_model(name, tmp_path)
    config = {
        "architectures": [shipped.architecture],
        "hidden_size": shipped.hidden,
        "intermediate_size": shipped.intermediate,
        "num_hidden_layers": shipped.layers,
        "num_attention_heads": shipped.heads,
        "num_key_value_heads": shipped.kv_heads,
        "vocab_size": shipped.vocab,
        "max_position_embeddings": shipped.context,
        **shape,
        **({"quantization_config": quantised} if quantised else {}),
    }
    (tmp_path / "config.json").write_text(json.dumps(config))

    read = from_config(tmp_path)

    assert read.quantization == shipped.quantization
    assert read.params == pytest.approx(shipped.params, rel=0.001)
    assert read.weights == pytest.approx(shipped.weights, rel=0.001)
    assert read.kv_bytes_per_token() == shipped.kv_bytes_per_token()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "config.json:1:2: not JSON: Expecting property name enclosed in double quotes"),
        ("{}", "config.json: lacks 'hidden_size', so the model's size is unknown"),
        (None, "config.json: cannot be read: No such file or directory"),
    ],
)
def test_a_config_that_says_too_little(content: str | None, message: str, tmp_path: Path) -> None:
    """One line each."""
    if content is not None:
        (tmp_path / "config.json").write_text(content)

    with pytest.raises(ProfileError) as refused:
        from_config(tmp_path)

    assert str(refused.value) == f"{tmp_path}/{message}"


def test_a_faulty_hardware_file_is_located(project: Project) -> None:
    """File, line and the right key, as for profiles."""
    folder = project.root / "vllm-profiles" / "hardware"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text('title = "x"\nbandwith-gb-s = 3\n')
    profile = Profile(hardware="mine", model="sim-model")

    with pytest.raises(ProfileError) as refused:
        figures_of(profile, project.root)

    said = str(refused.value).splitlines()
    assert "vllm-profiles/hardware/mine.toml:2: unknown key 'bandwith-gb-s' in the file" in said[-1]
    assert "did you mean 'bandwidth-gb-s'?" in said[-1]


def test_built_in_profiles_have_figures(tmp_path: Path) -> None:
    """Hardware and model of every built-in profile are known."""
    for name in ("sim", "cpu-smollm2", "cpu-smollm2-process", "spark-fp8"):
        figures = figures_of(load(name, tmp_path, environ={}), tmp_path)
        assert figures is not None
        assert all(figures.plain().values()), name
