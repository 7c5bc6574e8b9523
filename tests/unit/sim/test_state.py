"""What a server keeps and shares: responses, engines, caches outside, weights, settings."""

from __future__ import annotations

import base64
import http.client
import re
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.sim.inprocess import Simulated
from tests.unit.sim.conftest import PLAIN
from tests.unit.sim.sounds import wav

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.sim.client import Client

RESPONSES = "/v1/responses"
ASK = "What is the capital of France?"
STORE = {"VLLM_ENABLE_RESPONSES_API_STORE": "1"}
LONG = "Tell me a story about a lighthouse. " * 40
DEV = {"VLLM_SERVER_DEV_MODE": "1"}


@pytest.fixture
def keeps(simulated: Callable[..., Client]) -> Client:
    """A server that keeps responses."""
    return simulated(*PLAIN, **STORE)


def settled(client: Client, response_id: str) -> dict[str, Any]:
    """A response once it is queued no more."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        found: dict[str, Any] = client.get(f"{RESPONSES}/{response_id}").json
        if found["status"] != "queued":
            return found
    pytest.fail("the response is still queued after 10 s")


def test_a_response_in_the_background_is_queued_then_there(keeps: Client) -> None:
    """It can be asked for again and again."""
    queued = keeps.post(RESPONSES, input=ASK, background=True, temperature=0).json
    done = settled(keeps, queued["id"])

    assert (queued["status"], queued["output"], queued["background"]) == ("queued", [], True)
    assert done["status"] == "completed"
    assert "Paris" in done["output"][-1]["content"][0]["text"]
    assert keeps.get(f"{RESPONSES}/{queued['id']}").json == done


def test_a_response_in_the_background_is_cancelled(keeps: Client) -> None:
    """It stays so; one that ended can't be cancelled."""
    queued = keeps.post(RESPONSES, input=LONG, background=True, max_output_tokens=2000, ignore_eos=True).json
    stopped = keeps.ask("POST", f"{RESPONSES}/{queued['id']}/cancel", {})
    again = keeps.ask("POST", f"{RESPONSES}/{queued['id']}/cancel", {})

    assert (stopped.status, stopped.json["status"]) == (200, "cancelled")
    assert (again.status, settled(keeps, queued["id"])["status"]) == (400, "cancelled")


def test_a_streamed_response_is_kept_too(keeps: Client) -> None:
    """And gone on from."""
    stream = keeps.post(RESPONSES, input="My name is Ada.", stream=True)
    first = stream.chunks[-1]["response"]
    longer = keeps.post(RESPONSES, input="Hi", previous_response_id=first["id"]).json
    alone = keeps.post(RESPONSES, input="Hi").json

    assert keeps.get(f"{RESPONSES}/{first['id']}").json["output"] == first["output"]
    assert longer["usage"]["input_tokens"] > alone["usage"]["input_tokens"]


def test_without_a_store_there_is_no_background(sim: Client) -> None:
    """The refusal names the variable."""
    answer = sim.post(RESPONSES, input="Hi", background=True)

    assert answer.status == 400
    assert "VLLM_ENABLE_RESPONSES_API_STORE" in answer.json["error"]["message"]


CUSTOM = {"type": "custom", "name": "run_code", "description": "Runs code."}


def test_a_tool_that_takes_text_is_called_with_text(tools: Client) -> None:
    """Whole and streamed, in items of their own."""
    body = {"input": "Use the tool.", "tools": [CUSTOM], "tool_choice": "required", "temperature": 0}
    item = tools.post(RESPONSES, **body).json["output"][-1]
    stream = tools.post(RESPONSES, **body, stream=True)
    kinds = [event["type"] for event in stream.chunks]
    done = next(event for event in stream.chunks if event["type"] == "response.custom_tool_call_input.done")

    assert (item["type"], item["name"]) == ("custom_tool_call", "run_code")
    assert isinstance(item["input"], str)
    assert done["input"] == item["input"]
    assert "response.function_call_arguments.delta" not in kinds


def test_a_tool_with_a_grammar_is_refused(tools: Client) -> None:
    """With vLLM's words."""
    tool = {**CUSTOM, "format": {"type": "grammar", "syntax": "lark", "definition": "start: 'x'"}}
    answer = tools.post(RESPONSES, input="Hi", tools=[tool])

    assert answer.status == 400
    assert "grammar format are not supported" in answer.json["error"]["message"]


