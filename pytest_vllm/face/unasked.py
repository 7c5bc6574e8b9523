"""The fixtures of a run without a server: each says what its test needs."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from pytest_vllm.face.options import FIXTURES


def _absent(name: str) -> Any:
    def needs_server() -> NoReturn:
        raise pytest.UsageError(
            "this test needs a server: pass --vllm-profile=NAME or --vllm-url=URL, "
            "or set vllm_profile in the ini file"
        )

    needs_server.__doc__ = f"Needs a server: `{name}` is there with --vllm-profile=NAME or --vllm-url=URL."
    return pytest.fixture(name=name, scope="session")(needs_server)


globals().update({name: _absent(name) for name in FIXTURES})
