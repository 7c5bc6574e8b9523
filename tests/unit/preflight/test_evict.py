"""Tenants are told of, and unloaded only when that is asked for, against servers on the loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.preflight import evict
from pytest_vllm.preflight.evict import make_room, shares_memory
from pytest_vllm.preflight.inspect import find_tenants, usual_ports
from pytest_vllm.profile.model import Profile, ServerPart
from tests.launched.ollama import MODELS, Answers, Ollama, running

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def ollama(request: pytest.FixtureRequest) -> Iterator[Ollama]:
    """One that runs; `indirect` parameters make it behave badly."""
    with running(**getattr(request, "param", {})) as server:
        yield server


def room(server: Ollama, *, evict: bool) -> list[str]:
    said: list[str] = []
    make_room(said.append, evict=evict, ports={"ollama": [server.port]})
    return said


def test_without_the_option_it_is_only_told(ollama: Ollama) -> None:
    """With what is loaded, how much it holds, the command that unloads each, and the option."""
    (line,) = room(ollama, evict=False)

    assert line.startswith(
        f"ollama at http://127.0.0.1:{ollama.port} (qwen3:32b, o'hara/llama3.2:3b, 2.0 GiB)"
    )
    assert """-d '{"model": "qwen3:32b", "keep_alive": 0}'""" in line
    assert "o'\"'\"'hara" in line
    assert "--vllm-evict-tenants" in line
    assert ollama.asked == []
    assert ollama.loaded == list(MODELS)


def test_with_the_option_every_model_is_unloaded(ollama: Ollama) -> None:
    """By the request that the guides teach, and it is gone from `/api/ps` before the start goes on."""
    said = room(ollama, evict=True)

    assert ollama.asked == [("/api/generate", {"model": name, "keep_alive": 0}) for name in MODELS]
    assert find_tenants({"ollama": [ollama.port]}) == ()
    assert said == [f"{name} of ollama at http://127.0.0.1:{ollama.port} was unloaded" for name in MODELS]


@pytest.mark.parametrize("ollama", [{"stubborn": True}], indirect=True)
def test_a_model_that_stays_is_told(ollama: Ollama, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer alone proves nothing."""
    monkeypatch.setattr(evict, "GONE", 0.1)

    assert "could not be unloaded: /api/ps still lists it" in room(ollama, evict=True)[0]


@pytest.mark.parametrize("ollama", [{"refuses": True}], indirect=True)
def test_a_refusal_is_told(ollama: Ollama) -> None:
    """In the server's words."""
    assert "could not be unloaded: it answered 404" in room(ollama, evict=True)[0]


def test_other_tenants_are_never_touched() -> None:
    """llama.cpp and vLLM have no polite way: the person is told how to stop them."""

    class Llama(Answers):
        def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
            self._answer(200, {"total_slots": 1, "model_path": "/m/qwen3-32b-q5_k_m.gguf"})

    with running() as server:
        server.RequestHandlerClass = Llama
        said: list[str] = []
        (tenant,) = make_room(said.append, evict=True, ports={"llama.cpp": [server.port]})

        assert tenant.kind == "llama.cpp"
        assert server.asked == []
        assert f"publish={server.port}" in said[0]
        assert "qwen3-32b-q5_k_m.gguf" in said[0]
        assert "--vllm-evict-tenants" not in said[0]


@pytest.mark.parametrize(
    ("launcher", "hardware", "shares"),
    [
        ("docker", "gb10", True),
        ("process", "", True),
        ("podman", "rtx5090", True),
        ("docker", "cpu", False),
        ("sim", "gb10", False),
        ("attach", "gb10", False),
    ],
)
def test_who_shares_memory(launcher: str, hardware: str, shares: bool) -> None:
    """Servers that are started here, on an accelerator."""
    profile = Profile(name="x", hardware=hardware, server=ServerPart.model_validate({"launcher": launcher}))

    assert shares_memory(profile) is shares


@pytest.mark.parametrize(
    ("told", "ports"),
    [
        ("", (11434,)),
        ("127.0.0.1:11500", (11434, 11500)),
        ("http://localhost:11500/", (11434, 11500)),
        (":11500", (11434, 11500)),
        ("10.0.0.7", (11434,)),
        ("10.0.0.7:11500", (11434,)),
        ("localhost:port", (11434,)),
        ("localhost:11434", (11434,)),
    ],
)
def test_ollama_is_looked_for_where_its_own_variable_says(told: str, ports: tuple[int, ...]) -> None:
    """On this machine alone."""
    assert usual_ports({"OLLAMA_HOST": told})["ollama"] == ports