@pytest.mark.parametrize("budget", [0, 3, 9])
def test_thoughts_end_with_their_budget(budget: int, simulated: Callable[..., Client]) -> None:
    """The answer comes all the same; -1 is no budget."""
    client = simulated(*PLAIN, "--reasoning-parser", "qwen3")
    on = {"chat_template_kwargs": {"enable_thinking": True}}
    short = client.chat(ASK, thinking_token_budget=budget, **on).json
    free = client.chat(ASK, thinking_token_budget=-1, **on).json
    thoughts = short["choices"][0]["message"]["reasoning"] or ""
    counted = client.post("/tokenize", prompt=thoughts).json["count"]

    assert (
        counted
        <= budget
        < client.post("/tokenize", prompt=free["choices"][0]["message"]["reasoning"]).json["count"]
    )
    assert "Paris" in short["choices"][0]["message"]["content"]


def test_more_effort_takes_more_tokens(simulated: Callable[..., Client]) -> None:
    """And none at all no thoughts."""
    client = simulated(*PLAIN, "--reasoning-parser", "qwen3")
    used = {
        effort: client.chat(ASK, reasoning_effort=effort).json["usage"]["completion_tokens"]
        for effort in ("none", "low", "high")
    }

    assert used["none"] < used["low"] < used["high"]


def test_beams_differ(sim: Client) -> None:
    """As many as asked for; greedy asking is no hindrance, streaming is."""
    body = {"prompt": "Once upon a time", "use_beam_search": True, "n": 3, "temperature": 0, "max_tokens": 20}
    texts = [choice["text"] for choice in sim.post("/v1/completions", **body).json["choices"]]
    streamed = sim.chat("Hi", use_beam_search=True, n=2, stream=True)

    assert len(set(texts)) == 3
    assert streamed.status == 400


def test_a_developer_is_the_system(sim: Client) -> None:
    """In the newest version, in front of all."""

    def counted(*turns: tuple[str, str]) -> Any:
        messages = [{"role": role, "content": text} for role, text in turns]
        return sim.post("/tokenize", messages=messages).json["tokens"]

    told = counted(("user", "Hi"), ("developer", "Be brief."))

    assert told == counted(("system", "Be brief."), ("user", "Hi"))


def test_weights_thrown_away_say_nothing_until_loaded(simulated: Callable[..., Client]) -> None:
    """Level 1 brings them back by itself; a part awake is not awake."""
    client = simulated(*PLAIN, "--sim-seed", "7", **DEV)
    before = client.said(ASK)
    client.ask("POST", "/sleep?level=1", {})
    half = client.ask("POST", "/wake_up?tags=weights", {}).json["status"]
    asleep = client.get("/is_sleeping").json["is_sleeping"]
    client.ask("POST", "/wake_up", {})
    light = client.said(ASK)
    client.ask("POST", "/sleep?level=2", {})
    states = re.findall(
        r'engine_sleep_state\{.*sleep_state="(\w+)"\} 1\.0', client.get("/metrics").body.decode()
    )
    client.ask("POST", "/wake_up", {})
    bare = client.said(ASK)
    client.ask("POST", "/collective_rpc", {"method": "reload_weights"})

    assert (half, asleep, states) == ("sleeping", True, ["discard_all"])
    assert light == before == client.said(ASK) != bare


def test_every_engine_serves_and_is_counted(simulated: Callable[..., Client]) -> None:
    """The requests of all of them are those that were sent."""
    client = simulated(*PLAIN, "--data-parallel-size", "3")
    for number in range(9):
        client.chat(f"Number {number}", max_tokens=2)
    text = client.get("/metrics").body.decode()
    served = re.findall(r'e2e_request_latency_seconds_count\{engine="(\d)".*\} (\S+)', text)

    assert served == [("0", "3.0"), ("1", "3.0"), ("2", "3.0")]
    assert client.counter("vllm:cache_config_info") == 3


CACHES = {
    "lmcache": ('{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}', 256),
    "offloading": ('{"kv_connector":"OffloadingConnector","kv_role":"kv_both"}', 16),
}


