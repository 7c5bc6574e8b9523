"""The probe tells what a server is, and refuses what is no vLLM."""

from __future__ import annotations

import asyncio
import socket
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.facts.capabilities import CAPABILITIES
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.profile.model import Profile, ServerPart
from pytest_vllm.run import probe as probing
from pytest_vllm.run.probe import SIMULATED, SMALLEST_DEFAULT_SEQS, probe, serve_args
from tests.unit.fake_vllm import ADAPTER, BASE, COMPLETION, KEY, METRICS, FakeVLLM, models, refused, run
from tests.unit.wire.fake import Call, fake_server

if TYPE_CHECKING:
    from pytest_vllm.wire.server import Server


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
def test_a_vllm_is_described(path: str) -> None:
    server = run(FakeVLLM(), path=path)

    assert (server.version, server.model, server.models) == ("0.32.0", "org/m", ("org/m",))
    assert (server.max_model_len, server.max_num_seqs, server.simulated) == (4096, None, False)
    assert (server.profile, server.launcher) == ("p", "attach")
    assert tuple(server.capabilities) == CAPABILITIES
    assert [name for name in CAPABILITIES if server.can(name)] == [
        "chat", "completions", "stream", "tools", "tools.required", "structured-output", "logprobs",
        "prefix-cache", "metrics", "tokenize", "openapi", "version", "vision",
    ]  # fmt: skip
    assert all(capability.how for capability in server.capabilities.values())


def test_an_adapter_is_no_base_model() -> None:
    server = run(models(ADAPTER, BASE))

    assert (server.model, server.max_model_len) == ("base", 2048)
    assert server.models == ("adapter", "base")
    assert server.capabilities["lora"].how == "GET /v1/models lists the adapter adapter"
    assert server.can("lora")


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ({"served_model_name": "alias"}, "alias"),
        ({"args": {"served-model-name": ["alias", "base"]}}, "alias"),
        ({"args": {"served_model_name": "alias"}}, "alias"),
        ({"model": "alias"}, "alias"),
        ({"model": "org/unlisted"}, "base"),
        ({}, "base"),
    ],
)
def test_the_served_name(part: dict[str, Any], name: str) -> None:
    alias = {**BASE, "id": "alias", "max_model_len": 1024}
    server = run(models(BASE, alias), **part)

    assert server.model == name
    assert server.max_model_len == (1024 if name == "alias" else 2048)


@pytest.mark.parametrize(
    ("part", "limit"),
    [
        ({"args": {"max-num-seqs": 4}}, 4),
        ({"args": {"--max_num_seqs": "32"}}, 32),
        ({}, None),
        ({"launcher": "process"}, SMALLEST_DEFAULT_SEQS),
        ({"launcher": "process", "command": ["serve.sh"]}, None),
    ],
)
def test_how_many_sequences_it_batches(part: dict[str, Any], limit: int | None) -> None:
    assert run(FakeVLLM(), **part).max_num_seqs == limit


def test_a_version_that_a_proxy_hides_is_the_profiles() -> None:
    """What the server itself says comes first."""
    rules = {"GET /version": (404, b"?"), "GET /metrics": (404, b"?")}
    named, unnamed = run(FakeVLLM(rules), image="vllm/vllm-openai:v0.6.4"), run(FakeVLLM(rules))

    assert (named.version, named.api_only) == ("0.6.4", True)
    assert (unnamed.version, unnamed.api_only) == ("", True)
    assert run(FakeVLLM(), image="vllm/vllm-openai:v0.6.4").version == "0.32.0"
    assert not run(FakeVLLM()).api_only


def test_a_version_that_a_proxy_hides_is_told_by_answers() -> None:
    """Where none tells it, the server may be an old one and is held to what all have."""
    hidden = {"GET /version": (404, b"?")}
    told = {"POST /v1/chat/completions": (200, {**COMPLETION, "system_fingerprint": "vllm-0.27.1-a1b2c3d4"})}
    named, unnamed = run(FakeVLLM(hidden | told)), run(FakeVLLM(hidden))

    assert (named.version, named.nameless, named.at_least("0.28.0")) == ("0.27.1", False, False)
    assert (unnamed.version, unnamed.nameless) == ("", True)
    assert (unnamed.at_least("0.20.0"), unnamed.at_least("0.28.0")) == (True, False)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_a_proxy_keeps_from_clients_is_absent(status: int) -> None:
    kept = {f"GET {path}": (status, b"<html>no</html>") for path in ("/metrics", "/openapi.json")}

    server = run(FakeVLLM(kept))
    assert not any(server.can(name) for name in ("metrics", "openapi"))
    assert run(FakeVLLM(kept), launcher="process").can("metrics") is (status != 404)


