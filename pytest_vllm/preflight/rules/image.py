"""The container image against GPU, version and model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.facts import version_of
from pytest_vllm.facts.version import Version
from pytest_vllm.preflight.facts import entries, lives
from pytest_vllm.preflight.image import OFFICIAL_CUDA, Image
from pytest_vllm.preflight.rule import ERROR, WARNING, Finding, put, rule
from pytest_vllm.profile.flags import image_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment

_GB10 = (12, 1)
_GB10_FIX = "vllm/vllm-openai from v0.20.0 on, a -cu130 tag, or nvcr.io/nvidia/vllm:25.09-py3 or newer"


def _cuda(of: Deployment, image: Image) -> tuple[tuple[int, int], str] | None:
    """CUDA of the image, and how it is known."""
    if image.named_cuda:
        return image.named_cuda, f"the tag {image.tag!r} says"
    if not image.official or not of.version_known or image.nightly:
        return None
    known = [cuda for since, cuda in OFFICIAL_CUDA if of.at_least(since)]
    return (known[-1], f"official images of vLLM {of.version} are built with") if known else None


@rule("image.missing", ERROR, source="profile")
def missing(of: Deployment) -> Iterator[Finding]:
    """A container without an image."""
    if of.in_container and not of.profile.server.image:
        yield Finding("server.image", f"launcher {of.profile.server.launcher} without an image")


@rule(
    "image.stable-on-gb10", ERROR, source="guides for DGX Spark; vllm#28129; vllm#42738 (CUDA 13 from 0.20)"
)
def stable_on_gb10(of: Deployment) -> Iterator[Finding]:
    """The official image of a version without kernels for GB10 (sm_121)."""
    image = of.image
    if image is None or of.capability != _GB10 or not image.official or image.named_cuda or image.nightly:
        return
    if of.version_known and of.at_least("0.20.0") and image.tag != "latest":
        return
    known = of.version_known and not of.at_least("0.20.0")
    if not known and of.version_known:
        return
    means = "CUTLASS FP8 kernels fail, memory is read wrongly, Triton lacks sm_121a"
    yield Finding(
        "server.image",
        f"{image.name} on GB10 (compute capability 12.1)",
        f"built with CUDA 12 before vLLM 0.20: {means}"
        if known
        else f"if it is older than vLLM 0.20: {means}",
        advice=_GB10_FIX,
        severity=ERROR if known else WARNING,
    )


@rule("image.cuda-too-old", ERROR, source="CUDA release notes: sm_120 from 12.8, sm_121 from 13.0")
def cuda_too_old(of: Deployment) -> Iterator[Finding]:
    """An image whose CUDA release has no kernels for the GPU."""
    image, needed = of.image, of.hardware.min_cuda if of.hardware else None
    if (
        image is None
        or needed is None
        or (of.capability == _GB10 and image.official and not image.named_cuda)
    ):
        return
    found = _cuda(of, image)
    major, _, minor = needed.partition(".")
    if found and found[0] < (int(major), int(minor or 0)):
        cuda, how = found
        yield Finding(
            "server.image",
            f"{how} CUDA {cuda[0]}.{cuda[1]}",
            f"{of.hardware.title if of.hardware else ''} needs {needed}: no kernel image is available there",
            advice=f"an image with CUDA {needed} or newer",
            severity=WARNING if of.capability == _GB10 and cuda >= (12, 9) else ERROR,
        )


@rule("image.wrong-vendor", ERROR, source="Docker Hub: vllm/vllm-openai is CUDA, rocm/vllm is ROCm")
def wrong_vendor(of: Deployment) -> Iterator[Finding]:
    """An image for another maker's devices."""
    image, vendor = of.image, of.hardware.vendor if of.hardware else "none"
    if image is None or vendor == "none":
        return
    cuda = (image.official or image.from_nvidia) and not image.rocm and not image.cpu
    wrong = (vendor == "amd" and cuda) or (vendor == "nvidia" and image.rocm) or (vendor == "cpu" and cuda)
    if wrong:
        made = "AMD's GPUs" if image.rocm else "NVIDIA's GPUs"
        yield Finding(
            "server.image",
            f"{image.name} is made for {made}, the hardware is {of.hardware.title if of.hardware else ''}",
            "no device is found at the start",
        )


