"""The rules, a file for each topic; importing this finds the files, which register themselves."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

#: Every topic's module, in the order of the alphabet.
TOPICS = tuple(
    import_module(f"{__name__}.{name}") for name in sorted(one.name for one in iter_modules(__path__))
)
