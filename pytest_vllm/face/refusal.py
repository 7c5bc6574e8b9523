"""A run that is refused after its collection: in the words of a usage error, under xdist too.

A worker that raises is an internal error of xdist; so it runs nothing and hands its words to the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The key under which a worker hands over why it runs nothing; plugin.py reads it.
KEY = "vllm_refused"


def refuse(config: pytest.Config, items: list[pytest.Item], words: str) -> None:
    """Run nothing, and say why. Raises pytest.UsageError where this is no worker."""
    output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    if output is None:
        raise pytest.UsageError(words)
    output[KEY] = words
    items.clear()


def unknown_fixtures(items: Iterable[pytest.Item]) -> str:
    """In pytest's own words, every fixture that a test asks for and nobody provides; empty when none.

    pytest finds out in the set-up of the test, minutes after a server was started for it.
    """
    from _pytest.fixtures import FixtureLookupError  # noqa: PLC0415 - pytest's own words

    found: dict[str, None] = {}
    for item in items:
        info = getattr(item, "_fixtureinfo", None)
        if info is None or not isinstance(item, pytest.Function):
            continue
        chosen = getattr(getattr(item, "callspec", None), "params", {})
        for name in info.names_closure:
            if name != "request" and name not in info.name2fixturedefs and name not in chosen:
                said = FixtureLookupError(name, item._request).formatrepr()  # noqa: SLF001 - as pytest does
                found[f"{item.nodeid}\n{said}"] = None
    return "\n".join(found)
