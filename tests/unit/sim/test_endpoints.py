"""The other endpoints: responses, messages, pooling, adapters, tokens, keys, sleep."""

from __future__ import annotations

import base64
import json
import math
import socket
import struct
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.sim.client import Answer, Client

RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
ASK = "What is the capital of France?"


def kinds(answer: Answer) -> list[str]:
    """The types of a stream's events."""
    return [event["type"] for event in answer.chunks]


def test_a_response_says_what_a_chat_says(sim: Client) -> None:
    """Output items, usage, status; the stream ends with the same object."""
    body = sim.post(RESPONSES, input=ASK, temperature=0).json
    stream = sim.post(RESPONSES, input=ASK, temperature=0, stream=True)
    pieces = [event["delta"] for event in stream.chunks if event["type"] == "response.output_text.delta"]
    numbers = [event["sequence_number"] for event in stream.chunks]

    assert (body["object"], body["status"]) == ("response", "completed")
    assert body["output"][-1]["content"][0]["text"] == "".join(pieces) == "The capital of France is Paris."
    assert body["usage"]["total_tokens"] == body["usage"]["input_tokens"] + body["usage"]["output_tokens"]
    assert (kinds(stream)[0], kinds(stream)[-1]) == ("response.created", "response.completed")
    assert numbers == list(range(len(numbers)))
    assert stream.chunks[-1]["response"]["usage"]["total_tokens"] == body["usage"]["total_tokens"]


def test_a_cut_response_is_incomplete(sim: Client) -> None:
    """With the reason."""
    body = sim.post(RESPONSES, input=ASK, max_output_tokens=3).json

    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


