"""The host that a driver speaks to: its addresses, and sockets to them as the driver needs them."""

from __future__ import annotations

import socket
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_vllm.wire.dial import dial
from pytest_vllm.wire.policy import route_to

if TYPE_CHECKING:
    from pytest_vllm.wire.policy import Access

#: SO_TIMESTAMPNS: the kernel tells when bytes came in. It begins to take the time some milliseconds after the
#: first socket asked for it; what comes before that has the moment of its reading.
_STAMPS = 35 if sys.platform == "linux" else None
#: Seconds to connect where that is waited for: with TLS, through a tunnel, to a unix socket.
WITHIN = 10.0


@dataclass(frozen=True, eq=False)
class Address:
    """One of a host's addresses, as the system's resolver gives it."""

    family: int
    place: Any


class Host:
    """Where a URL leads.

    Args:
        url: the server's base URL.
        stamps: whether to ask for the kernel's times where there are some.
        access: what was said about the way to it.

    `stamps` is None where its sockets tell no times: TLS, and unix sockets.
    """

    def __init__(self, url: str, *, stamps: bool = True, access: Access | None = None) -> None:
        """Nothing is connected. Raises OSError for a host without an address, ValueError for a bad URL."""
        self.route = route_to(url, access)
        self.tls = self.route.tls
        self.stamps = _STAMPS if stamps and self.tls is None and not self.route.unix else None
        self._waits = self.tls is not None or bool(self.route.unix)
        found = [] if self._waits else socket.getaddrinfo(*self.route.peer, type=socket.SOCK_STREAM)
        #: In the resolver's order; one that refuses is left out as long as there are others.
        self._addresses = deque(Address(one[0], one[4]) for one in found)

    def reach(self) -> tuple[socket.socket, Address | None]:
        """A socket that is being connected, and where to; one that is connected, and None. Raises OSError.

        At the first address that does not refuse at once.
        """
        if self._waits:
            sock = dial(self.route, WITHIN)
            sock.setblocking(False)
            return sock, None
        while True:
            address = self._addresses[0]
            sock = socket.socket(address.family, socket.SOCK_STREAM)
            try:
                return self._begun(sock, address), address
            except OSError:
                sock.close()
                if not self.without(address):
                    raise

    def without(self, address: Address | None) -> bool:
        """Leave an address out that refused; whether there is another one."""
        if address is None:
            return False
        if address is self._addresses[0]:
            if len(self._addresses) == 1:
                return False
            self._addresses.popleft()
        return True

    def _begun(self, sock: socket.socket, address: Address) -> socket.socket:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.stamps is not None:
            try:
                sock.setsockopt(socket.SOL_SOCKET, self.stamps, 1)
            except OSError:  # a kernel that cannot: gVisor, for one
                self.stamps = None
        sock.setblocking(False)
        with suppress(BlockingIOError):
            sock.connect(address.place)
        return sock


def allow(files: int) -> None:
    """Raise this process's limit of open files, as far as it may."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(files + 256, hard), hard))
