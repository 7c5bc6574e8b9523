"""Explorations: what failed once, and what is drawn."""

from __future__ import annotations

from pytest_vllm import Exploration, exchange

from .judging import follow, judge
from .requests import requests
from .space import draw, simpler

EXPLORATION = Exploration(draw, simpler, requests, follow, judge)


@exchange("explore.known", explores="known")
def explore_known() -> Exploration:
    """What failed once on this profile, as `vllm-profiles/NAME.regressions.jsonl` has it."""
    return EXPLORATION


@exchange("explore.drawn", explores="drawn")
def explore_drawn() -> Exploration:
    """Requests drawn at random until the time is up."""
    return EXPLORATION
