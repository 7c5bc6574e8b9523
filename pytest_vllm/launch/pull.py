"""Getting an image that is not there, never silently."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm.launch.diagnose import daemon_error
from pytest_vllm.launch.engine import words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_vllm.launch.engine import Engine

_A_LINE_EVERY = 2.0
_GB = 1e9


@dataclass
class PullProgress:
    """Adds up an engine's progress events."""

    image: str
    _layers: dict[str, tuple[int, int]] = field(default_factory=dict)
    _done: set[str] = field(default_factory=set)

    def take(self, event: Mapping[str, Any]) -> None:
        """One event of the pull's stream."""
        layer, status = event.get("id"), event.get("status", "")
        if not layer or status.startswith(("Pulling from", "Digest")):
            return
        detail = event.get("progressDetail") or {}
        self._layers.setdefault(layer, (0, 0))
        if status == "Downloading" and detail.get("total"):
            self._layers[layer] = (detail["current"], detail["total"])
        if status in ("Download complete", "Pull complete", "Already exists"):
            self._layers[layer] = (self._layers[layer][1],) * 2
        if status in ("Pull complete", "Already exists"):
            self._done.add(layer)

    @property
    def line(self) -> str:
        """`pulling IMAGE: 3 of 17 layers, 1.2 of 9.4 GB`; layers not begun are not yet in the sum."""
        if not self._layers:
            return f"pulling {self.image}"
        here = sum(got for got, _ in self._layers.values())
        total = sum(size for _, size in self._layers.values())
        layers = f"{len(self._done)} of {len(self._layers)} layers"
        return f"pulling {self.image}: {layers}, {here / _GB:.1f} of {total / _GB:.1f} GB"


def pull(
    engine: Engine,
    image: str,
    say: Callable[[str], None],
    cancelled: Callable[[], bool],
    now: Callable[[], float] = time.monotonic,
) -> None:
    """Pull an image, telling how far it is every two seconds. Raises BootError with the daemon's words."""
    progress = PullProgress(image)
    say(progress.line)
    told = now()
    try:
        for event in engine.client.api.pull(_with_tag(image), stream=True, decode=True):
            if cancelled():
                return
            if error := event.get("error"):
                raise _refused(image, engine, str(error))
            progress.take(event)
            if now() - told >= _A_LINE_EVERY:
                told = now()
                say(progress.line)
    except engine.errors as error:
        raise _refused(image, engine, words_of(error)) from error
    say(progress.line)


def _refused(image: str, engine: Engine, words: str) -> Exception:
    return daemon_error(
        f"the image {image} is not on this machine and {engine.name} could not pull it",
        words,
        means="the daemon refused the pull with these words",
        try_=(f"{engine.name} pull {image}",),
    )


def _with_tag(image: str) -> str:
    """Without a tag the engine would pull every one of them."""
    return image if "@" in image or ":" in image.rpartition("/")[2] else f"{image}:latest"
