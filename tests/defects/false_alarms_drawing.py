"""Healthy servers at random: which version, model and flags; one row for each dimension, all of it data.

An option is drawn only where it exists: what a version's facts do not list is never given to it.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm import facts
from pytest_vllm.sim.arguments import known_flags
from pytest_vllm.sim.habits import HABITS, VARIABLE
from pytest_vllm.sim.parsers.formats import FORMATS
from pytest_vllm.sim.versions import Version, parsers
from pytest_vllm.wire.server import ASSUMED
from tests.defects.middlemen import MIDDLEMEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OLDEST = "0.10.0"
#: Conversations with this model are rendered by other means than the chat template.
GPT_OSS = {"enable-auto-tool-choice": True, "tool-call-parser": "openai", "reasoning-parser": "openai_gptoss"}
GENERATES, CHATS, THINKS, POOLS = "generates", "chats", "thinks", "pools"
#: How often a dimension is left as it is: a draw is to be everyday in most and odd in some.
USUAL = 0.5
TEMPLATE = Path(__file__).with_name("own_template.jinja")


@dataclass(frozen=True)
class Option:
    """One setting of a dimension.

    Args:
        args: serve arguments beside those of the profile `sim`; None takes one of them away.
        env: variables of the server.
        model: the model file that it takes; empty for any.
        keyed: whether requests need a key.
        only: what the model has to do for it: generate, chat, think, pool; empty for any.
        between: what stands in front of it once it runs; empty for nothing.
    """

    args: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    keyed: bool = False
    only: str = ""
    between: str = ""


def _each(name: str, *values: Any, only: str = "") -> list[Option]:
    return [Option({name: value}, only=only) for value in values]


#: What writes down speech is made for so many tokens, and never takes more.
HEARS, HEARD = "sim-transcribe", 448
#: Model file -> what it does.
MODELS = {
    "sim-model": {GENERATES, CHATS, THINKS},
    "sim-base": {GENERATES},
    "sim-listen": {GENERATES, CHATS},
    HEARS: set(),
    **{name: {POOLS} for name in ("sim-embed", "sim-rerank", "sim-classify", "sim-late", "sim-reward")},
}
#: The simulated models are made for 32768 tokens.
LONG = {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}
LORA = {"enable-lora": True, "lora-modules": ["pirate=adapters/pirate", "parrot=adapters/parrot"]}
RUNTIME_LORA = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
NO_TOOLS = {"enable-auto-tool-choice": None, "tool-call-parser": None}
NGRAM = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}
SAMPLING = {"temperature": 0.6, "top_p": 0.95, "top_k": 20}

#: Every dimension and its settings beside the usual one, which gives nothing.
DIMENSIONS: dict[str, list[Option]] = {
    "model": [Option(model=name) for name in MODELS if name != "sim-model"],
    "context": [
        *_each("max-model-len", 128, 256, 512, 1024, 2048, 8192, 16384, 32768),
        *(Option({"max-model-len": size}, LONG) for size in (65536, 131072)),
    ],
    "sequences": _each("max-num-seqs", 1, 2, 3, 8, 16, 256, 1024),
    "tool parser": [
        Option({"enable-auto-tool-choice": True, "tool-call-parser": name}, only=CHATS)
        for name in ("hermes", "qwen3_coder", "llama3_json", "mistral", "deepseek_v31")
        if any(name.startswith(known) for known in FORMATS)
    ]
    + [Option({**GPT_OSS, "served-model-name": "openai/gpt-oss-20b"}, only=THINKS)]
    + [Option(NO_TOOLS), Option({"enable-auto-tool-choice": None})],
    "reasoning parser": [
        Option({"reasoning-parser": None}, only=CHATS),
        Option({"reasoning-parser": "deepseek_r1"}, only=THINKS),  # takes all for thoughts of a model without
    ],
    "prefix cache": [
        Option({"enable-prefix-caching": False}),
        Option({"enable-prefix-caching": False, "enable-prompt-tokens-details": None}),
        Option({"enable-prompt-tokens-details": None}),
    ],
    "tokens": [
        Option({"return-tokens-as-token-ids": True}, only=GENERATES),
        *_each("max-logprobs", 0, 1, 5, -1, only=GENERATES),
        *_each("stream-interval", 4, 20, 100, only=GENERATES),
        Option({"enable-force-include-usage": True}, only=GENERATES),
    ],
    "root path": _each("root-path", "/llm", "/house/models/v1"),
    "names": _each("served-model-name", ["one", "two"], ["team/model-x", "x", "y"], "modèle du matin (Q4)"),
    "key": [Option(keyed=True)],
    "voice": _each("response-role", "helper", only=CHATS),
    "identity": [
        Option({"fingerprint-mode": "none"}),
        Option({"fingerprint-mode": "custom", "fingerprint-value": "house-1"}),
    ],
    "adapters": [
        Option(LORA, only=GENERATES),
        Option({"enable-lora": True, "lora-modules": ["router=a/lora", "summary=b/lora"]}, only=GENERATES),
        Option(LORA, {RUNTIME_LORA: "1"}, only=GENERATES),
    ],
    "blocks": _each("block-size", 8, 32, 64, 128),
    "log": [
        Option({"disable-log-stats": True}),
        Option({"enable-log-requests": True}),
        Option({"enable-request-id-headers": True}),
    ],
    "drafts": [Option({"speculative-config": NGRAM}, only=GENERATES)],
    "sampling": [
        Option({"generation-config": "vllm"}, only=GENERATES),
        Option({"override-generation-config": SAMPLING}, only=GENERATES),
        Option(
            {"override-generation-config": {"temperature": 1.0, "repetition_penalty": 1.1}}, only=GENERATES
        ),
        *_each(
            "override-generation-config",
            {"temperature": 0.0},
            {"max_new_tokens": 64},
            {"min_p": 0.05, "presence_penalty": 0.5, "frequency_penalty": 0.2},
            {"top_k": 1},
            only=GENERATES,
        ),
    ],
    "template": [
        Option({"chat-template": str(TEMPLATE)}, only=CHATS),
        Option({"chat-template-content-format": "openai"}, only=CHATS),
        Option({"default-chat-template-kwargs": {"enable_thinking": False}}, only=CHATS),
    ],
    "engines": _each("data-parallel-size", 2, 4),
    "batch": _each("max-num-batched-tokens", 64, 512, 16384, only=GENERATES),
    "eager": _each("enforce-eager", True),
    "scheduling": _each("scheduling-policy", "priority"),
    "sheds": _each("max-num-queued-reqs", 6, 40, only=GENERATES),
    # what opens a server to anybody is no setting of a healthy one: templates of requests, development routes
    "house": [
        Option({"disable-fastapi-docs": True}),
        Option({"enable-server-load-tracking": True}),
        Option({"exclude-tools-when-tool-choice-none": True}, only=CHATS),
        Option({"allow-credentials": True}),
        Option({"kv-cache-dtype": "fp8"}, only=GENERATES),
        Option({}, {"VLLM_ENABLE_RESPONSES_API_STORE": "1"}, only=CHATS),
        Option({}, {"VLLM_DEBUG_LOG_API_SERVER_RESPONSE": "1"}),
    ],
    "scores": _each("logprobs-mode", "raw_logits", "processed_logprobs", only=GENERATES),
    "cache": _each("num-gpu-blocks-override", 600, 2100, 4000, only=GENERATES),
    "engine": [
        *_each("async-scheduling", True, False),
        *_each("enable-sleep-mode", True),
        *_each("dtype", "float32"),
        *_each("gpu-memory-utilization", 0.5),
        *_each("disable-cascade-attn", True),
        Option({"kv-events-config": {"enable_kv_cache_events": True, "publisher": "null"}}, only=GENERATES),
        *_each("structured-outputs-config", {"backend": "xgrammar"}, {"backend": "guidance"}, only=GENERATES),
    ],
    "told": [
        *_each("enable-mfu-metrics", True),
        *_each("enable-per-request-metrics", True),
        *_each("kv-cache-metrics", True),
        *_each("disable-uvicorn-access-log", True),
        *_each("enable-tokenizer-info-endpoint", True),
        Option({"enable-log-requests": True, "enable-log-outputs": True}),
    ],
    "takes": [
        Option({"allowed-origins": ["https://house.example"]}),
        *_each("enable-prompt-embeds", True, only=GENERATES),
        Option({"limit-mm-per-prompt": {"image": 0}}, only=GENERATES),
        *_each("api-server-count", 2),
        Option({**LORA, "max-loras": 1}, only=GENERATES),
        Option(
            {"override-generation-config": {"temperature": 0.7, "top_k": 20, "repetition_penalty": 1.05}},
            only=GENERATES,
        ),
    ],
    # one that always thinks does not in completions of a rendered prompt: simulated, the two differ
    "habits": [Option({}, {VARIABLE: name}, only=CHATS) for name in HABITS if name != "thinks"],
    "between": [Option(between=name) for name in MIDDLEMEN],
}
#: Tokens of a block of the simulator unless it is told otherwise, and of its context.
BLOCK, CONTEXT = 16, 4096


@dataclass(frozen=True)
class Draw:
    """A healthy server.

    Args:
        seed: what it was drawn by, and the server's own seed.
        version: what it is.
        model: its model file.
        args: its serve arguments.
        env: its variables.
        keyed: whether requests need a key.
        between: what stands in front of it the second time; empty for nothing.
    """

    seed: int
    version: str
    model: str = "sim-model"
    args: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    keyed: bool = False
    between: str = ""

    def __str__(self) -> str:
        """One line that says all of it."""
        words = [
            f"{name}={json.dumps(value) if isinstance(value, dict) else value}"
            for name, value in self.args.items()
        ]
        words += [f"{name}={value}" for name, value in self.env.items()]
        words += ["key"] * self.keyed + [f"behind {self.between}"] * bool(self.between)
        return f"seed {self.seed}: {self.version} {self.model} {' '.join(words)}"


def versions() -> list[str]:
    """Every version of the facts from the oldest on."""
    known = list(facts.versions())
    return known[known.index(OLDEST) :]


def draw(seed: int, version: str = "") -> Draw:
    """The server of a seed: as that version, or as one drawn."""
    chance = random.Random(seed)  # noqa: S311 - a sample, no secret
    version = version or chance.choice(versions())
    model, keyed, between = "sim-model", False, ""
    args: dict[str, Any] = {}
    env: dict[str, str] = {}
    for options in DIMENSIONS.values():
        usual, picked = chance.random() < USUAL, chance.random()
        fitting = [one for one in options if fits(one, version, MODELS[model])]
        if usual or not fitting:
            continue
        option = fitting[int(picked * len(fitting))]
        model, keyed = option.model or model, option.keyed or keyed
        between = option.between or between
        args |= option.args
        env |= option.env
    if RUNTIME_LORA in env and between.startswith("balances"):
        between = (
            ""  # an adapter that one of two servers has loaded is one that the other refuses: a true fault
        )
    return Draw(seed, version, model, _consistent(args, model), env, keyed, between)


def fits(option: Option, version: str, does: set[str]) -> bool:
    """Whether that version takes an option, on a model that does this.

    A version that nobody can know has to be one that is held to everything.
    """
    release = Version(version)
    given = {f"--{name}" for name in option.args}
    tool, reasoning = option.args.get("tool-call-parser"), option.args.get("reasoning-parser")
    known = all(
        name is None or (name in parsers(kind) and release.within(parsers(kind)[name]))
        for kind, name in (("tool", tool), ("reasoning", reasoning))
    )
    told = release >= ASSUMED or option.between not in ("hides-version", "shows-v1")
    return known and told and given <= _flags(version) and (not option.only or option.only in does)


@cache
def _flags(version: str) -> frozenset[str]:
    return frozenset(known_flags(Version(version)))


def _consistent(args: Mapping[str, Any], model: str = "") -> dict[str, Any]:
    """Without what vLLM refuses to start with, or serves wrongly by itself."""
    made = dict(args)
    if model == HEARS:
        made["max-model-len"] = min(made.get("max-model-len", HEARD), HEARD)
    if made.get("reasoning-parser") == "deepseek_r1":  # takes an answer for thoughts where thinking is off
        made.pop("default-chat-template-kwargs", None)
    if "tool-call-parser" in made and made["tool-call-parser"] is None:
        made["enable-auto-tool-choice"] = None
    if "speculative-config" in made and "min_p" in (made.get("override-generation-config") or {}):
        del made["override-generation-config"]  # every request would be refused: no drafts with min_p
    if made.get("max-num-batched-tokens", 16384) < made.get("max-num-seqs", 128):
        made.pop("max-num-batched-tokens")
    blocks = made.get("num-gpu-blocks-override")
    if blocks and blocks * made.get("block-size", BLOCK) < 2 * made.get("max-model-len", CONTEXT):
        del made["num-gpu-blocks-override"]  # one request of full length does not fit, or hardly
    return made


def each_alone(version: str, *names: str) -> Iterator[Draw]:
    """Every option of these dimensions, or of all, by itself: what accuses is named by its only flag."""
    for name in names or DIMENSIONS:
        for option in DIMENSIONS[name]:
            model = option.model or "sim-model"
            if fits(option, version, MODELS[model]):
                yield Draw(
                    0,
                    version,
                    model,
                    _consistent(option.args, model),
                    option.env,
                    option.keyed,
                    option.between,
                )
