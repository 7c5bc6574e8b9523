"""The way to a profile's server, and what a boot error says when something on it is at fault."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pytest_vllm.launch.protocol import BootError
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.policy import Access

if TYPE_CHECKING:
    from pytest_vllm.profile.model import Profile


def access_of(profile: Profile) -> Access:
    """What the profile says about the way to its server; `~` is this user's home."""
    tls = profile.server.tls
    return Access(_file(tls.ca), _file(tls.certificate), _file(tls.key), profile.server.proxy or "")


def _file(given: str | None) -> str:
    return str(Path(given).expanduser()) if given else ""


def fault_of(failure: Failure, words: str, url: str) -> BootError:
    """The proxy or TLS is at fault, and not the server."""
    host = urlsplit(url).hostname or "HOST"
    if failure is Failure.PROXY:
        return BootError(
            f"the proxy in front of {url} is at fault",
            evidence=(words,),
            means="no request reached the server, so nothing is known about it",
            try_=(
                f"without the proxy: NO_PROXY={host}, or --vllm-proxy=none",
                "name another one: --vllm-proxy=http://HOST:PORT",
            ),
        )
    what, _, step = words.rpartition("; ")
    return BootError(
        f"TLS with {url} is refused",
        evidence=(what or words,),
        means="the connection stands, but the two ends do not trust or understand each other",
        try_=(step,) if what else (f"curl -v {url}/health",),
    )
