"""Checks that must fail, collected and judged like every other and shown nowhere (face/auditor.py runs them).

One that passes shows that failures are not seen in this run: asserts are switched off, or a plugin eats them.
"""

from __future__ import annotations

from pytest_vllm.declare.checks import MUST
from pytest_vllm.face.decorators import check

ANSWER = {"usage": {"completion_tokens": 4}}


@check("control.wrong", MUST, spec="profile:expect")
def test_wrong(vllm_profile_name: str) -> None:
    """Four tokens are five."""
    tokens = ANSWER["usage"]["completion_tokens"]

    # as plain as the suites' own: python -O drops it like theirs
    assert tokens == 5, f"{tokens} tokens on {vllm_profile_name}"  # noqa: S101
