"""Servers of which a branch starts one or the other: one server, whose command hangs on what lies outside."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.vllmline import model_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.profile.importers.shellwalk import Start


def one_of(starts: Sequence[Start], taken: Mapping[int, int]) -> list[Start]:
    """The start in the arms that are taken, where all others stand in other arms of the same branches.

    A script that offers several models, or several containers, offers several servers: they are all kept.

    Args:
        starts: the servers that a script starts.
        taken: branch -> which of its arms is taken.
    """
    if len(starts) < 2 or len({_what(one) for one in starts}) > 1:
        return list(starts)
    meant = [one for one in starts if all(taken.get(branch) == arm for branch, arm in one.arms)]
    exclusive = len(meant) == 1 and all(apart(meant[0], one) for one in starts if one is not meant[0])
    return meant if exclusive else list(starts)


def distinct(found: Sequence[Start]) -> list[Start]:
    """Each server once, though two ways through the script lead to it."""
    known: dict[object, Start] = {}
    for one in found:
        env = tuple((name, value.text) for name, value in one.state.environment().items())
        before = tuple((name, value.text) for name, (value, _) in one.prefix.env.items())
        known.setdefault((tuple(one.texts), env, before), one)
    return list(known.values())


def _what(start: Start) -> tuple[str, str]:
    """Which model, in which container."""
    texts = start.texts
    names = [after for word, after in itertools.pairwise(texts) if word == "--name"]
    names += [word.removeprefix("--name=") for word in texts if word.startswith("--name=")]
    return model_of(texts), names[0] if names else ""


def apart(one: Start, two: Start) -> bool:
    """Whether two stand in different arms of a branch, so that only one of them is ever started."""
    arms = dict(two.arms)
    return any(arms.get(branch, arm) != arm for branch, arm in one.arms)
