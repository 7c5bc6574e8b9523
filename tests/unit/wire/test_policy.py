"""Which way leads to a server: the proxy, the base path, the unix socket, as data."""

from __future__ import annotations

import pytest

from pytest_vllm.wire.failure import Failure, TransportError
from pytest_vllm.wire.policy import Access, Route, route_to

PROXY = "http://proxy.corp:3128"


def way(url: str, access: Access | None = None, **environ: str) -> Route:
    """The route in an environment of these variables alone."""
    return route_to(url, access, environ)


@pytest.mark.parametrize(
    ("url", "environ", "source"),
    [
        ("http://spark:8000", {"http_proxy": PROXY}, "http_proxy"),
        ("http://spark:8000", {"HTTP_PROXY": PROXY}, "HTTP_PROXY"),
        ("http://spark:8000", {"http_proxy": "proxy.corp:3128"}, "http_proxy"),
        ("http://spark:8000", {"https_proxy": PROXY}, None),
        ("https://spark", {"https_proxy": PROXY}, "https_proxy"),
        ("https://spark", {"all_proxy": PROXY}, "all_proxy"),
        ("http://spark:8000", {"http_proxy": "", "HTTP_PROXY": PROXY}, None),
        ("http://127.0.0.1:8000", {"http_proxy": PROXY}, None),
        ("http://127.8.9.1:8000", {"http_proxy": PROXY}, None),
        ("http://[::1]:8000", {"http_proxy": PROXY}, None),
        ("http://[::ffff:127.0.0.1]:8000", {"http_proxy": PROXY}, None),
        ("http://0.0.0.0:8000", {"http_proxy": PROXY}, None),
        ("http://localhost:8000", {"all_proxy": PROXY}, None),
        ("http://LOCALHOST:8000", {"all_proxy": PROXY}, None),
        ("http://api.localhost:8000", {"all_proxy": PROXY}, None),
        ("unix:/run/vllm.sock", {"http_proxy": PROXY, "all_proxy": PROXY}, None),
    ],
)
def test_the_environment_names_a_proxy(url: str, environ: dict[str, str], source: str | None) -> None:
    """As curl reads it, and never for this machine itself."""
    found = route_to(url, None, environ).proxy

    assert (found.source if found else None) == source
    assert not found or (found.host, found.port) == ("proxy.corp", 3128)


@pytest.mark.parametrize(
    ("host", "no_proxy", "past"),
    [
        ("spark", "spark", True),
        ("spark", "*", True),
        ("a.corp", "corp", True),
        ("a.corp", ".corp", True),
        ("a.corp", "*.corp", True),
        ("corp", ".corp", True),
        ("acorp", "corp", False),
        ("A.Corp", "b.corp, a.CORP", True),
        ("a.corp", "b.corp c.corp", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "10.1.2.3", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("10.1.2.3", "2.3", False),
        ("spark", "spark:8000", True),
        ("spark", "spark:8001", False),
        ("[fd00::1]", "fd00::/16", True),
        ("[fd00::1]", "[fd00::1]:8000", True),
        ("[fd00::1]", "fd00::2", False),
        ("spark", "", False),
        ("spark", ",,", False),
        ("a.corp.", "corp", True),
    ],
)
def test_no_proxy_names_who_is_reached_past_it(host: str, no_proxy: str, past: bool) -> None:
    """Names and all below them, addresses, networks, each with a port or not."""
    assert (way(f"http://{host}:8000", http_proxy=PROXY, NO_PROXY=no_proxy).proxy is None) is past


def test_what_is_asked_for_counts_for_every_address() -> None:
    """The loopback too, whatever the environment says; `none` is none."""
    asked = way("http://127.0.0.1:1", Access(proxy="http://other:1"), http_proxy=PROXY, no_proxy="*").proxy

    assert asked
    assert (asked.host, asked.port) == ("other", 1)
    assert way("http://spark:8000", Access(proxy="none"), http_proxy=PROXY).proxy is None


@pytest.mark.parametrize("url", ["socks5://s:1080", "https://s:3128", "http://:3128", "http://s:port"])
def test_a_proxy_that_cannot_be_spoken_to_is_said_to_be_at_fault(url: str) -> None:
    """With the variable that names it."""
    with pytest.raises(TransportError, match="all_proxy") as caught:
        way("http://spark:8000", all_proxy=url)

    assert caught.value.failure is Failure.PROXY


def test_a_login_goes_to_the_proxy_and_into_no_message() -> None:
    """For a tunnel in CONNECT, for plain HTTP in every request."""
    plain = way("http://spark:8000", http_proxy="http://me:p%40ss@proxy:3128")

    assert plain.fields == (("proxy-authorization", "Basic bWU6cEBzcw=="),)
    assert "p@ss" not in repr(plain)
    assert "bWU6" not in repr(plain)
    assert str(plain.proxy) == "http://proxy:3128 (http_proxy)"
    assert way("https://spark", https_proxy="http://me:x@proxy").fields == ()


@pytest.mark.parametrize(
    ("url", "lead", "authority", "where"),
    [
        ("http://spark:8000", "", "spark:8000", "spark:8000"),
        ("http://spark/", "", "spark", "spark:80"),
        ("https://spark/llm/", "/llm", "spark", "spark:443"),
        ("http://[::1]:8000/a/b", "/a/b", "[::1]:8000", "[::1]:8000"),
        ("unix:/run/vllm.sock", "", "localhost", "/run/vllm.sock"),
        ("unix:///run/vllm.sock:/llm/", "/llm", "localhost", "/run/vllm.sock"),
        ("http://bücher.example", "", "xn--bcher-kva.example", "xn--bcher-kva.example:80"),
    ],
)
def test_base_paths_and_sockets(url: str, lead: str, authority: str, where: str) -> None:
    """What stands in the request line, in the Host field, and what is connected to."""
    route = way(url)

    assert (route.lead, route.authority, route.where) == (lead, authority, where)


def test_a_plain_proxy_is_given_the_whole_url() -> None:
    """And a tunnel is not."""
    assert way("http://spark:8000/llm", http_proxy=PROXY).lead == "http://spark:8000/llm"
    assert way("https://spark/llm", https_proxy=PROXY).lead == "/llm"


@pytest.mark.parametrize("url", ["ftp://x", "http://", "unix:relative.sock", "spark:8000"])
def test_what_is_not_the_url_of_a_server(url: str) -> None:
    """Nothing is guessed here."""
    with pytest.raises(ValueError, match=r"not"):
        way(url)
