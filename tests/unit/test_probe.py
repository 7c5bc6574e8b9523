"""The probe tells what a server is and can do, and refuses what is no vLLM."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.capabilities import PROBES, grey_png
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.probe import SIMULATED, SMALLEST_DEFAULT_SEQS, probe, serve_args
from pytest_vllm.profile.model import Profile, ServerPart
from pytest_vllm.target import CAPABILITIES, Server
from tests.unit.wire.fake import Call, fake_server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

KEY = "token-0123456789"
METRICS = (
    "vllm:num_requests_running 0.0\n"
    'vllm:cache_config_info{block_size="16",enable_prefix_caching="True"} 1.0\n'
)
COMPLETION = {"object": "chat.completion", "choices": [{"message": {"content": "Hi"}}], "usage": {}}


class FakeVLLM:
    """Answers as a vLLM does. A rule is (status, body) or a function of the call and its JSON body."""

    def __init__(self, rules: Mapping[str, Any] | None = None, *, key: str | None = None) -> None:
        self.key = key
        self.headers: dict[str, str] = {}
        self.rules: dict[str, Any] = {
            "GET /v1/models": (200, {"data": [{"id": "org/m", "owned_by": "vllm", "max_model_len": 4096}]}),
            "GET /version": (200, {"version": "0.32.0"}),
            "GET /metrics": (200, METRICS.encode()),
            "GET /openapi.json": (200, {"paths": {"/v1/chat/completions": {}}}),
            "POST /v1/chat/completions": (200, COMPLETION),
            "POST /v1/completions": (200, {}),
            "POST /tokenize": (200, {}),
        } | dict(rules or {})

    async def __call__(self, call: Call) -> None:
        method, path, _ = call.line.split(" ")
        guarded = self.key is not None and path.startswith("/v1")
        if guarded and call.header("authorization") != f"Bearer {self.key}":
            await call.answer({"error": "Unauthorized"}, 401)
            return
        rule = self.rules.get(f"{method} {path}", (404, {"detail": "Not Found"}))
        status, body = rule(json.loads(call.body)) if callable(rule) else rule
        if status is None:
            return  # closes without a word
        await call.answer(body, status, **self.headers)


def run(
    handler: Callable[[Call], Awaitable[None]], *, key: str | None = None, path: str = "", **server: Any
) -> Server:
    profile = Profile(name="p", server=ServerPart(**({"launcher": "attach"} | server)))

    async def probed() -> Server:
        async with fake_server(handler) as fake:
            found = await probe(fake.url + path, profile, api_key=key)
            assert found.url == fake.url
            return found

    return asyncio.run(probed())


def refused(handler: Callable[[Call], Awaitable[None]], **options: Any) -> BootError:
    with pytest.raises(BootError) as caught:
        run(handler, **options)
    return caught.value


def how(handler: FakeVLLM, name: str, **options: Any) -> tuple[bool, str]:
    capability = run(handler, **options).capabilities[name]
    return capability.present, capability.how


def test_every_capability_has_one_probe() -> None:
    assert tuple(PROBES) == CAPABILITIES


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


def models(*rows: dict[str, Any]) -> FakeVLLM:
    return FakeVLLM({"GET /v1/models": (200, {"data": list(rows)})})


ADAPTER = {"id": "adapter", "parent": "base", "owned_by": "vllm", "max_model_len": None}
BASE = {"id": "base", "parent": None, "owned_by": "vllm", "max_model_len": 2048}


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


# --- broken, absent, refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "present", "words"),
    [
        ((200, COMPLETION), True, "trial request: 200"),
        ((500, {"error": {"message": "boom"}}), True, "trial request: 500 boom"),
        ((503, b"<html>"), True, "trial request: 503 <html>"),
        ((None, None), True, "trial request: no answer (the connection closed"),
        ((404, {"detail": "Not Found"}), False, "trial request: 404 Not Found"),
        (
            (404, {"error": {"message": "The model `org/m` does not exist."}}),
            True,
            "trial request: 404 The model",
        ),
        ((405, {}), False, "trial request: 405"),
        ((501, {}), False, "trial request: 501"),
        (
            (400, {"message": "The model does not support Chat Completions API"}),
            False,
            "trial request: 400 The",
        ),
        ((400, {"error": {"message": "there is no chat template"}}), False, "trial request: 400 there"),
        ((400, {"error": {"message": "temperature is odd"}}), True, "trial request: 400 temperature"),
        ((401, {"error": "Unauthorized"}), True, "trial request: 401 Unauthorized"),
    ],
)
def test_broken_is_not_absent(rule: tuple[Any, Any], present: bool, words: str) -> None:
    found, said = how(FakeVLLM({"POST /v1/chat/completions": rule}), "chat")

    assert found is present
    assert said.startswith(words)


def test_without_chat_nothing_of_chat_is_tried() -> None:
    absent = run(FakeVLLM({"POST /v1/chat/completions": (404, {})}))
    silent = run(FakeVLLM({"POST /v1/chat/completions": (None, None)}))

    for name in ("tools", "tools.required", "structured-output", "reasoning", "logprobs", "vision"):
        assert absent.capabilities[name].how == "chat is absent"
        assert silent.capabilities[name].how == "not tried: chat gave no answer"
        assert silent.can(name)
        assert not absent.can(name)
    assert absent.can("stream")  # of completions


AUTO = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'


def refuses(field: str, message: str) -> FakeVLLM:
    def chat(body: dict[str, Any]) -> tuple[int, Any]:
        return (400, {"error": {"message": message}}) if field in json.dumps(body) else (200, COMPLETION)

    return FakeVLLM({"POST /v1/chat/completions": chat})


@pytest.mark.parametrize(
    ("name", "field", "message"),
    [
        ("tools", '"auto"', AUTO),
        ("tools.required", '"required"', AUTO),
        ("structured-output", "json_schema", "xgrammar cannot"),
        ("logprobs", "top_logprobs", "greater than max allowed: 0"),
        ("vision", "image_url", "At most 0 image(s) may be provided"),
        ("stream", '"stream"', "streaming is not supported"),
    ],
)
def test_what_chat_refuses_is_absent(name: str, field: str, message: str) -> None:
    handler = refuses(field, message)

    assert how(handler, name) == (False, f"trial request: 400 {message}")
    assert how(FakeVLLM(), name) == (True, "trial request: 200")


def test_arguments_tell_for_a_server_that_we_started() -> None:
    args = {"enable-auto-tool-choice": True, "tool_call_parser": "hermes", "reasoning-parser": "qwen3"}
    told = run(FakeVLLM(), launcher="process", args={**args, "enable-prompt-tokens-details": True})
    bare = run(FakeVLLM(), launcher="process", args={"enable-auto-tool-choice": True})

    assert [told.capabilities[name].how for name in ("tools", "reasoning", "cached-tokens")] == [
        "server args"
    ] * 3
    assert all(told.can(name) for name in ("tools", "reasoning", "cached-tokens"))
    assert bare.capabilities["tools"].how == "server args: no tool-call-parser"
    assert bare.capabilities["reasoning"].how == "server args: no reasoning-parser"
    assert not any(bare.can(name) for name in ("tools", "reasoning", "cached-tokens"))


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_is_tried_where_nobody_tells(field: str) -> None:
    thinking = {"choices": [{"message": {"content": None, field: "Okay, the"}}]}
    handler = FakeVLLM({"POST /v1/chat/completions": (200, thinking)})

    assert how(handler, "reasoning") == (True, "trial request: 4 tokens of reasoning")
    assert how(FakeVLLM(), "reasoning") == (False, "trial request: 4 tokens without reasoning")


def metrics(text: str, status: int = 200) -> FakeVLLM:
    return FakeVLLM({"GET /metrics": (status, text.encode())})


@pytest.mark.parametrize(("label", "present"), [("True", True), ("False", False), ("None", False)])
def test_the_prefix_cache_is_told_by_metrics(label: str, present: bool) -> None:
    handler = metrics(f'vllm:cache_config_info{{enable_prefix_caching="{label}"}} 1.0\n')
    expected = (present, f"cache_config_info in /metrics: enable_prefix_caching={label}")

    assert how(handler, "prefix-cache", launcher="process", args={"enable-prefix-caching": True}) == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"enable-prefix-caching": True}, (True, "server args")),
        ({"no-enable-prefix-caching": True}, (False, "server args: no-enable-prefix-caching")),
        ({}, (False, "cache_config_info is not in /metrics, and nothing else tells")),
    ],
)
def test_without_metrics_arguments_tell_of_the_prefix_cache(
    args: dict[str, Any], expected: tuple[bool, str]
) -> None:
    assert how(metrics("", 404), "prefix-cache", launcher="process", args=args) == expected
    assert how(metrics("{oops"), "prefix-cache", launcher="process", args=args) == expected


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (metrics("", 404), (False, "GET /metrics: 404")),
        (metrics("", 500), (True, "GET /metrics: 500")),
        (metrics("python_info 1\n"), (False, "GET /metrics: 200, but no vllm: names (disable-log-stats?)")),
    ],
)
def test_metrics(handler: FakeVLLM, expected: tuple[bool, str]) -> None:
    assert how(handler, "metrics") == expected


def test_cached_tokens_are_tried_with_a_repeated_prompt() -> None:
    seen: list[int] = []

    def chat(body: dict[str, Any]) -> tuple[int, Any]:
        content = body["messages"][0]["content"]
        words = len(content.split()) if isinstance(content, str) else 0
        hit = words > 32 and words in seen
        seen.append(words)
        usage = {"prompt_tokens_details": {"cached_tokens": 32} if hit else None}
        return 200, {**COMPLETION, "usage": usage}

    handler = FakeVLLM({"POST /v1/chat/completions": chat})

    assert how(handler, "cached-tokens") == (
        True,
        "trial request: prompt_tokens_details of a repeated prompt is {'cached_tokens': 32}",
    )
    assert how(FakeVLLM(), "cached-tokens")[0] is False


def test_a_short_context_is_not_overrun() -> None:
    handler = models({**BASE, "max_model_len": 64})

    assert how(handler, "cached-tokens") == (False, "max-model-len 64 is too short to try it")


def test_routes_tell_of_lora_and_sleep() -> None:
    handler = FakeVLLM(
        {"PUT /v1/load_lora_adapter": (405, {}), "GET /is_sleeping": (200, {"is_sleeping": False})}
    )

    assert how(handler, "lora") == (True, "PUT /v1/load_lora_adapter: 405")
    assert how(handler, "sleep") == (True, "GET /is_sleeping: 200")
    assert how(FakeVLLM(), "lora") == (False, "PUT /v1/load_lora_adapter: 404 Not Found")
    assert how(FakeVLLM(), "sleep") == (False, "GET /is_sleeping: 404 Not Found")


def test_a_generating_server_refuses_embeddings() -> None:
    refusal = (400, {"message": "input is wrong for this model"})
    generating = FakeVLLM({"POST /v1/embeddings": refusal})
    pooling = FakeVLLM({"POST /v1/embeddings": refusal, "POST /v1/chat/completions": (404, {})})

    assert how(generating, "embeddings")[0] is False
    assert how(pooling, "embeddings")[0] is True


# --- what is no vLLM, or not ours to talk to ----------------------------------------------------------------


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

    assert error.what.endswith("is no vLLM")
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

    assert error.what.endswith("does not tell which model it serves")


def test_another_deployment_is_not_verified_by_mistake() -> None:
    error = refused(FakeVLLM(), served_model_name="qwen3")

    assert error.what.endswith("does not serve qwen3")
    assert error.evidence == ("GET /v1/models lists: org/m",)


def test_arguments_are_spelled_one_way() -> None:
    assert serve_args({"--max_model_len": 1, "tool-call-parser": "x"}) == {
        "max-model-len": 1,
        "tool-call-parser": "x",
    }


def test_the_image_is_a_png() -> None:
    image = grey_png(64)

    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", image[16:24]) == (64, 64)
    assert image.endswith(b"IEND\xaeB`\x82")
