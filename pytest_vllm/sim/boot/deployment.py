"""A deployment as start-up sees it: arguments, version, machine, model, memory."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.boot.capacity import Capacity, Pace, capacity_of
from pytest_vllm.sim.boot.device import Device
from pytest_vllm.sim.boot.kind import Kind, kind_of
from pytest_vllm.sim.boot.machine import Hardware, Model, hardware, model
from pytest_vllm.sim.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.sim.arguments import Arguments
    from pytest_vllm.sim.options import Options
    from pytest_vllm.sim.versions import Version
    from pytest_vllm.sim.vision import Vision

#: Seconds that decoding so many sequences by one token is shown in unless a speed is asked for; virtual time
#: stays true. And seconds, at least, for each token of a full batch, as far as a rehearsal fills one: what a
#: token takes to serve and to read.
REHEARSAL_STEP, REHEARSAL_BATCH = 0.0012, 16
REHEARSAL_TOKEN, REHEARSAL_FULL = 0.00003, 128
#: How much faster than life it is, at most: a second of a busy machine is so many of the server's.
REHEARSAL_SPEED = 60.0
_FAMILIES = (
    (r"qwen3-coder|qwen3\.5|qwen35|qwen3_5", "qwen3_coder"),
    (r"qwen|hermes|qwq", "hermes"),
    (r"llama-?3", "llama3_json"),
    (r"mistral|ministral|devstral", "mistral"),
    (r"deepseek", "deepseek_v31"),
)
_OWN_VARIABLES = re.compile(r"VLLM_SIM_")


#: Memory of a machine that nobody named, as a multiple of the model's weights.
ROOM = 4


@dataclass
class Deployment:
    """Everything that start-up rules and log lines look at."""

    args: Arguments
    version: Version
    options: Options
    environ: Mapping[str, str]
    machine: Hardware
    shape: Model
    capacity: Capacity
    device: Device = field(default_factory=lambda: Device(None))

    @classmethod
    def of(
        cls,
        args: Arguments,
        version: Version,
        options: Options,
        environ: Mapping[str, str],
        device: Device | None = None,
    ) -> Deployment:
        """Look machine and model up and work out the memory."""
        machine, shape = hardware(options.hardware), model(options.model or str(args.get("model", "")))
        if not options.hardware:  # nobody said what it runs on, so nothing says that it does not fit
            machine = replace(machine, memory=max(machine.memory, ROOM * shape.weights))
        capacity = capacity_of(args, version, machine, shape, environ)
        if options.step > 0:
            capacity.pace = Pace(shared=options.step, per_token=0.0, overhead=0.0)
        return cls(args, version, options, environ, machine, shape, capacity, device or Device(None))

    @property
    def footprint(self) -> float:
        """Bytes of accelerator memory that the server holds while it runs."""
        made = self.capacity
        return (
            0.0
            if self.machine.is_cpu
            else self.shape.weights + made.kv_memory + made.activation + made.graphs
        )

    @property
    def model(self) -> str:
        """The model as given."""
        return str(self.args.get("model", "Qwen/Qwen3-0.6B"))

    @property
    def model_flag(self) -> bool:
        """Whether the model came by `--model` to `vllm serve`."""
        return bool(self.args.given.get("_model_flag"))

    @property
    def speed(self) -> float:
        """How much faster than the wall virtual time runs."""
        if self.options.speed != "auto":
            return float(self.options.speed)
        pace, full = self.capacity.pace, min(self.capacity.max_num_seqs, REHEARSAL_FULL)
        usual = pace.step(min(REHEARSAL_BATCH, full), 0, 0) / REHEARSAL_STEP
        most = pace.step(full, 0, 0) / (full * REHEARSAL_TOKEN)
        return max(1.0, round(min(usual, most, REHEARSAL_SPEED), 1))

    @property
    def unknown_environment(self) -> list[str]:
        """VLLM_* variables that nobody reads, as far as is known: those that went with a version."""
        gone = {
            "VLLM_ATTENTION_BACKEND": "0.15.0",
            "VLLM_USE_V1": "0.11.1",
            "VLLM_FLASH_ATTN_VERSION": "0.15.0",
        }
        return [name for name, version in gone.items() if name in self.environ and self.version >= version]

    @property
    def kind(self) -> Kind:
        """What the server is for."""
        return kind_of(self.args, self.shape)

    def exists(self, path: str) -> bool:
        """Whether a file is there."""
        return Path(path).exists() or path.startswith("template_")

    def settings(self) -> Settings:
        """What the serving part needs."""
        args, name = self.args, self.model
        names = args.get("served_model_name") or [name]
        keys: Any = args.get("api_key") or self.environ.get("VLLM_API_KEY") or []
        return Settings(
            version=self.version,
            model=name,
            names=[names] if isinstance(names, str) else list(names),
            args=args,
            capacity=self.capacity,
            seed=self.options.seed,
            environ=self.environ,
            api_keys=[keys] if isinstance(keys, str) else list(keys),
            sampling_defaults=_sampling(args, self.shape),
            reasoning_parser=str(args.get("reasoning_parser", "")),
            tool_parser=str(args.get("tool_call_parser", "")),
            auto_tools=bool(args.get("enable_auto_tool_choice")),
            family=self._family(),
            kind=self.kind,
            thinking=self.shape.thinking if self.shape.name != "sim-model" or "sim-model" in name else "",
            dev_mode=self.environ.get("VLLM_SERVER_DEV_MODE") == "1",
            max_logprobs=args.get("max_logprobs", 20),
            lora=bool(args.get("enable_lora")),
            vision=self._vision(),
        )

    def _vision(self) -> Vision | None:
        seen, told = self.shape.vision, self.args.get("limit_mm_per_prompt")
        limits = json.loads(told) if isinstance(told, str) and told.startswith("{") else told
        allowed = limits.get("image") if isinstance(limits, dict) else None
        allowed = 0 if self.args.get("language_model_only") else allowed
        return replace(seen, limit=allowed) if seen and isinstance(allowed, int) else seen

    def _family(self) -> str:
        lower = self.model.lower()
        return next((family for pattern, family in _FAMILIES if re.search(pattern, lower)), "")


def _sampling(args: Arguments, shape: Model) -> dict[str, Any]:
    """Defaults of requests: the checkpoint's, unless `--generation-config vllm`, and what overrides them."""
    source = args.get("generation_config", "auto")
    own = _from_folder(source) if source not in ("auto", "vllm") else dict(shape.sampling)
    given = args.get("override_generation_config") or {}
    return {**({} if source == "vllm" else own), **(given if isinstance(given, dict) else {})}


def _from_folder(path: str) -> dict[str, Any]:
    try:
        found = json.loads((Path(path) / "generation_config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return dict(found) if isinstance(found, dict) else {}
