"""A URL that could hold a secret is refused, and no refusal repeats it."""

from __future__ import annotations

import pytest

from pytest_vllm.profile.values import proxy, server_url

CARRYING = [
    ("http://me:planted@spark:8000", "a login"),
    ("me:planted@spark", "a login"),
    ("http://planted@spark", "a login"),
    ("http:/me:planted@spark", "a login"),
    ("https:\\\\me:planted@spark", "a login"),
    ("http://me:pla/planted@spark", "a login"),
    ("http://me:planted%40spark", "a login"),
    ("http://[me:planted@spark", "a login"),
    ("http://me\u2100:planted@spark", "a login"),
    ("http://spark/v1?api_key=planted", "a query"),
    ("http://spark/v1%3Ftoken=planted", "a query"),
    ("http://spark/?planted", "a query"),
    ("http://spark/#token=planted", "a fragment"),
    ("http://spark/v1;key=planted", "a parameter"),
    ("http://spark/api_key=planted", "a parameter"),
]


@pytest.mark.parametrize(("url", "carried"), CARRYING)
def test_a_servers_url_that_carries_a_secret(url: str, carried: str) -> None:
    with pytest.raises(ValueError, match=f"it carries {carried}") as refused:
        server_url(url)

    assert "planted" not in str(refused.value)


@pytest.mark.parametrize(
    "url", [url for url, _ in CARRYING] + ["http://[planted", "planted:1", "ftp://planted"]
)
def test_a_proxy_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ValueError, match=r"login|it carries|HOST:PORT") as refused:
        proxy(url)

    assert "planted" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        None,
        "spark",
        "spark:8000",
        "http://spark:8000/",
        "https://spark.example.org/team/llama-3.1_8b/v1",
        "http://[::1]:8000",
        "http://[fe80::1%25eth0]:8000",
        "https://gateway/models/meta%2Dllama",
        "unix:/run/vllm.sock",
        "unix:/run/user@1000/vllm.sock",
    ],
)
def test_a_plain_url_is_taken_as_it_is(url: str | None) -> None:
    assert server_url(url) == url
