"""The deployment that is simulated, as the rest of the simulator reads it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.boot.kind import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.sim.arguments import Arguments
    from pytest_vllm.sim.boot.capacity import Capacity
    from pytest_vllm.sim.versions import Version
    from pytest_vllm.sim.vision import Vision


@dataclass
class Settings:
    """What the server is: model, limits, switches. Sizes in tokens, times in virtual seconds.

    `sampling_defaults` come from the generation config; `api_keys` guard /v1 when there are any.
    """

    version: Version
    model: str
    names: list[str]
    args: Arguments
    capacity: Capacity
    seed: int = 0
    environ: Mapping[str, str] = field(default_factory=dict)
    api_keys: list[str] = field(default_factory=list)
    sampling_defaults: dict[str, Any] = field(default_factory=dict)
    reasoning_parser: str = ""
    tool_parser: str = ""
    auto_tools: bool = False
    family: str = ""
    kind: Kind = field(default_factory=Kind)
    thinking: str = ""
    dev_mode: bool = False
    max_logprobs: int = 20
    lora: bool = False
    vision: Vision | None = None

    @property
    def name(self) -> str:
        """The first served name, which answers and metrics carry."""
        return self.names[0]

    @property
    def pooling(self) -> bool:
        """Whether it pools instead of generating."""
        return bool(self.kind.pools)

    @property
    def max_model_len(self) -> int:
        """Context length."""
        return self.capacity.max_model_len

    @property
    def fingerprint(self) -> str | None:
        """`system_fingerprint`: null before 0.21, then version, parallelism, a hash of the arguments."""
        mode = self.args.get("fingerprint_mode", "full" if self.version >= "0.21.0" else "none")
        if mode == "none":
            return None
        if mode == "custom":
            value: str | None = self.args.get("fingerprint_value")
            return value
        digest = hashlib.sha256(repr(sorted(self.args.given.items(), key=str)).encode()).hexdigest()[:8]
        parts = [f"vllm-{self.version}"]
        for short, name in (("tp", "tensor"), ("pp", "pipeline"), ("dp", "data")):
            degree = self.args.get(f"{name}_parallel_size", 1)
            if mode == "full" and degree > 1:
                parts.append(f"{short}{degree}")
        return "-".join([*parts, digest])
