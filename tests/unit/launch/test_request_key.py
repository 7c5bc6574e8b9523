"""Whose key requests carry: that of the server that they go to, and nobody else's."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_vllm.launch.arguments import request_key
from pytest_vllm.profile.model import Profile

EXPORTED = {"VLLM_API_KEY": "sk-exported", "MINE": "sk-mine"}


@pytest.mark.parametrize(
    ("server", "key"),
    [
        ({"launcher": "sim"}, "sk-exported"),
        ({"launcher": "process", "command": ["vllm", "serve"]}, "sk-exported"),
        ({"launcher": "docker", "image": "vllm/vllm-openai:v0.32.0"}, None),
        ({"launcher": "attach", "url": "http://127.0.0.1:8000"}, None),
        ({"launcher": "sim", "api-key": {"from-env": "MINE"}}, "sk-mine"),
        ({"launcher": "attach", "url": "http://127.0.0.1:8000", "api-key": {"from-env": "MINE"}}, "sk-mine"),
        ({"launcher": "docker", "image": "i:1", "env": {"VLLM_API_KEY": {"from-env": "MINE"}}}, "sk-mine"),
        ({"launcher": "docker", "image": "i:1", "args": {"api-key": {"from-env": "MINE"}}}, "sk-mine"),
        ({"launcher": "sim", "api-key": {"from-env": "NOT_SET"}}, None),
    ],
)
def test_the_key_of_the_server(server: dict[str, Any], key: str | None) -> None:
    profile = Profile.model_validate({"name": "mine", "server": server})

    assert request_key(profile, EXPORTED) == key


def test_none_is_sent_where_none_is_set() -> None:
    profile = Profile.model_validate({"name": "mine", "server": {"launcher": "sim"}})

    assert request_key(profile, {}) is None