@pytest.mark.parametrize("name", CACHES)
def test_what_was_thrown_out_comes_back_in_chunks(name: str, simulated: Callable[..., Client]) -> None:
    """Counted as external, and as cached tokens; the answer is the same."""
    config, chunk = CACHES[name]
    argv = ("--kv-transfer-config", config, "--enable-prompt-tokens-details")
    client = simulated(*PLAIN, *argv, **DEV)
    cold = client.chat(LONG, max_tokens=8).json
    client.ask("POST", "/reset_prefix_cache", {})
    before = client.counter("vllm:external_prefix_cache_hits_total")
    warm = client.chat(LONG, max_tokens=8).json
    loaded = client.counter("vllm:external_prefix_cache_hits_total") - before

    assert loaded == warm["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert loaded > 0 == loaded % chunk
    assert warm["choices"][0]["message"]["content"] == cold["choices"][0]["message"]["content"]


def test_a_socket_of_the_file_system_is_served(tmp_path: Path) -> None:
    """`--uds`."""
    path = tmp_path / "vllm.sock"
    with Simulated([*PLAIN, "--uds", str(path)]):
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(path))
        connection.request("GET", "/health")
        status = connection.getresponse().status
        connection.close()

    assert status == 200


def test_a_path_in_front_is_taken_off(simulated: Callable[..., Client]) -> None:
    """`--root-path`: with it and without, keys and metrics included."""
    client = simulated(*PLAIN, "--root-path", "/models/one", "--api-key", "a", "b")

    assert client.get("/models/one/health").status == client.get("/health").status == 200
    assert client.get("/models/one/v1/models").status == 401
    assert client.ask("GET", "/models/one/v1/models", None, {"authorization": "Bearer b"}).status == 200
    assert client.get("/models/one/metrics").status == 200
    assert client.get("/openapi.json").json["servers"] == [{"url": "/models/one"}]


def test_the_checkpoint_sets_what_requests_leave_out(
    simulated: Callable[..., Client], tmp_path: Path
) -> None:
    """`--generation-config`, what overrides it, and vLLM's own when told so."""
    (tmp_path / "generation_config.json").write_text('{"max_new_tokens": 3, "temperature": 0.0}')
    own = simulated(*PLAIN, "--generation-config", str(tmp_path))
    over = simulated(
        *PLAIN, "--generation-config", str(tmp_path), "--override-generation-config", '{"max_new_tokens":5}'
    )
    plain = simulated(*PLAIN, "--generation-config", "vllm")
    used = [
        client.post(
            "/v1/chat/completions",
            messages=[{"role": "user", "content": LONG}],
            ignore_eos=True,
            **({"max_tokens": 9} if client is plain else {}),
        ).json["usage"]["completion_tokens"]
        for client in (own, over, plain)
    ]

    assert used == [3, 5, 9]
    assert any("Using default chat sampling params from model" in line for line in own.sim.lines)


def test_tokens_are_named_by_id_when_the_server_says_so(simulated: Callable[..., Client]) -> None:
    """`--return-tokens-as-token-ids`, unless a request says otherwise."""
    client = simulated(*PLAIN, "--return-tokens-as-token-ids")
    body = {"prompt": "Hi", "max_tokens": 2, "logprobs": 1}
    named = client.post("/v1/completions", **body).json["choices"][0]["logprobs"]["tokens"]
    plain = client.post("/v1/completions", **body, return_tokens_as_token_ids=False).json

    assert all(token.startswith("token_id:") for token in named)
    assert not plain["choices"][0]["logprobs"]["tokens"][0].startswith("token_id:")


def test_a_chat_hears(simulated: Callable[..., Client]) -> None:
    """What is said in a part of sound is part of the question; other models take none."""
    data = base64.b64encode(wav(ASK)).decode()
    sound = [{"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}]
    client = simulated("sim-listen", "--max-model-len", "4096")

    def asked(one: Client) -> Any:
        return one.post("/v1/chat/completions", messages=[{"role": "user", "content": sound}], temperature=0)

    assert "Paris" in asked(client).json["choices"][0]["message"]["content"]
    assert asked(simulated(*PLAIN)).status == 400


def test_tools_need_no_other_settings(tools: Client) -> None:
    """The tools of a response that are functions stay functions beside those that take text."""
    flat = {"type": "function", "name": "noop", "parameters": {"type": "object", "properties": {}}}
    names = {tool["name"] for tool in tools.post(RESPONSES, input="Hi", tools=[flat, CUSTOM]).json["tools"]}

    assert names == {"noop", "run_code"}
