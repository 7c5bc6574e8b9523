"""The image's vLLM on this machine itself, for servers without a container."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.real.image import SITE
from tests.real.recipe import MODEL
from tests.real.server import docker

if TYPE_CHECKING:
    from pathlib import Path

#: Libraries of the image that this machine may lack.
LIBRARIES = ("libnuma.so.1",)


def unpack(image: str, folder: Path) -> dict[str, str]:
    """Unpack vLLM and the model into a folder.

    Returns:
        What the profile cpu-smollm2-process takes from its environment: a Python with vLLM, the model.
    """
    container = docker("create", image)
    try:
        parts = [SITE, f"models/{MODEL}", "usr/lib"]
        with subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE) as packed:
            subprocess.run(["tar", "-x", "-C", str(folder), *parts], stdin=packed.stdout, check=True)
    finally:
        docker("rm", container)
    beside = folder / "libraries"
    beside.mkdir()
    for name in LIBRARIES:
        (found,) = (folder / "usr/lib").glob(f"*-linux-gnu/{name}")
        (beside / name).symlink_to(found)
    python = folder / "python"
    python.write_text(
        "#!/bin/sh\n"
        f'export PYTHONPATH="{folder / SITE}" LD_LIBRARY_PATH="{beside}"\n'
        f'exec "{sys.executable}" "$@"\n',
        "utf-8",
    )
    python.chmod(0o755)
    return {"VLLM_PYTHON": str(python), "VLLM_MODEL": str(folder / "models" / MODEL), "HF_HUB_OFFLINE": "1"}