def test_several_servers_that_answer_by_turns_have_no_counters() -> None:
    """What one of them counts or keeps says nothing of the next request."""
    starts = count(1)

    def metrics(_body: object) -> tuple[int, bytes]:
        return 200, f"{METRICS}process_start_time_seconds {next(starts) % 2}\n".encode()

    def scraped(rules: dict[str, Any], **part: Any) -> dict[str, bool]:
        server = run(FakeVLLM(rules), **part)
        return {name: server.can(name) for name in ("metrics", "prefix-cache", "version")}

    several = {"metrics": False, "prefix-cache": False, "version": True}
    assert scraped({"GET /metrics": metrics}) == several
    assert scraped({}) == dict.fromkeys(several, True)
    assert scraped({"GET /metrics": metrics}, launcher="process") == dict.fromkeys(several, True)


def test_the_simulator_says_so() -> None:
    sim = FakeVLLM()
    sim.headers = {SIMULATED: "1"}

    assert run(sim).simulated
    assert run(FakeVLLM(), launcher="sim").simulated


def test_the_key_is_used_and_auth_is_noticed() -> None:
    server = run(FakeVLLM(key=KEY), key=KEY)

    assert server.can("chat")
    assert server.capabilities["auth"].present
    assert server.capabilities["auth"].how == "GET /v1/models without a key: 401 Unauthorized"
    assert server.api_key == KEY
    assert KEY not in repr(server)


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(BootError) as caught:
        asyncio.run(probe(url, Profile(name="p", server=ServerPart(launcher="attach"))))

    assert caught.value.what == f"nothing answers at {url}"
    assert caught.value.evidence[0].endswith("connection refused")
    assert caught.value.try_


def test_a_server_that_hangs_up() -> None:
    error = refused(FakeVLLM({"GET /v1/models": (None, None)}))

    assert error.what.endswith("does not answer")
    assert "connection closed" in error.evidence[0]


def test_a_key_is_wanted() -> None:
    error = refused(FakeVLLM(key=KEY))

    assert error.what.endswith("wants an API key")
    assert error.evidence[0].endswith('/v1/models: 401 {"error": "Unauthorized"}')
    assert any("VLLM_API_KEY" in step for step in error.try_)


def test_a_key_is_refused() -> None:
    wrong = "token-wrong-123"
    error = refused(FakeVLLM(key=KEY), key=wrong)

    assert error.what.endswith("refuses the API key")
    assert wrong not in f"{error.what}{error.evidence}{error.try_}"


def test_a_server_of_ours_that_refuses_its_own_key_is_at_fault() -> None:
    server = run(FakeVLLM(key=KEY), key="token-wrong-123", launcher="process", model="org/m")

    assert server.can("chat")
    assert server.capabilities["chat"].how == "trial request: 401 Unauthorized"


@pytest.mark.parametrize(
    "rules",
    [
        {"GET /v1/models": (200, b"<html><title>nginx</title></html>")},
        {"GET /v1/models": (200, {"data": [{"id": "x", "owned_by": "llamacpp"}]})},
        {"GET /v1/models": (200, [])},
        {"GET /v1/models": (404, {"detail": "Not Found"})},
    ],
)
def test_another_product_is_no_vllm(rules: dict[str, Any]) -> None:
    other = FakeVLLM({"GET /version": (404, b"?"), "GET /metrics": (200, b"llamacpp:x 1\n"), **rules})
    other.headers = {"server": "nginx/1.25"}
    error = refused(other)

    assert error.what.endswith("is not a vLLM")
    assert error.evidence[0].startswith("GET /v1/models: ")
    assert "server header: nginx/1.25" in error.evidence
    assert error.try_


