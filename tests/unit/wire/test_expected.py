"""How long an answer may be, as far as its request tells."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_vllm.run.pace import expected_tokens
from pytest_vllm.wire.recording import Request


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        (None, 0),
        ({"prompt": "a"}, 16),
        ({"max_tokens": 5}, 5),
        ({"max_completion_tokens": 7, "max_tokens": 5}, 7),
        ({"max_output_tokens": 9}, 9),
        ({"max_tokens": 5, "n": 3}, 15),
        ({"max_tokens": "many", "n": "x"}, 16),
    ],
)
def test_long_answers_are_expected_from_the_request(body: Any, tokens: int) -> None:
    assert expected_tokens(Request("POST", "/", json=body)) == tokens
