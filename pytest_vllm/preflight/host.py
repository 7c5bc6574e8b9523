"""What is known of the machine before anything starts; what could not be learned is absent.

Nothing here asks or changes anything: `inspect.py` does the asking.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Gpu:
    """A GPU as NVIDIA's library describes it.

    Args:
        name: `NVIDIA GB10`.
        total: bytes of memory; 0 where the library does not tell (unified memory).
        free: bytes that nobody holds.
        capability: CUDA compute capability.
    """

    name: str
    total: int
    free: int
    capability: tuple[int, int] | None = None


@dataclass(frozen=True)
class Tenant:
    """Another server of models on this machine.

    Args:
        kind: ollama, llama.cpp or vllm.
        url: where it answers, always on the loopback.
        holds: bytes of GPU memory it says it holds; None when it does not say.
        models: what it has loaded.
        remedy: how to make it let go.
    """

    kind: str
    url: str
    holds: int | None = None
    models: tuple[str, ...] = ()
    remedy: str = ""

    @property
    def advice(self) -> str:
        """What a person does about it."""
        return f"To free it: {self.remedy}" if self.remedy else "Stop it, or give each its share"

    def __str__(self) -> str:
        """`ollama at http://127.0.0.1:11434 (qwen3:32b, 20.1 GiB)`."""
        size = [f"{self.holds / 1024**3:.1f} GiB"] if self.holds else []
        inside = ", ".join([*self.models[:2], *size])
        return f"{self.kind} at {self.url}" + (f" ({inside})" if inside else "")


@dataclass(frozen=True)
class Host:
    """Facts of a machine.

    Args:
        gpus: by index; empty when the library is not there or finds none.
        driver: the GPU driver's version; empty when unknown.
        available: bytes that the system can give to new processes (MemAvailable); None when unknown.
        memory: bytes of main memory; None when unknown.
        engines: container engines whose socket or program is here; None when nobody looked.
        tenants: other servers of models that answer on the loopback.
        taken_ports: ports that the deployment wants and that are bound.
        how: how each fact is known, for reports.
        accelerators: makers whose devices are here, `nvidia`, `amd`; None when nobody looked.
    """

    gpus: tuple[Gpu, ...] = ()
    driver: str = ""
    available: int | None = None
    memory: int | None = None
    engines: tuple[str, ...] | None = None
    tenants: tuple[Tenant, ...] = ()
    taken_ports: tuple[int, ...] = ()
    how: tuple[tuple[str, str], ...] = ()
    accelerators: tuple[str, ...] | None = None

    def has(self, vendor: str) -> bool:
        """Whether this can be the machine that a profile for such devices is about."""
        if self.accelerators is None or vendor not in ("nvidia", "amd", "any"):
            return True
        return bool(self.accelerators) if vendor == "any" else vendor in self.accelerators

    def gpu_memory(self, *, unified: bool, index: int = 0) -> tuple[int, int, str] | None:
        """Free and all bytes of a GPU, and how that is known; None when it is not.

        Where the memory is the CPU's too, free is what the system can give: vLLM counts like that since
        0.11.1.
        """
        if unified:
            seen = self.gpus or "nvidia" in (self.accelerators or ())
            if self.available is None or self.memory is None or not seen:
                return None
            return self.available, self.memory, "MemAvailable"
        if index >= len(self.gpus) or not self.gpus[index].total:
            return None
        return self.gpus[index].free, self.gpus[index].total, "NVML"

    def folder_missing(self, folder: str) -> bool:
        """Whether a volume's source is a path that does not exist; names of volumes never are."""
        path = _path(folder)
        return path is not None and not path.exists()

    def has_file(self, path: str) -> bool:
        """Whether a file is there."""
        found = _path(path)
        return found is not None and found.is_file()

    def writable(self, folder: str) -> bool | None:
        """Whether this user may write there; None when there is no such folder."""
        path = _path(folder)
        return os.access(path, os.W_OK) if path is not None and path.is_dir() else None

    def free_disk(self, folder: str) -> int | None:
        """Bytes that are free on the folder's disk; None when it cannot be told."""
        path = _path(folder)
        while path is not None and not path.exists() and path != path.parent:
            path = path.parent
        try:
            return shutil.disk_usage(path).free if path is not None else None
        except OSError:
            return None

    def cached(self, folder: str, repo: str) -> bool | None:
        """Whether a Hugging Face cache holds a repository; None when that cannot be seen from here."""
        path = _path(folder)
        if path is None or (path.exists() and not os.access(path, os.R_OK | os.X_OK)):
            return None
        if not path.exists():
            return False
        name = "models--" + repo.replace("/", "--")
        try:
            return any(
                next(snapshots.iterdir(), None) is not None
                for base in (path, path / "hub", path / "huggingface" / "hub")
                if (snapshots := base / name / "snapshots").is_dir()
            )
        except OSError:
            return None


def _path(folder: str) -> Path | None:
    if "$" in folder or not folder.startswith(("/", "~", ".")):
        return None
    try:
        return Path(folder).expanduser()
    except RuntimeError:
        return None
