"""Which model a profile serves: by file, config.json on this machine, catalogue, name; or not known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.profile.errors import ProfileError
from pytest_vllm.profile.model import Profile, ServerPart
from pytest_vllm.profile.recognised import recognised

if TYPE_CHECKING:
    from pathlib import Path

SHAPE = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
    "max_position_embeddings": 40_960,
    "tie_word_embeddings": True,
}


def checkpoint(folder: Path, **more: Any) -> Path:
    """A folder with a config.json."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(SHAPE | more))
    return folder


def served(model: str, **server: Any) -> Profile:
    """A profile of a model."""
    return Profile(name="x", server=ServerPart(model=model, **server))


def test_a_folder(tmp_path: Path) -> None:
    """Outside of containers the path is the folder."""
    folder = checkpoint(tmp_path / "weights")

    found = recognised(served(str(folder), launcher="process"), tmp_path, {})

    assert found.model is not None
    assert found.model.certain
    assert found.how == str(folder / "config.json")


def test_a_volume(tmp_path: Path) -> None:
    """In a container the path is what a volume maps, the innermost one."""
    checkpoint(tmp_path / "disk" / "tiny")
    volumes = ["/nowhere:/models", f"{tmp_path}/disk:/models/own:ro"]

    found = recognised(
        served("/models/own/tiny", launcher="docker", image="vllm/vllm-openai:v0.32.0", volumes=volumes),
        tmp_path,
        {},
    )

    assert found.model is not None
    assert found.model.layers == 28


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "HF_HOME", "HOME"])
def test_the_hub_cache(variable: str, tmp_path: Path) -> None:
    """A repository's config lies in the cache that the variables name."""
    inner = {"HF_HUB_CACHE": "", "HF_HOME": "hub", "HOME": ".cache/huggingface/hub"}[variable]
    checkpoint(tmp_path / inner / "models--me--tiny" / "snapshots" / "0123")

    found = recognised(served("me/tiny", launcher="process"), tmp_path, {variable: str(tmp_path)})

    assert found.model is not None


def test_the_hub_cache_of_a_container(tmp_path: Path) -> None:
    """A volume on the container's cache holds it."""
    checkpoint(tmp_path / "hub" / "models--me--tiny" / "snapshots" / "0123")
    volumes = [f"{tmp_path}:/root/.cache/huggingface"]

    found = recognised(
        served("me/tiny", launcher="docker", image="vllm/vllm-openai:v0.32.0", volumes=volumes), tmp_path, {}
    )

    assert found.model is not None


def test_a_config_that_is_named(tmp_path: Path) -> None:
    """`model` of a profile, and --vllm-model-config with it, may be a config.json."""
    folder = checkpoint(tmp_path / "own", num_hidden_layers=7)

    found = recognised(Profile(name="x", model=str(folder / "config.json")), tmp_path, {})

    assert found.model is not None
    assert found.model.layers == 7


def test_a_config_that_is_named_and_wrong(tmp_path: Path) -> None:
    """It is said, not passed over."""
    with pytest.raises(ProfileError, match="cannot be read"):
        recognised(Profile(name="x", model=str(tmp_path / "config.json")), tmp_path, {})


def test_by_the_served_name(tmp_path: Path) -> None:
    """A path that tells nothing is taken for what it is served as, and that is said."""
    found = recognised(served("/models/main", served_model_name="qwen3.5-35b"), tmp_path, {})

    assert found.model is not None
    assert found.model.hybrid
    assert found.how == "taken for Qwen/Qwen3.5-35B-A3B by the name 'qwen3.5-35b'"


def test_not_known(tmp_path: Path) -> None:
    """Why is said."""
    found = recognised(served("me/something"), tmp_path, {})

    assert found.model is None
    assert found.how == "no model file, config.json or known name for 'me/something'"


def test_a_broken_config_on_the_way(tmp_path: Path) -> None:
    """A config.json that says too little is why nothing is known."""
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "config.json").write_text('{"model_type": "new"}')

    found = recognised(served(str(tmp_path / "weights"), launcher="process"), tmp_path, {})

    assert found.model is None
    assert "lacks 'hidden_size'" in found.how


@pytest.mark.parametrize(
    "content", ["[]", "null", '{"hidden_size": "a", "num_attention_heads": 0}', "[" * 9999]
)
def test_hostile_configs(content: str, tmp_path: Path) -> None:
    """One line of refusal, never a traceback."""
    file = tmp_path / "config.json"
    file.write_text(content)

    with pytest.raises(ProfileError):
        recognised(Profile(name="x", model=str(file)), tmp_path, {})
