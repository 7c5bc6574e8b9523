"""Tensor, pipeline, expert and data parallelism against the model and the GPUs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.preflight.rule import ERROR, NOTE, WARNING, Finding, drop, put, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment

_TP = "tensor-parallel-size"
#: A device as CUDA takes it: a number, or the beginning of a GPU's or a share's name.
_DEVICE = re.compile(r"\d+|(?:GPU|MIG)-[\w/-]+")


@rule("parallel.heads", ERROR, source="ModelConfig.verify_with_parallel_config")
def heads(of: Deployment) -> Iterator[Finding]:
    """Attention heads that cannot be split evenly."""
    parts = of.split
    if of.model and parts > 1 and of.model.heads % parts:
        fits = max(size for size in (1, 2, 4, 8) if size <= parts and of.model.heads % size == 0)
        yield Finding(
            of.key(_TP),
            f"{of.model.heads} attention heads over {parts} GPUs",
            "vLLM refuses: heads must divide by tensor-parallel-size",
            put(of.key(_TP), fits),
        )


@rule("parallel.kv-heads", NOTE, source="vLLM's linear layers: KV heads are replicated")
def kv_heads(of: Deployment) -> Iterator[Finding]:
    """More GPUs than KV heads: the cache is held several times."""
    parts = of.split
    if of.model and parts > of.model.kv_heads:
        yield Finding(
            of.key(_TP),
            f"{of.model.kv_heads} KV heads over {parts} GPUs",
            f"each is held {parts // of.model.kv_heads} times; the cache grows less than the GPUs",
        )


def _given(of: Deployment) -> int | None:
    """How many GPUs the server is given; None where it gets all, or nobody says."""
    given = of.profile.server.gpus
    if isinstance(given, list):
        return None if any("all" in one for one in given) else len(given)
    return given if isinstance(given, int) else None


@rule("parallel.gpus", ERROR, versions=">=0.6", source="the mp executor's world size")
def gpus(of: Deployment) -> Iterator[Finding]:
    """More GPUs are needed than the server is given."""
    count = _given(of)
    if count is None and of.here is not None and of.here.gpus and of.profile.server.gpus == "all":
        count = len(of.here.gpus)
    several = of.given("distributed-executor-backend") == "ray" or of.whole("nnodes", 1) > 1
    machines = of.profile.deployment.machines
    if count is not None and count < of.devices and machines > 1 and not several:
        yield Finding(
            of.key(_TP) if of.has(_TP) else of.key("pipeline-parallel-size"),
            f"one replica takes {of.devices} GPUs over {machines} machines",
            f"the gate starts one machine's part, of {count} GPUs, and not the whole",
            advice="url = the deployment that runs: it is tested without being started",
        )
    elif count is not None and of.devices > count and not several:
        yield Finding(
            of.key(_TP) if of.has(_TP) else of.key("pipeline-parallel-size"),
            f"one replica takes {of.devices} GPUs (tensor * pipeline), the server has {count}",
            "vLLM refuses: the world is larger than the number of GPUs",
        )


@rule(
    "parallel.replicas", ERROR, versions=">=0.9", source="vllm/v1/engine/utils.py: devices of local replicas"
)
def replicas(of: Deployment) -> Iterator[Finding]:
    """Replicas of data parallelism need more GPUs than the server is given."""
    count, kept = _given(of), of.given("data-parallel-size-local")
    elsewhere = ("data-parallel-rank", "data-parallel-external-lb", "data-parallel-hybrid-lb", "headless")
    ray = "ray" in (of.given("distributed-executor-backend"), of.given("data-parallel-backend"))
    spread = ray or of.whole("nnodes", 1) > 1 or of.profile.deployment.machines > 1
    local = kept if isinstance(kept, int) else of.whole("data-parallel-size", 1)
    if count is None or local < 2 or spread or any(map(of.has, elsewhere)) or of.devices > count:
        return
    if local * of.devices > count:
        open_ = not isinstance(kept, int) and _may_spread(of)
        yield Finding(
            of.key("data-parallel-size"),
            f"{local} replicas of {of.devices} GPUs take {local * of.devices}, the server has {count}",
            "vLLM refuses, unless what starts it puts replicas on other machines"
            if open_
            else "vLLM refuses: a replica has no GPU of its own",
            severity=WARNING if open_ else ERROR,
        )


def _may_spread(of: Deployment) -> bool:
    """Whether something that the profile does not show may start replicas elsewhere."""
    flags = ("data-parallel-address", "data-parallel-rpc-port", "data-parallel-start-rank", "config")
    told = any(map(of.has, flags)) or any(
        name.startswith(("VLLM_DP_", "RAY_")) for name in of.profile.server.env
    )
    return told or of.profile.deployment.kind == "kubernetes"  # an operator adds ranks of its own


@rule("parallel.gb10-alone", WARNING, source="DGX Spark has one GPU")
def gb10_alone(of: Deployment) -> Iterator[Finding]:
    """A machine with one GPU is asked for several."""
    several = of.given("distributed-executor-backend") == "ray" or of.whole("nnodes", 1) > 1
    several = several or of.profile.deployment.machines > 1
    if of.unified and of.devices > 1 and not several and not isinstance(of.profile.server.gpus, int):
        yield Finding(
            of.key(_TP),
            f"{of.devices} GPUs, {of.hardware.title if of.hardware else ''} has one",
            "several machines need nnodes or the ray executor",
        )


@rule("parallel.experts-dense", ERROR, versions=">=0.8", source="vllm/config/model.py")
def experts_dense(of: Deployment) -> Iterator[Finding]:
    """Expert parallelism on a model without experts."""
    if of.on("enable-expert-parallel") and of.model and not of.model.experts:
        key = of.key("enable-expert-parallel")
        yield Finding(
            key, f"enable-expert-parallel, {of.model.title} has no experts", "vLLM refuses it", drop(key)
        )


@rule("parallel.balance-alone", ERROR, versions=">=0.10", source="ParallelConfig.__post_init__")
def balance_alone(of: Deployment) -> Iterator[Finding]:
    """Experts are to be balanced over one GPU."""
    if of.on("enable-eplb") and of.split * of.whole("data-parallel-size", 1) < 2:
        key = of.key("enable-eplb")
        yield Finding(key, "enable-eplb with one GPU", "vLLM refuses: there is nothing to balance", drop(key))


@rule("parallel.local-replicas", ERROR, versions=">=0.9", source="ParallelConfig.__post_init__")
def local_replicas(of: Deployment) -> Iterator[Finding]:
    """More replicas here than there are in all."""
    local, total = of.whole("data-parallel-size-local"), of.whole("data-parallel-size", 1)
    if local > total:
        yield Finding(
            of.key("data-parallel-size-local"),
            f"data-parallel-size-local is {local}, data-parallel-size {total}",
            "vLLM refuses",
            put(of.key("data-parallel-size"), local),
        )


@rule("parallel.rank", ERROR, versions=">=0.9.2", source="ParallelConfig.__post_init__")
def rank(of: Deployment) -> Iterator[Finding]:
    """A rank outside of the replicas."""
    total = of.whole("data-parallel-size", 1)
    if of.has("data-parallel-rank") and not 0 <= of.whole("data-parallel-rank") < total:
        yield Finding(
            of.key("data-parallel-rank"),
            f"data-parallel-rank is {of.whole('data-parallel-rank')}",
            f"ranks go from 0 to {total - 1}",
        )


@rule("parallel.balancers", ERROR, versions=">=0.10", source="ParallelConfig.__post_init__")
def balancers(of: Deployment) -> Iterator[Finding]:
    """Load balancing of replicas that contradicts itself."""
    modes = [
        flag
        for flag in (
            "data-parallel-external-lb",
            "data-parallel-hybrid-lb",
            "data-parallel-multi-port-external-lb",
        )
        if of.on(flag)
    ]
    if len(modes) > 1:
        yield Finding(of.key(modes[1]), f"{' and '.join(modes)}", "one mode only", drop(of.key(modes[1])))
    if "data-parallel-external-lb" in modes and of.whole("data-parallel-size", 1) == 1:
        key = of.key("data-parallel-external-lb")
        yield Finding(key, "data-parallel-external-lb with one replica", "vLLM refuses", drop(key))
    if "data-parallel-hybrid-lb" in modes and not of.has("data-parallel-size-local"):
        key = of.key("data-parallel-hybrid-lb")
        yield Finding(key, "data-parallel-hybrid-lb without data-parallel-size-local", "vLLM refuses")


@rule("parallel.visible", WARNING, source="NVIDIA container toolkit: devices are numbered anew inside")
def visible(of: Deployment) -> Iterator[Finding]:
    """CUDA_VISIBLE_DEVICES names devices by the host's numbers inside a container that has only some."""
    given, visible_ = of.profile.server.gpus, of.env("CUDA_VISIBLE_DEVICES")
    if not of.in_container or not isinstance(given, list) or not visible_:
        return
    count = len(given)
    named = [one for one in visible_.split(",") if one.strip().isdigit()]
    if not any("all" in one for one in given) and any(int(one) >= count for one in named):
        key = "server.env.CUDA_VISIBLE_DEVICES"
        yield Finding(
            key,
            f"CUDA_VISIBLE_DEVICES is {visible_}, the container has {count} GPU{'s' * (count > 1)}",
            f"inside they are numbered 0 to {count - 1}: no GPU is found",
            drop(key),
        )


@rule("parallel.visible-few", ERROR, source="CUDA programming guide: CUDA_VISIBLE_DEVICES; the mp executor")
def visible_few(of: Deployment) -> Iterator[Finding]:
    """CUDA_VISIBLE_DEVICES shows fewer GPUs than one replica takes, or none."""
    written = of.env("CUDA_VISIBLE_DEVICES")
    several = of.given("distributed-executor-backend") == "ray" or of.whole("nnodes", 1) > 1
    if not written or written == "-1" or several or of.profile.deployment.machines > 1:
        return
    names = [one.strip() for one in written.split(",")]
    bad = next((one for one in names if not _DEVICE.fullmatch(one)), None)
    key = "server.env.CUDA_VISIBLE_DEVICES"
    if bad is not None:
        seen = f"CUDA reads up to {bad!r}, which is no device: {names.index(bad) or 'no'} GPUs are seen"
        yield Finding(key, f"CUDA_VISIBLE_DEVICES is {written!r}", seen, drop(key))
    elif len(names) < of.devices:
        yield Finding(
            key,
            f"CUDA_VISIBLE_DEVICES shows {len(names)} of the {of.devices} GPUs that one replica takes",
            "vLLM refuses: the world is larger than the number of GPUs",
        )
