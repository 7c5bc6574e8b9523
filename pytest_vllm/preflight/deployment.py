"""A profile with everything that rules ask about it: version, hardware, model, effective values, host."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts import Version, canonical, flags, nearest, version_of, versions
from pytest_vllm.preflight.image import Image, image_of
from pytest_vllm.profile.caches import KV_BYTES
from pytest_vllm.profile.derived import Figures
from pytest_vllm.profile.hardware import hardware_names, load_hardware
from pytest_vllm.profile.model import Secret
from pytest_vllm.profile.modelfile import load_model, model_of_repo
from pytest_vllm.profile.recognised import by_name, recognised

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_vllm.preflight.host import Host
    from pytest_vllm.profile.hardware import Hardware
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.profile.modelfile import ModelFile
    from pytest_vllm.profile.reply import Reply

_SCALED = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT]?)")
#: Signs between digits, which Python reads over.
_BETWEEN = re.compile(r"(?<=\d)_(?=\d)")
_SCALE = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SCALE |= {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
#: Flags that figures are computed from, and what they can be.
COUNTED = {
    "tensor-parallel-size": (1, 10**4),
    "pipeline-parallel-size": (1, 10**4),
    "data-parallel-size": (1, 10**5),
    "max-loras": (1, 10**5),
    "max-lora-rank": (1, 10**5),
    "max-num-seqs": (1, 10**7),
    "max-num-batched-tokens": (1, 10**9),
    "block-size": (1, 10**6),
    "gpu-memory-utilization": (1e-3, 100),
    "kv-cache-memory-bytes": (0, 10**15),
}
TRUE = {"1", "true", "yes", "on"}


@dataclass(frozen=True)
class Deployment:
    """What rules look at.

    Args:
        profile: the profile.
        hardware: one device; None when the profile names none and the machine tells none.
        model: the checkpoint; None when no model file is known.
        draft: the draft model's checkpoint, None when none is known.
        host: what is known of the machine; None when nothing was asked.
        model_how: where the model's figures come from, or why there are none.
        reply: what its own vLLM says of the arguments; None when that was not asked.
    """

    profile: Profile
    hardware: Hardware | None = None
    model: ModelFile | None = None
    draft: ModelFile | None = None
    host: Host | None = None
    model_how: str = ""
    reply: Reply | None = None

    @property
    def version(self) -> str:
        """The version of vLLM as the profile tells it; empty when it does not."""
        return self.profile.server.vllm_version

    @property
    def version_known(self) -> bool:
        """Whether the profile tells the version; facts are the newest version's otherwise."""
        return version_of(self.version) is not None

    @property
    def exact(self) -> bool:
        """Whether the version is a release as it was published, no vendor's or nightly build."""
        nightly = self.image is not None and self.image.nightly
        return self.version_known and "+" not in self.version and not nightly

    @property
    def shown_version(self) -> str:
        """The version as messages name it."""
        return f"vLLM {self.version}" if self.version_known else f"vLLM {versions()[-1]} (the newest known)"

    @cached_property
    def release(self) -> Version:
        """The version to compare; the newest known when the profile tells none."""
        return version_of(self.version) or Version(nearest(""))

    def within(self, wanted: str) -> bool:
        """Whether the version is in a range."""
        return self.release.within(wanted)

    def at_least(self, version: str) -> bool:
        """Whether the version is this or newer; a post release counts as its release."""
        return self.release >= Version(version)

    @cached_property
    def figures(self) -> Figures | None:
        """Derived figures; None without hardware or model, or with a number that is none."""
        if self.hardware is None or self.model is None:
            return None
        args = dict(self.profile.server.args)
        for flag in (one for one in COUNTED if self.has(one)):
            value = number(self.given(flag))
            low, high = COUNTED[flag]
            if value is None or not low <= value <= high:
                return None
            args[flag] = int(value) if value.is_integer() else value
        if self.has("max-model-len") and self.max_model_len is not None:
            args["max-model-len"] = self.max_model_len
        if self.speculation:
            args["speculative-config"] = dict(self.speculation)
        server = self.profile.server.model_copy(update={"args": args})
        return Figures(
            self.profile.model_copy(update={"server": server}), self.hardware, self.model, self.draft
        )

    @property
    def image(self) -> Image | None:
        """The image that it runs in; None for what runs without a container."""
        return image_of(self.profile.server.image) if self.in_container else None

    @property
    def in_container(self) -> bool:
        """Whether it runs in a container."""
        return self.profile.server.kind.container

    @cached_property
    def here(self) -> Host | None:
        """The machine that it is to run on; None when nothing is known, or when this machine is another.

        A profile for GPUs that is looked at where there are none, in CI, is about another machine.
        """
        vendor = self.hardware.vendor if self.hardware else self.device
        elsewhere = not self.profile.server.kind.starts_vllm
        return None if elsewhere or self.host is None or not self.host.has(vendor) else self.host

    @property
    def device(self) -> str:
        """What it runs on, where no hardware is named: a process names no GPUs, and yet vLLM wants some."""
        server = self.profile.server
        on_cpu = server.args.get("device") == "cpu" or (self.image is not None and self.image.cpu)
        if self.simulated or on_cpu or any(name.startswith("VLLM_CPU_") for name in server.env):
            return "none"
        return "nvidia" if server.gpus else "any"

    @property
    def simulated(self) -> bool:
        """Whether no vLLM runs at all."""
        return self.profile.server.kind.simulated

    @property
    def capability(self) -> tuple[int, int] | None:
        """The GPU's CUDA compute capability, (12, 1) for GB10; None for others."""
        given = self.hardware.compute_capability if self.hardware else None
        found = re.fullmatch(r"(\d+)\.(\d+)", given or "")
        return (int(found[1]), int(found[2])) if found else None

    @property
    def unified(self) -> bool:
        """Whether a GPU shares its memory with the CPU."""
        return self.hardware is not None and self.hardware.unified and self.hardware.vendor == "nvidia"

    # flags

    @cached_property
    def _given(self) -> dict[str, tuple[str, Any]]:
        found = {}
        for written, value in self.profile.server.args.items():
            name = canonical(written)
            negative = written.startswith("no-") and name == written.removeprefix("no-")
            found[name] = (written, not value if negative and isinstance(value, bool) else value)
        return found

    def given(self, flag: str) -> Any:
        """A flag's value as the profile has it, `no-` and aliases resolved; None when it is not set."""
        return self._given.get(flag, ("", None))[1]

    def has(self, flag: str) -> bool:
        """Whether the profile sets a flag."""
        return flag in self._given

    def on(self, flag: str) -> bool:
        """Whether the profile switches a flag on."""
        return self.given(flag) is True or str(self.given(flag)).lower() == "true"

    def off(self, flag: str) -> bool:
        """Whether the profile switches a flag off."""
        return self.given(flag) is False or str(self.given(flag)).lower() == "false"

    def value(self, flag: str) -> Any:
        """A flag's value: as set, else the version's default."""
        if self.has(flag):
            return self.given(flag)
        known = flags(self.version).get(flag)
        return known.default if known else None

    def number(self, flag: str) -> float | None:
        """The same as a number (`32k` is 32,000); None when it is none."""
        return number(self.value(flag))

    def whole(self, flag: str, default: int = 0) -> int:
        """The same, whole."""
        found = self.number(flag)
        return default if found is None else int(found)

    def key(self, flag: str) -> str:
        """The TOML path of a flag as the profile spells it."""
        return f"server.args.{self._given.get(flag, (flag, None))[0]}"

    # environment

    def env(self, name: str) -> str | None:
        """A variable of the server; "" for a secret, whose value nobody knows; None when it is not set."""
        value = self.profile.server.env.get(name)
        return "" if isinstance(value, Secret) else value

    def env_on(self, name: str) -> bool:
        """Whether a variable is switched on."""
        return (self.env(name) or "").strip().lower() in TRUE

    # what follows

    @property
    def max_model_len(self) -> int | None:
        """Tokens of context: as set, else the model's; None when neither is known or vLLM is to choose."""
        if self.has("max-model-len"):
            found = number(self.given("max-model-len"))
            return int(found) if found is not None and found > 0 else None
        return self.model.context if self.model else None

    @property
    def speculation(self) -> Mapping[str, Any]:
        """`speculative-config` and its short flags as one table; empty without speculation."""
        table = self.given("speculative-config")
        found = dict(table) if isinstance(table, dict) else {}
        short = {"spec-method": "method", "spec-model": "model", "spec-tokens": "num_speculative_tokens"}
        for flag, name in short.items():
            if self.has(flag):
                found.setdefault(name, self.given(flag))
        return {key.replace("-", "_"): value for key, value in found.items()}

    @property
    def devices(self) -> int:
        """GPUs that one replica takes: tensor times pipeline parallel."""
        return self.split * max(1, self.whole("pipeline-parallel-size", 1))

    @property
    def split(self) -> int:
        """GPUs that share each layer: tensor-parallel-size."""
        return max(1, self.whole("tensor-parallel-size", 1))

    @property
    def quantization(self) -> str:
        """The checkpoint's own quantisation as its file has it; empty when it is not known."""
        return self.model.quantization if self.model else ""

    @property
    def local_model(self) -> bool:
        """Whether the model is a path, not a repository's id."""
        return self.profile.server.model.startswith(("/", "./", "~", "../"))

    @property
    def key_required(self) -> bool:
        """Whether the server asks for a key."""
        return bool(
            self.profile.server.api_key or self.has("api-key") or self.env("VLLM_API_KEY") is not None
        )

    @property
    def offline(self) -> bool:
        """Whether it is told not to download."""
        return self.env_on("HF_HUB_OFFLINE") or self.env_on("TRANSFORMERS_OFFLINE")

    @property
    def open_port(self) -> str:
        """Where other machines reach the port, with the TOML path in front; empty when they do not."""
        part = self.profile.deployment
        if part.kind == "kubernetes" and part.network != "host":
            return ""  # a pod's ports are the cluster's; the profile does not say what leads in from outside
        host = str(self.given("host") or "")
        if part.network == "host" and self.in_container:  # published ports are then discarded
            return "" if host.startswith(("127.", "localhost", "::1")) else "deployment.network host"
        own = str(part.listens or self.whole("port", 8000))
        for port in part.ports:
            if part.network_shared and port.rpartition(":")[2].partition("/")[0] != own:
                continue  # it leads to the neighbour that has the same network
            if not port.startswith(("127.", "[::1]", "localhost:")) and self.in_container:
                return f"deployment.ports {port}"
        if not self.in_container and host in ("0.0.0.0", "::"):  # noqa: S104 - what the rule looks for
            return f"server.args.host {host}"
        return ""

    @property
    def first_gpu(self) -> int:
        """The number of the first GPU that it takes, as the host counts."""
        given = self.profile.server.gpus
        named = given[0] if isinstance(given, list) and given else ""
        if not self.in_container:
            named = (self.env("CUDA_VISIBLE_DEVICES") or named).partition(",")[0]
        tail = named.rpartition("=")[2].strip()
        return int(tail) if tail.isdigit() else 0

    @property
    def sized(self) -> Figures | None:
        """Figures where they tell what memory is needed; None where something changes weights or cache.

        Quantising while loading, offloading, parallel prefill, narrower states, caches of unknown types.
        """
        dtype = str(self.given("kv-cache-dtype") or "auto")
        changed = (
            self.has("quantization") and self.quantization == "none",
            any(self.number(flag) for flag in ("cpu-offload-gb", "offload-group-size") if self.has(flag)),
            self.whole("prefill-context-parallel-size", 1) > 1,
            self.given("mamba-ssm-cache-dtype") in ("float16", "bfloat16"),
            self.has("hf-overrides"),
            dtype not in KV_BYTES,
        )
        return None if any(changed) else self.figures

    def volumes(self) -> Iterator[tuple[int, str, str, str]]:
        """Index, host path, container path, mode of each volume."""
        for index, text in enumerate(self.profile.server.volumes):
            outside, _, rest = text.partition(":")
            if text.startswith("${"):
                outside, _, rest = text.partition("}:")
            inside, _, mode = rest.partition(":")
            yield index, outside, inside, mode

    def mounted(self, path: str) -> tuple[int, str, str, str] | None:
        """The volume that a path of the container lies in."""
        within = [
            one for one in self.volumes() if path == one[2] or path.startswith(one[2].rstrip("/") + "/")
        ]
        return max(within, key=lambda one: len(one[2]), default=None)

    def mounted_there(self, path: str) -> str:
        """The folder of production's own mounts that a path lies in; empty for none."""
        mounts = self.profile.deployment.mounts
        return next((one for one in mounts if f"{path}/".startswith(one.rstrip("/") + "/")), "")


