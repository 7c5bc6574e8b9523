"""Who else is on the machine, and what is left: rules that need facts of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.facts.version import Version
from pytest_vllm.preflight.rule import ERROR, WARNING, Finding, put, rule
from pytest_vllm.preflight.rules.memory import gib, on_gpu, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment

_SHARE = "gpu-memory-utilization"
_DRIVERS = (((13, 0), 580), ((12, 8), 570), ((12, 4), 550))


def _names(of: Deployment) -> str:
    return ", ".join(str(one) for one in of.here.tenants) if of.here else ""


@rule("tenants.free-memory", ERROR, versions=">=0.9.2", source="v1/worker/gpu_worker.py request_memory; host")
def free_memory(of: Deployment) -> Iterator[Finding]:
    """Less memory is free than vLLM wants at its start, which it refuses."""
    if not on_gpu(of) or of.here is None or share(of) > 1:
        return
    state = of.here.gpu_memory(unified=of.unified, index=of.first_gpu)
    if state is None:
        return
    free, total, how = state
    wanted = share(of) * total
    if free < wanted:
        beside = f" beside {_names(of)}" if of.here.tenants else ""
        fits = int(free / total * 100 - 2) / 100
        yield Finding(
            of.key(_SHARE),
            f"vLLM wants {gib(wanted)} ({share(of):g} of {gib(total)}), {gib(free)} are free{beside} ({how})",
            "'Free memory on device is less than desired GPU memory utilization'",
            put(of.key(_SHARE), fits) if fits >= 0.2 else None,
            advice="unload the others first",
        )


@rule("tenants.beside", WARNING, source="guides: never above what the others leave; host")
def beside(of: Deployment) -> Iterator[Finding]:
    """Another server of models runs here and vLLM is to take most of the memory."""
    if not on_gpu(of) or of.here is None or share(of) <= 0.5:
        return
    state = of.here.gpu_memory(unified=of.unified, index=of.first_gpu)
    holding = [one for one in of.here.tenants if one.holds is None or one.holds > 0]
    if state is not None and state[0] < share(of) * state[1] and of.release >= Version("0.9.2"):
        return  # told by free_memory, with the numbers
    if holding:
        first = holding[0]
        remedy = first.remedy or "stop it, or give each its share"
        yield Finding(
            of.key(_SHARE),
            f"{', '.join(map(str, holding))} runs here, vLLM takes {share(of):g} of the memory",
            "whoever starts second finds no room, and either may run out of memory later",
            put(of.key(_SHARE), 0.5) if first.kind == "llama.cpp" else None,
            advice=remedy,
        )


@rule("tenants.port", WARNING, source="host: the port answers or is bound")
def port(of: Deployment) -> Iterator[Finding]:
    """The port that the deployment publishes is taken."""
    if of.here is None:
        return
    for number in of.here.taken_ports:
        yield Finding(
            "deployment.ports" if of.in_container else of.key("port"),
            f"port {number} is taken on this machine",
            "the deployment's own start would fail; the gate takes a free one",
        )


@rule("tenants.driver", WARNING, source="CUDA release notes: least driver per release; host")
def driver(of: Deployment) -> Iterator[Finding]:
    """The driver is too old for the CUDA release that the GPU or the image needs."""
    if of.here is None or not of.here.driver or of.hardware is None:
        return
    image_cuda = of.image.named_cuda if of.image else None
    needed = (
        of.hardware.min_cuda.split(".") if of.hardware.min_cuda and of.hardware.vendor == "nvidia" else []
    )
    hardware_cuda = (int(needed[0]), int(needed[1])) if len(needed) == 2 else None
    cuda = max((one for one in (image_cuda, hardware_cuda) if one), default=None)
    least = next((number for since, number in _DRIVERS if cuda is not None and cuda >= since), None)
    major = of.here.driver.partition(".")[0]
    if least is not None and cuda is not None and major.isdigit() and int(major) < least:
        yield Finding(
            "hardware",
            f"driver {of.here.driver}, CUDA {cuda[0]}.{cuda[1]} needs {least} or newer",
            "containers start and find no usable GPU",
        )


@rule("tenants.other-gpu", WARNING, source="host: nvidia-ml-py")
def other_gpu(of: Deployment) -> Iterator[Finding]:
    """The GPU here is not the one that the profile names."""
    if of.here is None or not of.here.gpus or of.capability is None:
        return
    found = of.here.gpus[0].capability
    if found and found != of.capability:
        yield Finding(
            "hardware",
            f"hardware is {of.profile.hardware!r}, this machine has {of.here.gpus[0].name}",
            "ceilings, limits and these rules are about another GPU",
        )


@rule("tenants.engine", WARNING, source="host: sockets of the container engines")
def engine(of: Deployment) -> Iterator[Finding]:
    """No container engine runs here."""
    if of.in_container and of.here is not None and of.here.engines is not None:
        launcher = of.profile.server.launcher
        if launcher not in of.here.engines:
            yield Finding(
                "server.launcher",
                f"launcher is {launcher}, no {launcher} was found here",
                "its socket and its program are missing",
            )
