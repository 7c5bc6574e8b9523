"""Two servers in one run: which the older one is, and what cannot stand beside it."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from pytest_vllm.face.older import Older
from pytest_vllm.face.profiles import load_older
from pytest_vllm.launch.access import access_of
from pytest_vllm.launch.arguments import request_key
from pytest_vllm.launch.attach import base_url, check_reachable
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.wire.ask import ask
from pytest_vllm.wire.failure import TransportError
from pytest_vllm.wire.policy import UNIX, route_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.face.options import Options
    from pytest_vllm.profile.model import Profile

#: Seconds for a server to name its models.
_NAMES = 5.0


def older_of(config: pytest.Config, options: Options, profiles: Mapping[str, Profile]) -> Older:
    """The server that this run is compared with. Raises pytest.UsageError where nothing can be compared."""
    given = {
        "--vllm-against": options.against,
        "--vllm-against-url": options.against_url,
        "--vllm-against-image": options.against_image,
    }
    named = [name for name, value in given.items() if value]
    if len(named) > 1:
        raise pytest.UsageError(f"{' and '.join(named)} name two older servers: a run is compared with one")
    option = f"{named[0]}={given[named[0]]}"
    if len(profiles) != 1:
        raise pytest.UsageError(
            f"{option} compares one server with another, and this run is of {', '.join(profiles)}: run it "
            "once for each profile"
        )
    if options.baseline is not None:
        raise pytest.UsageError(
            f"{option} and --vllm-baseline={options.baseline} both say what was before: leave one of them out"
        )
    if _distributed(config):
        raise pytest.UsageError(
            f"{option} judges two servers in one process, and xdist workers know only one: run without -n"
        )
    (newer,) = profiles.values()
    older = load_older(options, config.rootpath, newer)
    assert older is not None  # noqa: S101 - one is named
    _refuse_image(options, older)
    _refuse_same(option, older, newer)
    _refuse_other_name(option, _said(older), _said(newer))
    return Older(older, together=_together(older, newer))


def refuse_other_models(older: Profile, newer: Profile) -> None:
    """Raise pytest.UsageError where both run already and serve two models, before either is asked much."""
    _refuse_other_name(older.server.url or older.name, _served(older), _served(newer))


def answers(profile: Profile) -> bool:
    """Whether a server that is to run already is there; one that is to be started may still come."""
    if profile.server.kind.starts or not profile.server.url:
        return True
    try:
        check_reachable(base_url(profile.server.url), access_of(profile))
    except BootError:
        return False
    return True


def _distributed(config: pytest.Config) -> bool:
    option = config.option
    return bool(getattr(option, "numprocesses", None) or getattr(option, "tx", None))


def _refuse_image(options: Options, older: Profile) -> None:
    kind = older.server.kind
    if options.against_image and not (kind.container or kind.simulated):
        raise pytest.UsageError(
            f"--vllm-against-image={options.against_image}: {older.server.launcher} starts no image; name "
            "the older server by --vllm-against-url=URL or --vllm-against=PROFILE"
        )


def _refuse_same(option: str, older: Profile, newer: Profile) -> None:
    if any(one.server.kind.starts or not one.server.url for one in (older, newer)):
        return
    one, other = older.server.url or "", newer.server.url or ""
    try:
        same = _places(base_url(one)) & _places(base_url(other))
    except BootError as error:
        raise pytest.UsageError(f"{option}: {error}") from None
    if same:
        raise pytest.UsageError(
            f"{option} is the server under test itself ({other}): nothing would be compared; give the URL of "
            "the older one"
        )


def _places(url: str) -> set[tuple[str, ...]]:
    """Where a URL leads, with every address of its host: two URLs that share one reach one server."""
    if url.startswith(UNIX):
        path, _, prefix = url.removeprefix(UNIX).partition(":")
        return {(UNIX, str(Path(path).resolve()), prefix)}
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = (parts.hostname or "").lower()
    try:
        found = {str(row[4][0]) for row in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        found = set()
    return {(address, str(port), parts.path) for address in (*found, host)}


def _refuse_other_name(option: str, older: str, newer: str) -> None:
    if older and newer and older != newer:
        raise pytest.UsageError(
            f"{option} serves the model {older}, the server under test {newer}: two models are not compared; "
            "give a server of the same model (served-model-name gives both one name)"
        )


def _said(profile: Profile) -> str:
    """The name that a server which is to be started will serve its model under; empty of one that runs."""
    server = profile.server
    return (server.served_model_name or server.model) if server.kind.starts else ""


def _served(profile: Profile) -> str:
    """The first name that a running server serves; empty where it is not known, which the start explains."""
    if profile.server.kind.starts or not profile.server.url:
        return _said(profile)
    try:
        route = route_to(base_url(profile.server.url), access_of(profile))
        answer = ask(route, "/v1/models", timeout=_NAMES, key=request_key(profile, os.environ))
        return str(json.loads(answer.text)["data"][0]["id"])
    except (BootError, TransportError, OSError, ValueError, LookupError, TypeError):
        return ""


def _together(older: Profile, newer: Profile) -> bool:
    """Whether both may live at once: at most one of them needs this machine, or both say that they fit."""
    heavy = [one for one in (older, newer) if one.server.kind.starts_vllm]
    return len(heavy) < 2 or all(one.server.side_by_side for one in heavy)
