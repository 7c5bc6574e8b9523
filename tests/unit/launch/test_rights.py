"""Devices, rights and limits of a profile in the engine's create call."""

from __future__ import annotations

import pytest

from pytest_vllm.launch.protocol import BootError
from pytest_vllm.launch.recipe import host_of
from pytest_vllm.profile.model import ServerPart


def test_a_deployment_on_rocm() -> None:
    """What AMD's GPUs need of their host, as the SDK takes it."""
    server = ServerPart.model_validate(
        {
            "devices": ["/dev/kfd", "/dev/dri"],
            "cap-add": ["SYS_PTRACE"],
            "group-add": ["video"],
            "ulimits": {"memlock": "-1", "nofile": "1:2"},
            "privileged": True,
        }
    )

    assert host_of(server) == {
        "devices": ["/dev/kfd", "/dev/dri"],
        "cap_add": ["SYS_PTRACE"],
        "group_add": ["video"],
        "ulimits": [
            {"Name": "memlock", "Soft": -1, "Hard": -1},
            {"Name": "nofile", "Soft": 1, "Hard": 2},
        ],
        "privileged": True,
    }


def test_a_server_that_asks_for_nothing() -> None:
    """Nothing is in the call."""
    assert host_of(ServerPart()) == {}


def test_a_limit_that_is_not_a_number() -> None:
    """Refused before the engine is asked."""
    with pytest.raises(BootError, match="the limit memlock = 'many' is not a number"):
        host_of(ServerPart(ulimits={"memlock": "many"}))