@rule("image.unpinned", WARNING, source="guides: pin a digest for reproducibility")
def unpinned(of: Deployment) -> Iterator[Finding]:
    """A tag that moves: what was tested is not what the next pull brings."""
    image = of.image
    if image is not None and not image.pinned and "/" in image.repository:
        tag = f"the tag {image.tag!r} moves" if image.tag else "it has no tag, which is latest"
        pinned = (
            f"{image.repository}:v{of.version}" if image.official and of.version and not image.nightly else ""
        )
        advice = f"pin a version or a digest: {pinned or image.repository + '@sha256:…'}"
        yield Finding(
            "server.image", f"{image.name}: {tag}", "the next pull brings another vLLM", advice=advice
        )


@rule("image.tag-differs", WARNING, source="profile")
def tag_differs(of: Deployment) -> Iterator[Finding]:
    """The image's tag names one version and the profile another."""
    tagged, told = image_version(of.profile.server.image), of.profile.server.version
    if tagged and told and of.in_container and version_of(tagged) != version_of(told):
        yield Finding(
            "server.version",
            f"version is {told}, the image's tag says {tagged}",
            "facts of the wrong version are applied",
            put("server.version", tagged),
        )


def _made_for(of: Deployment) -> str:
    """For whose GPUs an image is that somebody starts by a line or a file, where no hardware is named."""
    server, image = of.profile.server, of.image
    written = of.profile.deployment.kind in ("compose", "docker-run", "podman-run")
    other = server.devices or server.runtime or server.privileged or of.device == "none"
    cuda = image is not None and (image.official or image.from_nvidia)
    return "nvidia" if written and cuda and not other else "none"


@rule("image.gpus-missing", WARNING, source="docker run --gpus")
def gpus_missing(of: Deployment) -> Iterator[Finding]:
    """A container on a GPU machine, or of an image for NVIDIA's GPUs, that is given none."""
    vendor, server = of.hardware.vendor if of.hardware else _made_for(of), of.profile.server
    if of.in_container and vendor == "nvidia" and not server.gpus:
        if "NVIDIA_VISIBLE_DEVICES" in server.env:
            return
        yield Finding(
            "server.gpus",
            "gpus is not set",
            "the container sees no GPU unless the nvidia runtime is the daemon's default",
            put("server.gpus", "all"),
        )


@rule("image.architecture-missing", ERROR, source="model registry of each release")
def architecture_missing(of: Deployment) -> Iterator[Finding]:
    """An architecture that this version does not have."""
    name = of.model.architecture if of.model else ""
    row = entries("architectures").get(name)
    if row is None or of.simulated or lives(row, of.release):
        return
    if "added" in row and of.release < Version(row["added"]):
        # pre-releases and images of the months before are numbered like the version before
        near = of.image is not None and (of.image.nightly or "+" in of.version)
        yield Finding(
            "server.model",
            f"{name} came with vLLM {row['added']}",
            f"{of.shown_version} does not know it and falls back to Transformers, or refuses",
            advice=f"vLLM {row['added']} or newer",
            severity=WARNING if near or not of.version_known else ERROR,
        )
    elif "removed" in row:
        yield Finding(
            "server.model",
            f"{name} was dropped in vLLM {row['removed']}",
            f"{of.shown_version} does not load it",
            severity=ERROR if of.version_known else WARNING,
        )


@rule("image.no-server", WARNING, source="guide: the command of NVIDIA's container")
def no_server(of: Deployment) -> Iterator[Finding]:
    """NVIDIA's image starts a shell unless a command is given."""
    image, server = of.image, of.profile.server
    if image is not None and image.from_nvidia and not server.command and not server.entrypoint:
        yield Finding(
            "server.command",
            f"{image.name} without a command",
            "its entry point wraps a command and starts no server by itself in production",
            put("server.command", ["vllm", "serve"]),
        )
