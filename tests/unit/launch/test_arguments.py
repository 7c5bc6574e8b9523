"""From a profile to a command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_vllm.launch.arguments import api_key, flag, order_for, program_of
from pytest_vllm.launch.protocol import BootError, LaunchContext
from pytest_vllm.profile.model import Profile, ServerPart

ENVIRON = {"MY_KEY": "sk-planted-1", "HF_TOKEN": "hf-planted-2"}
CONTEXT = LaunchContext("run", Path("/nowhere"), 1, environ=ENVIRON)


def profile(**server: Any) -> Profile:
    """One with these entries of `[server]`."""
    return Profile(name="p", server=ServerPart.model_validate({"model": "org/m", **server}))


def words(served: Profile, *, positional: bool = True) -> list[str]:
    """Its arguments."""
    return list(order_for(served, CONTEXT, host="127.0.0.1", port=8123, positional=positional).arguments)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("max-model-len", 4096, ["--max-model-len", "4096"]),
        ("gpu-memory-utilization", 0.9, ["--gpu-memory-utilization", "0.9"]),
        ("kv-cache-dtype", "fp8", ["--kv-cache-dtype", "fp8"]),
        ("enforce-eager", True, ["--enforce-eager"]),
        ("enable-prefix-caching", False, ["--no-enable-prefix-caching"]),
        (
            "speculative-config",
            {"method": "ngram", "k": [1]},
            ["--speculative-config", '{"method":"ngram","k":[1]}'],
        ),
        ("logits-processors", ["a:B", "c:D"], ["--logits-processors", "a:B", "c:D"]),
        ("cudagraph-capture-sizes", [1, 2, 4], ["--cudagraph-capture-sizes", "1", "2", "4"]),
        ("lora-modules", [{"name": "x"}], ["--lora-modules", '{"name":"x"}']),
        ("allowed-origins", ["*"], ["--allowed-origins", '["*"]']),
        ("middleware", ["a", "b"], ["--middleware", "a", "--middleware", "b"]),
        ("disable-access-log-for-endpoints", ["/a", "/b"], ["--disable-access-log-for-endpoints", "/a,/b"]),
        ("compilation-config.mode", 3, ["--compilation-config.mode", "3"]),
        ("q", "awq", ["-q", "awq"]),
    ],
)
def test_flags(name: str, value: Any, expected: list[str]) -> None:
    """Each kind of value as vLLM's parser takes it."""
    assert list(flag(name, value)) == expected


def test_empty_list_is_refused() -> None:
    """No command line can say it."""
    with pytest.raises(BootError, match="cudagraph-capture-sizes is an empty list"):
        list(flag("cudagraph-capture-sizes", []))


def test_model_stands_first_for_serve_and_is_named_for_a_module() -> None:
    """`vllm serve M` and `python -m … --model M`."""
    assert words(profile())[:1] == ["org/m"]
    assert words(profile(), positional=False)[:2] == ["--model", "org/m"]


def test_launcher_decides_host_and_port() -> None:
    """Those of the profile are the published ones."""
    found = words(profile(args={"host": "0.0.0.0", "port": 8000}))  # noqa: S104 - what profiles say

    assert found == ["org/m", "--host", "127.0.0.1", "--port", "8123"]


def test_served_name() -> None:
    """From either place, one name or several."""
    assert "--served-model-name n" in " ".join(words(profile(served_model_name="n")))
    assert "--served-model-name a b" in " ".join(words(profile(args={"served-model-name": ["a", "b"]})))


def test_api_key_travels_in_the_environment() -> None:
    """Named in either place, by reference or not: never an argument."""
    for served in (
        profile(api_key={"from-env": "MY_KEY"}),
        profile(args={"api-key": {"from-env": "MY_KEY"}}),
    ):
        order = order_for(served, CONTEXT, host="h", port=1, positional=True)

        assert order.env == {"VLLM_API_KEY": "sk-planted-1"}
        assert "planted" not in " ".join(order.arguments)
        assert "planted" not in repr(order)


def test_secrets_of_the_environment() -> None:
    """Filled in, remembered to be hidden, and left out where the environment is."""
    served = profile(env={"HF_TOKEN": {"from-env": "HF_TOKEN"}, "PLAIN": "1"})
    order = order_for(served, CONTEXT, host="h", port=1, positional=True)
    without = order_for(served, CONTEXT, host="h", port=1, positional=True, with_env=False)

    assert order.env == {"HF_TOKEN": "hf-planted-2", "PLAIN": "1"}
    assert order.secrets == ("hf-planted-2",)
    assert without.env == {}


def test_secret_on_a_command_line_is_hidden_when_shown() -> None:
    """Several keys can only be given there."""
    served = profile(args={"api-key": ["sk-planted-3", "sk-planted-4"], "enforce-eager": True})
    order = order_for(served, CONTEXT, host="h", port=1, positional=True)

    assert "sk-planted-4" in order.arguments
    assert order.shown(["vllm", "serve"]) == (
        "vllm serve org/m --enforce-eager --api-key *** *** --host h --port 1"
    )


def test_missing_secret_is_told() -> None:
    """By the name of its variable and the place that names it."""
    served = profile(env={"HF_TOKEN": {"from-env": "NOT_SET"}})
    with pytest.raises(BootError) as caught:
        order_for(served, CONTEXT, host="h", port=1, positional=True)

    assert caught.value.what == (
        "[server.env] HF_TOKEN is taken from the environment variable NOT_SET, which is not set"
    )
    assert caught.value.try_ == ("export NOT_SET=…",)


def test_key_for_requests() -> None:
    """The profile's, else the one that vLLM itself would read."""
    assert api_key(profile(api_key={"from-env": "MY_KEY"}), ENVIRON) == "sk-planted-1"
    assert api_key(profile(args={"api-key": {"from-env": "MY_KEY"}}), ENVIRON) == "sk-planted-1"
    assert api_key(profile(), {"VLLM_API_KEY": "k"}) == "k"
    assert api_key(profile(), {}) is None


@pytest.mark.parametrize(
    ("server", "program", "positional"),
    [
        ({}, ("vllm", "serve"), True),
        ({"command": ["/venv/bin/vllm", "serve"]}, ("/venv/bin/vllm", "serve"), True),
        (
            {"command": ["python", "-m", "vllm.entrypoints.openai.api_server"]},
            ("python", "-m", "vllm.entrypoints.openai.api_server"),
            False,
        ),
        ({"entrypoint": ["nice"], "command": ["vllm", "serve"]}, ("nice", "vllm", "serve"), True),
    ],
)
def test_program(server: dict[str, Any], program: tuple[str, ...], positional: bool) -> None:
    """What starts it, and how it takes the model."""
    assert program_of(profile(**server)) == (program, positional)


@pytest.mark.parametrize(
    ("environ", "env", "secrets"),
    [
        (ENVIRON, {"HF_TOKEN": "hf-planted-2"}, ("hf-planted-2",)),
        ({}, {}, ()),
        ({"HF_TOKEN": ""}, {}, ()),
    ],
)
def test_an_optional_secret_is_left_out_where_it_is_not_set(
    environ: dict[str, str], env: dict[str, str], secrets: tuple[str, ...]
) -> None:
    """The server starts without it; one that it needs is still asked for."""
    context = LaunchContext("run", Path("/nowhere"), 1, environ=environ)
    served = profile(env={"HF_TOKEN": {"from-env": "HF_TOKEN", "optional": True}})
    order = order_for(served, context, host="127.0.0.1", port=8123, positional=True)
    assert (order.env, order.secrets) == (env, secrets)