def test_a_response_calls_tools(tools: Client) -> None:
    """As an item of its own, flat tool definitions."""
    tool = {
        "type": "function",
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
    body = tools.post(RESPONSES, input="Weather in Oslo? Use the tool.", tools=[tool]).json
    item = body["output"][-1]

    assert (item["type"], item["name"]) == ("function_call", "get_weather")
    assert "Oslo" in item["arguments"]


def test_a_message_says_what_a_chat_says(sim: Client) -> None:
    """Anthropic's shape, whole and streamed; count_tokens counts the same."""
    asked: dict[str, Any] = {"model": "sim-model", "messages": [{"role": "user", "content": ASK}]}
    greedy = {**asked, "temperature": 0, "max_tokens": 50}
    body = sim.post(MESSAGES, **greedy).json
    stream = sim.post(MESSAGES, **greedy, stream=True)
    counted = sim.post(f"{MESSAGES}/count_tokens", **asked).json
    text = "".join(event["delta"].get("text", "") for event in stream.chunks if event.get("delta"))

    assert (body["type"], body["role"], body["stop_reason"]) == ("message", "assistant", "end_turn")
    assert body["content"][0]["text"] == text == "The capital of France is Paris."
    assert (kinds(stream)[0], kinds(stream)[-1]) == ("message_start", "message_stop")
    assert counted["input_tokens"] == body["usage"]["input_tokens"] + body["usage"]["cache_read_input_tokens"]


def test_messages_came_with_a_version(simulated: Callable[..., Client]) -> None:
    """Unknown paths are FastAPI's 404."""
    answer = simulated("m", "--sim-version", "0.10.0").post(MESSAGES, messages=[], max_tokens=1)

    assert (answer.status, answer.json) == (404, {"detail": "Not Found"})


def test_embeddings_are_vectors_of_length_one(simulated: Callable[..., Client]) -> None:
    """The same text gives the same vector, another one another; base64 holds the same numbers."""
    sim = simulated("m", "--runner", "pooling")
    data = sim.post("/v1/embeddings", input=["cat", "dog", "cat"]).json["data"]
    packed = sim.post("/v1/embeddings", input="cat", encoding_format="base64").json["data"][0]["embedding"]
    cat, dog, again = (entry["embedding"] for entry in data)
    raw = base64.b64decode(packed)

    assert [entry["index"] for entry in data] == [0, 1, 2]
    assert cat == again != dog
    assert math.isclose(sum(x * x for x in cat), 1, rel_tol=1e-4)
    assert struct.unpack(f"<{len(raw) // 4}f", raw) == pytest.approx(cat, abs=1e-6)


def test_what_a_model_can_not_do_is_not_there(sim: Client, simulated: Callable[..., Client]) -> None:
    """No embeddings from a generator, no chat from an embedder."""
    assert sim.post("/v1/embeddings", input="x").status == 404
    assert simulated("m", "--runner", "pooling").chat("Hi").status == 404


def test_adapters_come_and_go(simulated: Callable[..., Client], tmp_path: Path) -> None:
    """Loaded ones are models; unknown ones are 404; a second load is refused."""
    sim = simulated("m", "--enable-lora", VLLM_ALLOW_RUNTIME_LORA_UPDATING="1")
    wish = {"lora_name": "mine", "lora_path": str(tmp_path)}

    assert sim.post("/v1/load_lora_adapter", **wish).status == 200
    assert "mine" in [model["id"] for model in sim.get("/v1/models").json["data"]]
    assert sim.chat("Hi", model="mine").json["model"] == "mine"
    assert sim.post("/v1/load_lora_adapter", **wish).status == 400
    assert sim.post("/v1/load_lora_adapter", lora_name="b", lora_path=str(tmp_path / "b")).status == 404
    assert sim.post("/v1/unload_lora_adapter", lora_name="mine").status == 200
    assert sim.chat("Hi", model="mine").status == 404


def test_adapters_can_not_be_loaded_without_permission(simulated: Callable[..., Client]) -> None:
    """The route is not there."""
    answer = simulated("m", "--enable-lora").post("/v1/load_lora_adapter", lora_name="a", lora_path="b")

    assert answer.status == 404


@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions", "/v1/nothing"])
@pytest.mark.parametrize(("key", "status"), [("", 401), ("Bearer wrong", 401), ("Bearer right", 0)])
def test_a_key_guards_v1(simulated: Callable[..., Client], path: str, key: str, status: int) -> None:
    """Every path below /v1, known or not."""
    sim = simulated("m", "--api-key", "right")
    answer = sim.ask("GET", path, headers={"authorization": key} if key else {})

    assert answer.status == status if status else answer.status != 401


@pytest.mark.parametrize("path", ["/health", "/metrics", "/version", "/ping", "/tokenize"])
def test_a_key_guards_nothing_else(simulated: Callable[..., Client], path: str) -> None:
    """As in vLLM, which is worth knowing."""
    assert simulated("m", "--api-key", "right").get(path).status != 401


def test_sleep_is_for_developers(simulated: Callable[..., Client], sim: Client) -> None:
    """Asleep, it tells so; without the switch there is no such path."""
    dev = simulated("m", "--enable-sleep-mode", VLLM_SERVER_DEV_MODE="1")

    assert sim.ask("POST", "/sleep").status == 404
    assert dev.ask("POST", "/sleep").status == 200
    assert dev.get("/is_sleeping").json == {"is_sleeping": True}
    assert 'sleep_state="awake"} 0.0' in dev.get("/metrics").body.decode()
    assert dev.ask("POST", "/wake_up").status == 200
    assert dev.chat("Hi").status == 200


def test_tokens_go_there_and_back(sim: Client) -> None:
    """Any text; a chat is its template's text."""
    text = "Gr\u00fc\u00dfe, \u4e16\u754c \U0001f600!"
    tokens = sim.post("/tokenize", prompt=text).json
    chat = sim.post("/tokenize", messages=[{"role": "user", "content": text}]).json

    assert sim.post("/detokenize", tokens=tokens["tokens"]).json["prompt"] == text
    assert (tokens["count"], tokens["max_model_len"]) == (len(tokens["tokens"]), 4096)
    assert chat["count"] == sim.chat(text, max_tokens=1).json["usage"]["prompt_tokens"]


@pytest.mark.parametrize(
    ("flags", "status", "origin"),
    [
        ((), 400, None),
        (("--allowed-origins", '["*"]'), 200, "*"),
        (("--allowed-origins", '["http://a.example"]'), 200, "http://a.example"),
        (("--allowed-origins", '["http://b.example"]'), 400, None),
        (("--sim-version", "0.20.0"), 200, "*"),
    ],
)
def test_browsers_ask_first(
    simulated: Callable[..., Client], flags: tuple[str, ...], status: int, origin: str | None
) -> None:
    """Since 0.32 no other origin is let in by default."""
    asking = {"origin": "http://a.example", "access-control-request-method": "POST"}
    answer = simulated("m", *flags).ask("OPTIONS", "/v1/chat/completions", headers=asking)

    assert answer.status == status
    assert answer.headers.get("access-control-allow-origin") == origin


def test_too_many_requests_are_turned_away(simulated: Callable[..., Client]) -> None:
    """503 and a count; the limit is on sequences."""
    sim = simulated("m", "--max-num-queued-reqs", "2")
    answer = sim.chat("Hi", temperature=1, n=3, max_tokens=1)

    assert (answer.status, answer.json["error"]["type"]) == (503, "Service Unavailable")
    assert sim.counter("vllm:admission_rejections_total") == 1
    assert sim.chat("Hi", temperature=1, n=2, max_tokens=1).status == 200


def test_load_tells_what_is_in_progress(simulated: Callable[..., Client]) -> None:
    """Where it is tracked."""
    sim = simulated("m", "--enable-server-load-tracking", "--max-model-len", "4096")
    body = {"prompt": "x", "max_tokens": 4000, "ignore_eos": True, "stream": True}
    with socket.create_connection(("127.0.0.1", sim.sim.boot.port), 10) as connection:
        data = json.dumps(body).encode()
        head = "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        connection.sendall(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)
        assert b" 200 OK" in connection.recv(100)
        busy = sim.get("/load").json

    assert busy == {"server_load": 1}
