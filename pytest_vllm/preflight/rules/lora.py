"""LoRA adapters: their number, rank, names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_vllm.preflight.rule import ERROR, NOTE, WARNING, Finding, put, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment


def _modules(of: Deployment) -> list[str]:
    given = of.given("lora-modules")
    return (
        [str(one) if not isinstance(one, dict) else json.dumps(one) for one in given or ()]
        if isinstance(given, list)
        else [str(given)]
        if given
        else []
    )


def _name(module: str) -> str:
    if module.startswith("{"):
        try:
            return str(json.loads(module).get("name", ""))
        except ValueError:
            return ""
    return module.partition("=")[0]


@rule("lora.not-enabled", ERROR, source="vllm/entrypoints/openai/serving_models.py")
def not_enabled(of: Deployment) -> Iterator[Finding]:
    """Adapters without enable-lora: they cannot be loaded."""
    if _modules(of) and not of.on("enable-lora") and not of.has("config"):
        yield Finding(
            of.key("lora-modules"),
            f"{len(_modules(of))} adapters without enable-lora",
            "the engine refuses them at the start",
            put("server.args.enable-lora", value=True),
        )


@rule("lora.modules-syntax", ERROR, source="LoRAParserAction")
def modules_syntax(of: Deployment) -> Iterator[Finding]:
    """An adapter that is neither NAME=PATH nor JSON."""
    for module in _modules(of):
        if not _name(module) or ("=" not in module and not module.startswith("{")):
            yield Finding(of.key("lora-modules"), f"adapter {module!r}", "write NAME=PATH or JSON")


@rule("lora.few-slots", NOTE, source="LoRAConfig.max_loras")
def few_slots(of: Deployment) -> Iterator[Finding]:
    """More adapters than can be used in one batch."""
    count, slots = len(_modules(of)), of.whole("max-loras", 1)
    if of.on("enable-lora") and count > slots:
        yield Finding(
            of.key("max-loras"),
            f"{count} adapters, max-loras is {slots}",
            f"one batch serves {slots} of them; requests for others wait",
            put(of.key("max-loras"), count),
        )


@rule("lora.host-slots", ERROR, source="LoRAConfig.__post_init__")
def host_slots(of: Deployment) -> Iterator[Finding]:
    """Fewer adapters in the CPU's memory than on the GPU."""
    held, slots = of.whole("max-cpu-loras"), of.whole("max-loras", 1)
    if of.has("max-cpu-loras") and held < slots:
        yield Finding(
            of.key("max-cpu-loras"),
            f"max-cpu-loras is {held}, max-loras {slots}",
            "vLLM refuses",
            put(of.key("max-cpu-loras"), slots),
        )


@rule("lora.nothing-to-load", WARNING, source="vLLM's LoRA page")
def nothing_to_load(of: Deployment) -> Iterator[Finding]:
    """LoRA is on, no adapter is named, and none can be loaded later."""
    later = (
        of.env_on("VLLM_ALLOW_RUNTIME_LORA_UPDATING") or of.env("VLLM_LORA_RESOLVER_CACHE_DIR") is not None
    )
    if of.on("enable-lora") and not _modules(of) and not later and not of.env("VLLM_PLUGINS"):
        yield Finding(
            of.key("enable-lora"),
            "enable-lora without lora-modules",
            "buffers are held and nothing uses them",
        )


@rule("lora.name-taken", WARNING, source="/v1/models lists base and adapters by name")
def name_taken(of: Deployment) -> Iterator[Finding]:
    """An adapter is called like the model or like another adapter."""
    seen = {of.profile.server.served_model_name or of.profile.server.model}
    for module in _modules(of):
        if _name(module) in seen:
            yield Finding(
                of.key("lora-modules"),
                f"two models are called {_name(module)!r}",
                "requests of that name reach one of them only",
            )
        seen.add(_name(module))


@rule("lora.rank-waste", WARNING, source="LoRAConfig.max_lora_rank: buffers grow with it")
def rank_waste(of: Deployment) -> Iterator[Finding]:
    """A rank above what adapters have: buffers of that size are held for every slot."""
    rank = of.whole("max-lora-rank", 16)
    if of.on("enable-lora") and of.has("max-lora-rank") and rank >= 256:
        yield Finding(
            of.key("max-lora-rank"),
            f"max-lora-rank is {rank}",
            f"every slot holds buffers of that rank, {rank // 16} times those of rank 16",
            advice="the rank of your largest adapter",
        )


@rule("lora.quantised-base", WARNING, source="guide: adapters need the base model they were trained on")
def quantised_base(of: Deployment) -> Iterator[Finding]:
    """LoRA on a GGUF or NVFP4 base, which few kernels support."""
    if of.on("enable-lora") and of.quantization in ("nvfp4", "gguf-q5_k_m", "mxfp4"):
        yield Finding(
            of.key("enable-lora"),
            f"enable-lora on {of.quantization} weights",
            "kernels for adapters on such weights are missing in many versions",
        )


@rule("lora.expected", WARNING, source="[expect] of the profile")
def expected(of: Deployment) -> Iterator[Finding]:
    """Clients need adapters and the server has none."""
    wanted = "lora" in of.profile.expect.capabilities
    if wanted and not of.on("enable-lora") and not of.has("config"):
        yield Finding(
            "expect.capabilities",
            '"lora" is expected, enable-lora is not set',
            "no adapter can be loaded",
            put("server.args.enable-lora", value=True),
        )
