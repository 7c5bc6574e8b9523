"""Ports of the loopback."""

from __future__ import annotations

import errno
import shlex
import socket

from pytest_vllm.launch.protocol import BootError

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def check_port(port: int) -> None:
    """Raises BootError when the port that a profile asks for is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise BootError(f"port {port} cannot be used", evidence=(str(error),)) from error
            raise port_in_use(port, str(error)) from error


def port_in_use(port: int, words: str) -> BootError:
    """The block for a port that somebody else has."""
    return BootError(
        f"port {port}, which the profile asks for, is in use",
        evidence=(words,),
        means="another server listens there; the gate would have tested that one",
        try_=(
            f"see who it is: {shlex.join(['ss', '-ltnp', f'sport = :{port}'])}",
            "leave port out of [server.args]: a free one is taken",
        ),
    )
