"""Whether the owner of something is gone: only certainty counts."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from pytest_vllm.launch.owner import Owner, own


def test_this_process_is_alive_and_reads_back() -> None:
    """Written into a label and read again."""
    owner = own()

    assert owner.pid == os.getpid()
    assert owner.alive()
    assert Owner.parse(str(owner)) == owner


def test_process_that_ended_is_gone_also_as_a_zombie() -> None:
    """A parent that has not asked for its status does not keep it alive."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        owner = Owner.of(child.pid)
        assert owner.alive()
        assert child.stdin is not None
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

        assert not owner.alive()
    assert not owner.alive()


def test_number_that_was_used_again_is_another_process() -> None:
    """Told by the time of its start."""
    assert not replace(own(), start="12345").alive()


def test_earlier_boot_of_this_machine() -> None:
    """Nothing lives through it."""
    assert not replace(own(), boot="another").alive()


@pytest.mark.parametrize("change", [{"host": "elsewhere"}, {"namespace": "1"}, {"user": "4711"}])
def test_what_cannot_be_told_counts_as_alive(change: dict[str, str]) -> None:
    """Another machine, another container's numbers, another person: not ours to judge, dead or not."""
    assert replace(own(), start="12345", **change).alive()  # type: ignore[arg-type]
    assert replace(own(), pid=2**22 + 1, **change).alive()


@pytest.mark.parametrize("text", ["", "nonsense", "a:b:c:d:e:f", "1:2:3:4:5", "1:2:3:4:5:6:7"])
def test_what_is_no_owner(text: str) -> None:
    """A label that somebody else wrote names nobody."""
    assert Owner.parse(text) is None
