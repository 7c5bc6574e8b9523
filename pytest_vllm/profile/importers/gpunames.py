"""Which hardware file a GPU's name means, as node labels, clouds and people write it."""

from __future__ import annotations

import re

#: Words that a name has to hold, all of them, the more telling rows first -> hardware file; "" for a GPU
#: that no file describes, so that it is not taken for one with a shorter name.
_GPUS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("gb300",), ""),
    (("gb200",), "gb200"),
    (("gb10",), "gb10"),
    (("gh200", "144gb?"), ""),
    (("gh200", "(?:480|96)gb?"), "gh200"),
    (("gh200",), ""),
    (("b300",), ""),
    (("b200",), "b200"),
    (("h200", "nvl"), ""),
    (("h200",), "h200"),
    (("h100", "pcie"), "h100-pcie"),
    (("h100", "nvl"), ""),
    (("h100", "mig"), ""),
    (("h100",), "h100"),
    (("h20",), ""),
    (("h800",), ""),
    (("a100", "40gb?"), "a100-40"),
    (("a100", "80gb?"), "a100"),
    (("l40s",), "l40s"),
    (("l40",), ""),
    (("l4",), "l4"),
    (("mi355x",), "mi355x"),
    (("mi325x",), "mi325x"),
    (("mi300x",), "mi300x"),
    (("t4",), "t4"),
    (("a10g",), "a10g"),
    (("v100", "32gb?"), "v100"),
    (("v100", "16gb?"), "v100-16"),
    (("6000", "ada"), ""),
    (("a6000",), "a6000"),
    (("a5000",), "a5000"),
    (("3090", "ti"), ""),
    (("3090",), "rtx3090"),
    (("4090",), "rtx4090"),
    (("5090",), "rtx5090"),
    (("6000", "blackwell", "maxq"), "rtxpro6000-maxq"),
    (("6000", "blackwell", "server"), "rtxpro6000-server"),
    (("6000", "blackwell"), "rtxpro6000"),
    (("pro", "5000", "blackwell"), "rtxpro5000"),
    (("pro", "4500", "blackwell"), "rtxpro4500"),
    (("thor",), "jetson-thor"),
)


def hardware_named(text: str) -> str:
    """`NVIDIA-H100-80GB-HBM3`, `nvidia-l4`, `H100_SXM` -> the hardware file's name; empty when none is meant.

    A share of a GPU (MIG) is none of them, and a name that two files fit (A100 without its memory) neither.
    """
    plain = re.sub(r"max-?q", "maxq", text.lower())
    words = re.findall(r"[a-z0-9]+", plain)
    if "mig" in words:
        return ""
    for wanted, name in _GPUS:
        if all(
            any(re.fullmatch(rf"(?:rtx|nvidia|geforce|amd)?{one}", word) for word in words) for one in wanted
        ):
            return name
    return ""