@pytest.mark.parametrize(
    "rules",
    [
        {"GET /v1/models": (500, b"boom")},
        {"GET /v1/models": (200, b"{oops")},
        {"GET /v1/models": (200, {"data": []})},
        {"GET /v1/models": (200, {"data": [{}]})},
        {"GET /version": (500, b"boom")},
        {"GET /metrics": (500, b"boom")},
        {"GET /version": (200, {"version": 32}), "GET /metrics": (404, b"")},
    ],
)
def test_a_faulty_vllm_is_still_probed(rules: dict[str, Any]) -> None:
    server = run(FakeVLLM(rules), launcher="process", model="org/m")

    assert server.model == "org/m"
    assert server.can("chat")


def test_a_model_must_be_known() -> None:
    error = refused(models())

    assert error.what.endswith("does not say which model it serves")


def test_another_deployment_is_not_verified_by_mistake() -> None:
    error = refused(FakeVLLM(), served_model_name="qwen3")

    assert error.what.endswith("does not serve qwen3")
    assert error.evidence == ("GET /v1/models lists: org/m",)


def test_arguments_are_spelled_one_way() -> None:
    assert serve_args({"--max_model_len": 1, "tool-call-parser": "x"}) == {
        "max-model-len": 1,
        "tool-call-parser": "x",
    }


def test_what_comes_first_comes_before_anything_is_generated() -> None:
    fake, order = FakeVLLM(), []
    profile = Profile(name="p", server=ServerPart(launcher="process"))

    async def handler(call: Call) -> None:
        order.append(call.line.split(" ")[0])
        await fake(call)

    async def first(server: Server) -> None:
        assert server.model == "org/m"
        order.append("first")

    async def probed() -> None:
        async with fake_server(handler) as served:
            await probe(served.url, profile, first=first)

    asyncio.run(probed())

    assert "POST" in order[order.index("first") :]
    assert "POST" not in order[: order.index("first")]


@pytest.mark.parametrize("odd", ["", "m\ud800x", "m" * 5000, 7, ["a"], None, {"a": 1}])
def test_an_odd_entry_is_not_a_model(odd: object) -> None:
    """Neither requests nor reports could carry such a name."""
    rows = [None, 5, {"id": odd, "owned_by": "vllm"}, {**BASE, "max_model_len": True}]
    rules = {"GET /v1/models": (200, {"data": rows}), "GET /version": (200, {"version": odd})}

    server = run(FakeVLLM(rules))

    assert (server.models, server.model) == (("base",), "base")
    assert (server.max_model_len, server.version) == (None, "")


def test_the_description_of_the_api_is_handed_on() -> None:
    seen: list[str] = []

    async def probed() -> None:
        async with fake_server(FakeVLLM()) as fake:
            profile = Profile(name="p", server=ServerPart(launcher="attach"))
            await probe(fake.url, profile, described=lambda answer: seen.append(answer.request.path))

    asyncio.run(probed())

    assert seen == ["/openapi.json"]


DEAD = (500, {"error": {"message": "EngineCore encountered an issue"}})
DEATH = BootError("the server ended at its first requests")


def test_an_engine_that_dies_of_the_first_request_is_a_failed_start() -> None:
    """Its server answers on for a moment; what it lacks then it may have had."""
    looks = iter([None, DEATH])
    dead = FakeVLLM({"POST /v1/chat/completions": DEAD, "POST /v1/completions": DEAD})

    assert refused(dead, ended=lambda: next(looks)) is DEATH


@pytest.mark.parametrize("chat", [DEAD, (200, COMPLETION), (400, {"error": {"message": "no"}})])
def test_a_server_that_lives_is_described(monkeypatch: pytest.MonkeyPatch, chat: Any) -> None:
    """Nobody waits for the death of one that answers."""
    monkeypatch.setattr(probing, "DYING", 0.0)
    completions = chat if chat == DEAD else (200, {})
    server = run(FakeVLLM({"POST /v1/chat/completions": chat, "POST /v1/completions": completions}))

    assert server.version == "0.32.0"


def test_one_that_answers_is_not_asked_whether_it_has_ended() -> None:
    assert run(FakeVLLM(), ended=lambda: DEATH).version == "0.32.0"
