"""The host that a driver speaks to: its addresses, and sockets to them as the driver needs them."""

from __future__ import annotations

import socket
import ssl
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

#: SO_TIMESTAMPNS: the kernel tells when bytes came in. It begins to take the time some milliseconds after the
#: first socket asked for it; what comes before that has the moment of its reading.
_STAMPS = 35 if sys.platform == "linux" else None
#: Seconds to connect and to agree on TLS.
TLS_WITHIN = 10.0


@dataclass(frozen=True, eq=False)
class Address:
    """One of a host's addresses, as the system's resolver gives it."""

    family: int
    place: Any


class Host:
    """Where a URL leads.

    Args:
        url: scheme, host and port; a path is left out.
        stamps: whether to ask for the kernel's times where there are some.

    `tls` is None where it speaks none, `stamps` where its sockets tell no times.
    """

    def __init__(self, url: str, *, stamps: bool = True) -> None:
        """Nothing is connected. Raises OSError when the host has no address, ValueError when it is no URL."""
        parts = urlsplit(url)
        self.name = parts.hostname or "localhost"
        self.port = parts.port or (443 if parts.scheme == "https" else 80)
        self.tls = ssl.create_default_context() if parts.scheme == "https" else None
        self.stamps = _STAMPS if stamps and self.tls is None else None
        found = socket.getaddrinfo(self.name, self.port, type=socket.SOCK_STREAM)
        #: In the resolver's order; one that refuses is left out as long as there are others.
        self._addresses = deque(Address(one[0], one[4]) for one in found)

    def reach(self) -> tuple[socket.socket, Address]:
        """A socket that is being connected (with TLS: connected), and where to. Raises OSError.

        At the first address that does not refuse at once.
        """
        while True:
            address = self._addresses[0]
            sock = socket.socket(address.family, socket.SOCK_STREAM)
            try:
                return self._begun(sock, address), address
            except OSError:
                sock.close()
                if not self.without(address):
                    raise

    def without(self, address: Address) -> bool:
        """Leave an address out that refused; whether there is another one."""
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
        if self.tls is not None:
            sock.settimeout(TLS_WITHIN)
            sock.connect(address.place)
            sock = self.tls.wrap_socket(sock, server_hostname=self.name)
            sock.setblocking(False)
        else:
            sock.setblocking(False)
            with suppress(BlockingIOError):
                sock.connect(address.place)
        return sock
