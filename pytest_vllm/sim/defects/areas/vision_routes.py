"""Defects of pictures over routes other than chat."""

from __future__ import annotations

from typing import Any

from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import MESSAGES, RESPONSES, only


def _one_of(parts: Any, kind: str) -> Any:
    """The parts of a turn without any picture but the first."""
    if not isinstance(parts, list):
        return parts
    shown = [at for at, part in enumerate(parts) if isinstance(part, dict) and part.get("type") == kind]
    return [part for at, part in enumerate(parts) if at not in shown[1:]]


def _first_picture(body: Any, path: str) -> Any:
    del path
    for name, kind in (("input", "input_image"), ("messages", "image")):
        for turn in (body.get(name) if isinstance(body.get(name), list) else None) or ():
            if isinstance(turn, dict):
                turn["content"] = _one_of(turn.get("content"), kind)
    return body


for _path in (RESPONSES, MESSAGES):
    add(
        f"vision.one-over-{_path.rpartition('/')[2]}",
        f"Of several pictures the first one is seen on {_path}.",
        {"body": only((_path,), _first_picture)},
        profile="spark-qwen35",
        catches=["vision.routes.counted"],
    )
