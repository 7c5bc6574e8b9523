"""A vLLM that a person started by hand, with the engine's own command line."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import suppress
from typing import Self

#: What the profile cpu-smollm2 starts.
IMAGE = "pytest-vllm/cpu:0.32.0"
LABEL = f"pytest-vllm.ci={os.environ.get('PYTEST_VLLM_CI', 'by-hand')}"
READY_WITHIN_S = 300.0
#: Processes whose containers are ours: this one, and the gates that it has started.
OWNERS = {str(os.getpid())}

#: The arguments of the profile cpu-smollm2, as a person would write them down.
SERVE = (
    "/models/SmolLM2-135M-Instruct",
    *("--served-model-name", "smollm2-135m"),
    *("--dtype", "float32"),
    *("--max-model-len", "4096"),
    *("--max-num-seqs", "16"),
    "--enforce-eager",
    "--enable-prompt-tokens-details",
)


class HandStarted:
    """A container started with `docker run`, ready once entered, gone once left."""

    def __init__(self, image: str) -> None:
        """Name what is to be started."""
        self.image, self.id, self.url = image, "", ""

    def __enter__(self) -> Self:
        """Start it and wait until it is healthy. Raises RuntimeError with its last lines."""
        options = ["--detach", "--label", LABEL, "--shm-size", "1g", "--env", "VLLM_CPU_KVCACHE_SPACE=2"]
        self.id = docker("run", *options, "--publish", "127.0.0.1::8000", self.image, *SERVE)
        self.url = f"http://{docker('port', self.id, '8000')}"
        deadline = time.monotonic() + READY_WITHIN_S
        while not self.healthy():
            if not self.runs() or time.monotonic() > deadline:
                log = docker("logs", "--tail", "40", self.id)
                self.__exit__()
                raise RuntimeError(f"the server started by hand did not come up:\n{log}")
            time.sleep(0.5)
        return self

    def __exit__(self, *exc: object) -> None:
        """Remove it. A busy machine may take longer to end it than the engine waits."""
        for _ in range(5):
            with suppress(subprocess.CalledProcessError):
                docker("rm", "--force", self.id)
                return
            time.sleep(5)
        docker("rm", "--force", self.id)

    def runs(self) -> bool:
        """Whether its container runs."""
        return docker("inspect", "--format", "{{.State.Running}}", self.id) == "true"

    def healthy(self) -> bool:
        """Whether it answers 200 on /health."""
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:  # noqa: S310 - loopback
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


def docker(*words: str) -> str:
    """What a docker command prints, both streams. Raises CalledProcessError when it fails."""
    done = subprocess.run(
        ["docker", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    )
    return done.stdout.strip()


def containers(image: str = IMAGE) -> set[str]:
    """Every container of the image that this process or a gate of it made, running or not.

    Tests in another process have their own at the same time.
    """
    row = '{{.ID}} {{.Label "pytest-vllm.owner-pid"}}'
    words = ["ps", "--all", "--no-trunc", "--filter", f"ancestor={image}", "--format", row]
    rows = (line.partition(" ") for line in docker(*words).splitlines())
    return {name for name, _, owner in rows if owner.strip() in OWNERS}
