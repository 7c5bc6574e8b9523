"""Start-up refusals: what vLLM checks before it serves, and the words with which it ends.

Each rule looks at the deployment and gives the message, or None. `stage` is where vLLM notices: "arguments"
and "config" end the API server, "engine" ends the engine core first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.boot.kind import architecture_of, made_for
from pytest_vllm.sim.boot.machine import GIB
from pytest_vllm.sim.versions import Version, facts, parsers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_vllm.sim.boot.deployment import Deployment

_SEE = "See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."


@dataclass(frozen=True)
class Rule:
    """One check: its id in the facts, the stage, the exception's name, and the function that decides."""

    id: str
    stage: str
    exception: str
    decide: Callable[[Deployment], str | None]


RULES: list[Rule] = []


def rule(id: str, stage: str, exception: str = "ValueError") -> Callable[[Any], Any]:  # noqa: A002
    """Declare a rule."""

    def declare(decide: Callable[[Deployment], str | None]) -> Callable[[Deployment], str | None]:
        RULES.append(Rule(id, stage, exception, decide))
        return decide

    return declare


def broken(deployment: Deployment) -> Iterator[tuple[Rule, str]]:
    """Every rule that the deployment breaks, in the order in which vLLM notices."""
    for stage in ("arguments", "config", "engine"):
        for one in RULES:
            if one.stage == stage and (message := one.decide(deployment)):
                yield one, message


def _gib(size: float) -> str:
    return f"{size / GIB:.2f}"


@rule("auto_tool_without_parser", "arguments", "TypeError")
def _auto_tools(d: Deployment) -> str | None:
    if d.args.get("enable_auto_tool_choice") and not d.args.get("tool_call_parser"):
        return "Error: --enable-auto-tool-choice requires --tool-call-parser"
    return None


@rule("chat_template_missing", "arguments")
def _template(d: Deployment) -> str | None:
    path = d.args.get("chat_template")
    if path and "\n" not in path and "{" not in path and not d.exists(path):
        return (
            f"The supplied chat template string ({path}) appears path-like, but doesn't exist! Tried: "
            f"{path} and {path}"
        )
    return None


@rule("model_flag_with_serve", "arguments")
def _model_flag(d: Deployment) -> str | None:
    if d.model_flag and Version("0.8.5") <= d.version < "0.11.1":
        return (
            "With `vllm serve`, you should provide the model as a positional argument or in a config file "
            "instead of via the `--model` option."
        )
    return None


@rule("tool_parser_unknown", "arguments", "KeyError")
def _tool_parser(d: Deployment) -> str | None:
    name = d.args.get("tool_call_parser")
    known = _parsers(d.version, "tool")
    if (
        name
        and d.args.get("enable_auto_tool_choice")
        and name not in known
        and not d.args.get("tool_parser_plugin")
    ):
        return f"'invalid tool call parser: {name} (chose from {{ {','.join(known)} }})'"
    return None


@rule("reasoning_parser_unknown", "arguments", "KeyError")
def _reasoning_parser(d: Deployment) -> str | None:
    name = d.args.get("reasoning_parser")
    known = _parsers(d.version, "reasoning")
    if (
        not name
        or name in known
        or d.args.get("reasoning_parser_plugin")
        or (name == "none" and d.version >= "0.33.0")
    ):
        return None
    if d.version >= "0.24.0":
        return f"\"Reasoning parser '{name}' not found. Available parsers: {', '.join(known)}\""
    return f"'invalid reasoning parser: {name} (chose from {{ {','.join(known)} }})'"


def _parsers(version: Version, kind: str) -> list[str]:
    return sorted(name for name, span in parsers(kind).items() if version.within(span))


@rule("runner_generate_unsupported", "config")
def _runner(d: Deployment) -> str | None:
    made = made_for(architecture_of(d.model, d.shape))
    if d.args.get("runner") != "generate" or {"generate", "transcription"} & {*made}:
        return None
    if d.version >= "0.30.0":
        return (
            "Embedding models do not support `--runner generate`. Use `--runner pooling` or `--runner auto` "
            "for embedding models."
        )
    return "This model does not support `--runner generate`."


@rule("max_model_len_too_long", "config")
def _length(d: Deployment) -> str | None:
    given, context = d.args.given.get("max_model_len"), d.shape.context
    allowed = d.environ.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") == "1" or d.args.get("hf_overrides")
    if not isinstance(given, int) or given <= context or allowed or not d.shape.known:
        return None
    return (
        f"User-specified max_model_len ({given}) is greater than the derived max_model_len "
        f"(max_position_embeddings={context} or model_max_length=None in model's config.json). To allow "
        "overriding this "
        "maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1. VLLM_ALLOW_LONG_MAX_MODEL_LEN must be "
        "used with "
        "extreme caution. If the model uses relative position encoding (RoPE), positions exceeding "
        "derived_max_model_len lead to nan."
    )


@rule("batched_lt_len", "config")
def _budget(d: Deployment) -> str | None:
    tokens, length = d.capacity.max_num_batched_tokens, d.capacity.max_model_len
    if d.capacity.chunked_prefill or tokens >= length:
        return None
    return (
        f"max_num_batched_tokens ({tokens}) is smaller than max_model_len ({length}). This effectively "
        "limits the "
        "maximum sequence length to max_num_batched_tokens and makes vLLM reject longer sequences. Please "
        "increase "
        "max_num_batched_tokens or decrease max_model_len."
    )


