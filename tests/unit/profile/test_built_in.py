"""The built-in profiles: true to their guides, and at peace with their hardware and their vLLM."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pytest_vllm.facts import canonical, flag_status, parsers
from pytest_vllm.profile.derived import Figures, figures_of
from pytest_vllm.profile.hardware import hardware_names
from pytest_vllm.profile.load import load, names
from pytest_vllm.profile.model import Profile, Secret
from pytest_vllm.profile.modelfile import model_names

NOWHERE = Path(__file__).parent
GUIDES: dict[str, dict[str, Any]] = tomllib.loads((NOWHERE / "commands.toml").read_text("utf-8"))
BUILT_IN = [known.name for known in names(NOWHERE)]

PROMISED = {
    *(
        "sim",
        "cpu-smollm2",
        "cpu-smollm2-process",
        "spark-fp8",
        "spark-qwen35",
        "h100-fp8",
        "h100-dummy",
        "h100-dummy-eager",
        "rtx5090-qwq-awq",
    ),
    *(f"rtxpro6000-{kind}" for kind in ("bf16", "fp8", "awq", "gguf", "nvfp4", "shared", "systemd")),
    *(f"rtxpro6000-spec-{kind}" for kind in ("ngram", "draft", "suffix", "eagle3")),
    *("llama32-3b", "llama32-3b-awq", "llama32-3b-lora", "llama32-3b-nginx"),
}


def built_in(name: str) -> Profile:
    """A built-in profile with its defaults."""
    return load(name, NOWHERE, environ={"HOME": "~"})


def figures(name: str) -> Figures:
    """What its hardware and model allow."""
    found = figures_of(built_in(name), NOWHERE)
    assert found is not None
    return found


def read_command(text: str) -> tuple[list[str], str, dict[str, Any]]:
    """Program, model and flags of a command line: a flag without a value is true."""
    words = shlex.split(text.replace("\n", " "))
    start = next(n for n, word in enumerate(words) if word.startswith("--"))
    program, positional = words[:start], ""
    if program and "-m" not in program:
        *program, positional = program
    flags: dict[str, list[str]] = {}
    for word in words[start:]:
        if word.startswith("--"):
            flags[word.lstrip("-").replace("_", "-")] = values = []
        else:
            values.append(word)
    read = {name: _value(given) for name, given in flags.items()}
    return program, positional or str(read.pop("model")), read


def _value(given: list[str]) -> Any:
    if not given:
        return True
    if len(given) > 1:
        return given
    try:
        return json.loads(given[0])
    except json.JSONDecodeError:
        return given[0]


def test_all_are_there() -> None:
    """Every system of the guides, and the ones that need no GPU."""
    assert set(BUILT_IN) >= PROMISED


@pytest.mark.parametrize("name", GUIDES)
def test_a_profile_says_what_its_guide_says(name: str) -> None:
    """Model, flags, image, volumes, environment and GPUs, each to the value."""
    guide, server = GUIDES[name], built_in(name).server
    program, model, flags = read_command(guide["command"])
    served = {"served-model-name": server.served_model_name} if server.served_model_name else {}

    assert server.model == model
    assert {**served, **server.args} == flags
    assert (server.command or program or ["vllm", "serve"]) == (program or ["vllm", "serve"])
    assert server.image == guide.get("image", server.image)
    assert server.volumes == guide.get("volumes", server.volumes)
    assert list(server.env) == guide.get("env", list(server.env))
    assert server.gpus == guide.get("gpus", server.gpus)
    assert (server.ipc, server.shm) == (guide.get("ipc", server.ipc), guide.get("shm", server.shm))


@pytest.mark.parametrize("name", BUILT_IN)
def test_its_vllm_takes_its_flags(name: str) -> None:
    """No profile starts with a flag or a parser that its vLLM lacks."""
    server = built_in(name).server

    refused = [flag for flag in server.args if not flag_status(flag, server.vllm_version).accepted]

    assert refused == []
    for kind in ("tool", "reasoning"):
        flag = "tool-call-parser" if kind == "tool" else "reasoning-parser"
        if flag in server.args:
            assert server.args[flag] in parsers(kind, server.vllm_version)


@pytest.mark.parametrize("name", BUILT_IN)
def test_its_parsers_fit_its_model(name: str) -> None:
    """The model file names the parsers that fit its template, where it has one."""
    args, model = built_in(name).server.args, figures(name).model

    assert not model.chat_template or args.get("tool-call-parser", "") in ("", *model.tool_parsers)
    assert not model.chat_template or args.get("reasoning-parser") in (None, model.reasoning_parser)


@pytest.mark.parametrize("name", BUILT_IN)
def test_its_floors_are_below_its_ceilings(name: str) -> None:
    """A floor above what the hardware allows could never be met."""
    derived = figures(name)

    for limit, bound in derived.profile.limits.bounds():
        floor, ceiling = derived.floor(limit, bound), derived.ceiling(limit, bound.load)
        if floor is not None and ceiling is not None:
            assert 0 < floor <= ceiling, limit


@pytest.mark.parametrize("name", BUILT_IN)
def test_its_context_fits(name: str) -> None:
    """The model allows the context, and the cache holds one of it."""
    derived = figures(name)
    asked = derived.args.get("max-model-len", 1)

    assert asked <= derived.model.context
    assert derived.full_contexts is None or derived.full_contexts >= 1


@pytest.mark.parametrize("name", BUILT_IN)
def test_it_describes_itself(name: str) -> None:
    """One line of the list, names that exist, secrets that are only named."""
    profile = built_in(name)

    assert 20 <= len(profile.description) <= 92
    assert profile.hardware in hardware_names(NOWHERE)
    assert profile.model in model_names(NOWHERE)
    assert all(
        isinstance(value, Secret) for key, value in profile.server.env.items() if key.endswith("TOKEN")
    )
    assert profile.expect.capabilities


def test_it_expects_only_what_its_flags_allow() -> None:
    """Tools need a parser, reasoning too, cached token counts a flag, adapters theirs."""
    needs = {
        "tools": "tool-call-parser",
        "reasoning": "reasoning-parser",
        "cached-tokens": "enable-prompt-tokens-details",
        "lora": "enable-lora",
    }
    for name in BUILT_IN:
        profile = built_in(name)
        flags = {canonical(flag) for flag in profile.server.args}
        for capability, flag in needs.items():
            assert capability not in profile.expect.capabilities or flag in flags, (name, capability)
