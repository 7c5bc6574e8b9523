"""One entry of `[server.args]` as the words that vLLM's command line wants for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.profile.model import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Lists that vLLM wants as one JSON list, repeated, or joined by commas; all others are separate words.
#: Read from vLLM 0.32.0's entrypoints/launchers/cli_args.py.
_JSON_LISTS = frozenset({"allowed-origins", "allowed-methods", "allowed-headers"})
_REPEATED = frozenset({"middleware"})
_COMMA_LISTS = frozenset({"disable-access-log-for-endpoints"})


def flag_words(name: str, value: Any) -> Iterator[str | Secret]:
    """`max-num-seqs`, `8` -> `--max-num-seqs`, `8`. A reference to a secret stays one."""
    dashed = f"--{name}" if len(name) > 1 else f"-{name}"
    yield f"--no-{name}" if value is False else dashed
    match value:
        case bool():
            return
        case {"from-env": variable, **rest} if not rest:
            yield Secret(from_env=variable)
        case dict():
            yield _json(value)
        case list() if name in _JSON_LISTS:
            yield _json(value)
        case list() if name in _COMMA_LISTS:
            yield ",".join(map(str, value))
        case list():
            for place, one in enumerate(value):
                yield from ([dashed] if place and name in _REPEATED else [])
                yield _json(one) if isinstance(one, dict) else str(one)
        case _:
            yield str(value)


def takes_position(program: Sequence[str]) -> bool:
    """`vllm serve MODEL` takes the model as a position, a Python module as `--model MODEL`."""
    return bool(program) and program[-1] == "serve"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
