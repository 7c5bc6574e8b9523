"""Every capability is found out, and broken is not absent."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from pytest_vllm.declare.pictures import png
from pytest_vllm.facts.capabilities import CAPABILITIES
from pytest_vllm.run.capabilities import PROBES
from tests.unit.fake_vllm import BASE, COMPLETION, FakeVLLM, how, models, run


def test_every_capability_has_one_probe() -> None:
    assert tuple(PROBES) == CAPABILITIES


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

    for name in ("tools", "tools.required", "reasoning", "vision"):
        assert absent.capabilities[name].how == "chat is absent"
        assert not absent.can(name)
    for name in ("structured-output", "logprobs"):  # a base model has them, on completions
        assert absent.capabilities[name].how == "trial request: 200"
        assert absent.can(name)
    for name in ("tools", "tools.required", "structured-output", "reasoning", "logprobs", "vision"):
        assert silent.capabilities[name].how == "not tried: chat gave no answer"
        assert silent.can(name)
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
        ({}, (False, "cache_config_info is not in /metrics, and nothing else reports it")),
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


def test_the_image_is_a_png() -> None:
    image = png(64, 64)

    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", image[16:24]) == (64, 64)
    assert image.endswith(b"IEND\xaeB`\x82")