def number(value: Any) -> float | None:
    """A number, also one with a suffix: `32k` is 32,000 and `32K` 32,768."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    found = _SCALED.fullmatch(_BETWEEN.sub("", value.strip())) if isinstance(value, str) else None
    return float(found[1]) * _SCALE[found[2]] if found else None


def deployment_of(
    profile: Profile, rootdir: Path, host: Host | None = None, reply: Reply | None = None
) -> Deployment:
    """A profile with the files that it names. Raises ProfileError when one cannot be read."""
    found = Deployment(profile)
    hardware = load_hardware(profile.hardware, rootdir) if profile.hardware else hardware_of(host, rootdir)
    known = recognised(profile, rootdir)
    named = str(found.speculation.get("model") or "")
    own = named == profile.server.model or "mtp" in str(found.speculation.get("method"))
    draft = None if own else draft_of(named, rootdir)
    return Deployment(profile, hardware, known.model, draft, host, known.how, reply)


def draft_of(repo: str, rootdir: Path) -> ModelFile | None:
    """The model that drafts, by its repository or its name; None when it is not known."""
    name = model_of_repo(repo, rootdir)
    return load_model(name, rootdir) if name else by_name(repo)


def hardware_of(host: Host | None, rootdir: Path) -> Hardware | None:
    """The hardware file that fits the machine's first GPU: its compute capability, its memory within 6 %."""
    gpu = host.gpus[0] if host is not None and host.gpus else None
    if gpu is None or gpu.capability is None:
        return None
    wanted = ".".join(map(str, gpu.capability))
    for name in hardware_names(rootdir):
        known = load_hardware(name, rootdir)
        near = abs(known.memory_bytes - gpu.total) < 0.06 * known.memory_bytes if gpu.total else known.unified
        if known.compute_capability == wanted and near:
            return known
    return None
