"""Options and ini keys that begin as ours do and are nobody's: the nearest right word is named."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.face.options import OPTION

if TYPE_CHECKING:
    from collections.abc import Sequence

#: How our ini keys begin.
KEY = "vllm_"


def refuse_options(parser: pytest.Parser, args: Sequence[str]) -> None:
    """Raise pytest.UsageError for an option that begins as ours do and is nobody's."""
    known = _known(parser)
    for word in parser.parse_known_and_unknown_args(list(args))[1]:
        name = word.partition("=")[0]
        if name.startswith(OPTION):
            near = difflib.get_close_matches(name.removeprefix(OPTION), known, n=1)
            hint = f"did you mean {OPTION}{near[0]}?" if near else "`pytest --help` lists them all"
            raise pytest.UsageError(f"unknown option {name}; {hint}")


def refuse_keys(config: pytest.Config, parser: pytest.Parser) -> None:
    """Raise pytest.UsageError for a key of the ini file that begins as ours do and is nobody's."""
    keys = [f"{KEY}{name.replace('-', '_')}" for name in _known(parser)]
    written = getattr(config, "_inicfg", None)  # `inicfg` is deprecated where this one is
    for key in config.inicfg if written is None else written:
        if not key.startswith(KEY) or key in keys or _is_of_another(config, key):
            continue
        near = difflib.get_close_matches(key, keys, n=1, cutoff=0.75)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(keys))}"
        raise pytest.UsageError(f"unknown key {key} in the ini file; {hint}")


def _known(parser: pytest.Parser) -> list[str]:
    """Our options, without the words that all of them begin with."""
    ours = [name for option in parser.getgroup("vllm").options for name in option.names()]
    return [name.removeprefix(OPTION) for name in ours]


def _is_of_another(config: pytest.Config, key: str) -> bool:
    """Whether another plugin, or a conftest file, knows a key."""
    try:
        config.getini(key)
    except ValueError:
        return False
    return True
