"""What the name of a container image tells: registry, repository, tag, CUDA release."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CUDA = re.compile(r"(?:^|[^a-z])cu(?:da)?-?(\d{2})\.?(\d)(?![0-9])")
_MOVING = re.compile(r"(?:^|[-_.])(?:latest|nightly|main|master|dev|edge|stable)(?:[-_.]|$)")
_COMMIT = re.compile(r"[0-9a-f]{12,40}")
#: A day in a tag: `nightly_main_20260211`, `dev-2026-02-11`.
_DAY = re.compile(r"(?<!\d)20\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])(?!\d)")

#: CUDA of the official images where the tag names none, by the first vLLM version that has it.
#: From torch's default builds that the releases pin: 2.5/2.6 cu124, 2.7 and 2.8 cu128, 2.9/2.10 cu128 or
#: cu129, 2.11 and later cu130.
OFFICIAL_CUDA = (("0.6", (12, 4)), ("0.9", (12, 8)), ("0.20", (13, 0)))


@dataclass(frozen=True)
class Image:
    """An image's name taken apart."""

    name: str
    repository: str
    tag: str
    digest: str

    @property
    def official(self) -> bool:
        """Whether it is the vLLM project's own image for NVIDIA GPUs."""
        return self.repository.removeprefix("docker.io/") == "vllm/vllm-openai"

    @property
    def from_nvidia(self) -> bool:
        """Whether it is NVIDIA's own build."""
        return self.repository.startswith("nvcr.io/nvidia/")

    @property
    def stock(self) -> bool:
        """Whether it holds vLLM and no model."""
        return self.official or self.from_nvidia or self.repository.startswith(("rocm/vllm", "vllm/"))

    @property
    def pinned(self) -> bool:
        """Whether the name gives the same image next month: a digest, or a tag that does not move."""
        if self.digest:
            return True
        moves = not self.tag or _MOVING.search(self.tag) is not None
        return not moves or any(one.search(self.tag) for one in (_COMMIT, _DAY))

    @property
    def nightly(self) -> bool:
        """Whether it is built from the newest source."""
        return "nightly" in self.tag

    @property
    def named_cuda(self) -> tuple[int, int] | None:
        """The CUDA release that the tag names: `cu130` is 13.0."""
        found = _CUDA.search(self.tag) or _CUDA.search(self.repository)
        return (int(found[1]), int(found[2])) if found else None

    @property
    def rocm(self) -> bool:
        """Whether it is made for AMD's GPUs."""
        return "rocm" in self.repository or "rocm" in self.tag

    @property
    def cpu(self) -> bool:
        """Whether it is made for CPUs."""
        return bool(re.search(r"(^|[-/])cpu([-/]|$)", f"{self.repository}-{self.tag}"))


def image_of(name: str | None) -> Image | None:
    """The parts of an image's name; None for none."""
    if not name:
        return None
    rest, _, digest = name.partition("@")
    head, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        head, tag = rest, ""
    return Image(name, head, tag, digest)