@rule("batched_lt_seqs", "config")
def _budget_seqs(d: Deployment) -> str | None:
    tokens, seqs = d.capacity.max_num_batched_tokens, d.capacity.max_num_seqs
    if tokens >= seqs:
        return None
    return f"max_num_batched_tokens ({tokens}) must be greater than or equal to max_num_seqs ({seqs})."


@rule("batched_lt_block", "config", "AssertionError")
def _budget_block(d: Deployment) -> str | None:
    tokens, size = d.capacity.max_num_batched_tokens, d.capacity.block_size
    if not d.shape.hybrid or not d.capacity.prefix_caching or tokens >= size:
        return None
    return f"In Mamba cache align mode, block_size ({size}) must be <= max_num_batched_tokens ({tokens})."


@rule("tp_heads", "config")
def _heads(d: Deployment) -> str | None:
    degree = d.args.get("tensor_parallel_size", 1)
    if d.shape.heads % degree == 0:
        return None
    return (
        f"Total number of attention heads ({d.shape.heads}) must be divisible by tensor parallel size "
        f"({degree})."
    )


@rule("ep_dense", "config")
def _experts(d: Deployment) -> str | None:
    if d.args.get("enable_expert_parallel") and not d.shape.experts:
        return "Number of experts in the model must be greater than 0 when expert parallelism is enabled."
    return None


@rule("quant_mismatch", "config")
def _quantization(d: Deployment) -> str | None:
    given, own = d.args.get("quantization"), d.shape.quantization
    if not given or own in ("none", "") or given == own or own.startswith(given) or given.startswith(own):
        return None
    return (
        f"Quantization method specified in the model config ({own}) does not match the quantization method "
        "specified "
        f"in the `quantization` argument ({given})."
    )


@rule("quant_unknown", "config")
def _quantization_name(d: Deployment) -> str | None:
    given = d.args.get("quantization")
    known = facts("flags")["--quantization"].get("suggested") or ()
    if not given or not known or given in known:
        return None
    return f"Unknown quantization method: {given}. Must be one of {known}."


@rule("gpu_util_range", "config")
def _share(d: Deployment) -> str | None:
    share = d.args.get("gpu_memory_utilization", 0.9)
    if 0 < share <= 1:
        return None
    return f"GPU memory utilization must be less than 1.0. Got {share}."


@rule("spec_no_tokens", "config")
def _speculation(d: Deployment) -> str | None:
    config = d.args.get("speculative_config")
    if not isinstance(config, dict) or not config.get("model") or config.get("num_speculative_tokens"):
        return None
    return (
        "num_speculative_tokens must be provided with speculative model unless the draft model config "
        "contains an n_predict parameter."
    )


@rule("env_unknown_strict", "config")
def _environment(d: Deployment) -> str | None:
    unknown = d.unknown_environment
    if unknown and d.args.get("fail_on_environ_validation"):
        return f"Unknown vLLM environment variable detected: {unknown[0]}"
    return None


@rule("world_gt_gpus", "engine")
def _world(d: Deployment) -> str | None:
    world = d.args.get("tensor_parallel_size", 1) * d.args.get("pipeline_parallel_size", 1)
    visible = d.environ.get("CUDA_VISIBLE_DEVICES")
    count = len([one for one in visible.split(",") if one]) if visible else None
    if count is None or world <= count:
        return None
    return f"World size ({world}) is larger than the number of available GPUs ({count}) in this node."


@rule("gpu_free_below_request", "engine")
def _taken(d: Deployment) -> str | None:
    taken = float(d.environ.get("SIM_MEMORY_TAKEN_GIB") or 0) * GIB
    share = d.args.get("gpu_memory_utilization", 0.92 if d.version >= "0.20.0" else 0.9)
    free, wanted = d.machine.memory - taken, d.machine.memory * share
    if d.machine.is_cpu or d.version < "0.9.2" or free >= wanted or not taken:
        return None
    return (
        f"Free memory on device cuda:0 ({_gib(free)}/{_gib(d.machine.memory)} GiB) on startup is less than "
        "desired GPU "
        f"memory utilization ({share}, {_gib(wanted)} GiB). Decrease GPU memory utilization or reduce GPU "
        "memory used "
        "by other processes."
    )


@rule("no_kv_memory", "engine")
def _no_memory(d: Deployment) -> str | None:
    if d.capacity.kv_memory > 0 and d.capacity.num_blocks > 0:
        return None
    return (
        "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
        f"initializing the engine. {_SEE}"
    )


@rule("kv_lt_one_request", "engine")
def _too_long(d: Deployment) -> str | None:
    capacity = d.capacity
    length, tokens = capacity.max_model_len, capacity.kv_tokens
    if length <= tokens:
        return None
    need = -(-length // capacity.block_size) * capacity.block_size * capacity.kv_bytes
    return (
        f"To serve at least one request with the model's max seq len ({length}), ({_gib(need)} GiB KV cache "
        "is needed, "
        f"which is larger than the available KV cache memory ({_gib(capacity.kv_memory)} GiB). Based on the "
        "available "
        f"memory, the estimated maximum model length is {tokens}. Try increasing `gpu_memory_utilization` "
        "or decreasing "
        f"`max_model_len` when initializing the engine. {_SEE}"
    )
