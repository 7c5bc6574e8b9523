"""Kinds of servers: what arguments and models make of one, which routes it has, what they answer."""

from __future__ import annotations

import base64
import json
import struct
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.sim.arguments import parse
from pytest_vllm.sim.boot.kind import kind_of
from pytest_vllm.sim.boot.machine import model
from pytest_vllm.sim.defects.failure import BootFailure
from pytest_vllm.sim.inprocess import Simulated
from pytest_vllm.sim.versions import Version
from tests.unit.sim.sounds import form, wav

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.sim.client import Answer, Client

QUERY = "Where does the cat sleep?"
DOCUMENTS = ["Iron melts at 1538 degrees.", "The cat sleeps on the sofa.", "Tax forms are due in April."]
NO_TEMPLATE = "default chat template is no longer allowed"
SPOKEN = "the quick brown fox jumps over the lazy dog near the old river bank"


def tasks(*words: str) -> tuple[str, ...]:
    """The tasks of a server with these arguments."""
    args = parse(list(words), Version("0.12.0" if "--task" in words else "0.32.0"))
    return kind_of(args, model(str(args.get("model")))).tasks


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Qwen/Qwen3-0.6B", "generate"),
        ("Qwen/Qwen3-0.6B --runner pooling", "token_embed embed"),
        ("Qwen/Qwen3-0.6B --convert classify", "token_classify classify"),
        ("BAAI/bge-m3", "token_embed embed"),
        ("Qwen/Qwen3-Embedding-0.6B", "token_embed embed"),
        ("BAAI/bge-reranker-v2-m3", "token_classify classify"),
        ("Qwen/Qwen3-Reranker-0.6B", "generate"),
        ("openai/whisper-small", "transcription"),
        ("mistralai/Voxtral-Mini-3B-2507", "generate transcription"),
        ("colbert-ir/colbertv2.0", "token_embed"),
        ("Qwen/Qwen2.5-Math-RM-72B", "token_classify"),
        ("Skywork/Skywork-Reward-V2-Llama-3.1-8B", "token_classify classify"),
        ("mixedbread-ai/mxbai-rerank-base-v2", "generate"),
        ("Alibaba-NLP/gte-reranker-modernbert-base", "token_classify classify"),
        ("cardiffnlp/twitter-roberta-base-sentiment-latest", "token_classify classify"),
        ("ibm-granite/granite-speech-3.3-8b", "generate transcription"),
        ("nomic-ai/nomic-embed-text-v1.5", "token_embed embed"),
        ("intfloat/multilingual-e5-base", "token_embed embed"),
    ],
)
def test_tasks_follow_model_and_arguments(words: str, expected: str) -> None:
    """As vLLM works them out from the architecture, `--runner` and `--convert`."""
    assert " ".join(tasks(*words.split())) == expected


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("meta-llama/Llama-3.1-8B", False),
        ("meta-llama/Llama-3.1-8B-Instruct", True),
        ("Qwen/Qwen3-8B-Base", False),
        ("Qwen/Qwen3-8B", True),
        ("facebook/opt-125m", False),
        ("google/gemma-3-4b-pt", False),
        ("google/gemma-3-4b-it", True),
        ("mistralai/Mistral-7B-v0.3", False),
        ("BAAI/bge-m3", False),
        ("sim-base", False),
    ],
)
def test_base_models_bring_no_template(name: str, template: bool) -> None:
    """By their names; a model file says so itself."""
    assert kind_of(parse([name], Version("0.32.0")), model(name)).template is template


def test_overrides_turn_a_generating_reranker_into_one_that_ranks() -> None:
    """As the model's card says to serve it."""
    overrides = {"architectures": ["Qwen3ForSequenceClassification"], "is_original_qwen3_reranker": True}
    args = parse(["Qwen/Qwen3-Reranker-0.6B", "--hf-overrides", json.dumps(overrides)], Version("0.32.0"))
    kind = kind_of(args, model("Qwen/Qwen3-Reranker-0.6B"))

    assert (kind.pools, kind.scores, kind.labels) == ("classify", True, ("LABEL_0",))


def test_an_older_version_is_told_the_task() -> None:
    """By `--task`."""
    assert tasks("Qwen/Qwen3-0.6B", "--task", "embed") == ("token_embed", "embed")


#: Path -> the servers that answer it with 200.
ROUTES = {
    "/v1/completions": {"sim-base", "sim-listen"},
    "/v1/chat/completions": {"sim-listen"},
    "/v1/embeddings": {"sim-embed"},
    "/v2/embed": {"sim-embed"},
    "/classify": {"sim-rerank", "sim-classify"},
    "/score": {"sim-embed", "sim-late", "sim-rerank"},
    "/v1/score": {"sim-embed", "sim-late", "sim-rerank"},
    "/rerank": {"sim-embed", "sim-late", "sim-rerank"},
    "/v1/rerank": {"sim-embed", "sim-late", "sim-rerank"},
    "/v2/rerank": {"sim-embed", "sim-late", "sim-rerank"},
    "/pooling": {"sim-embed", "sim-late", "sim-rerank", "sim-classify", "sim-reward"},
}
MODELS = ("sim-base", "sim-embed", "sim-late", "sim-rerank", "sim-classify", "sim-reward", "sim-listen")


def asked(path: str) -> dict[str, Any]:
    """A small good request for a route."""
    if "rerank" in path:
        return {"query": QUERY, "documents": DOCUMENTS}
    if "score" in path:
        return {"queries": QUERY, "documents": DOCUMENTS}
    if "chat" in path:
        return {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    if "completions" in path:
        return {"prompt": "Hi", "max_tokens": 1}
    return {"texts": ["Hi"]} if path == "/v2/embed" else {"input": "Hi"}


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("name", MODELS)
def test_a_server_has_the_routes_of_its_tasks(name: str, path: str, simulated: Callable[..., Client]) -> None:
    """All others are not there; of a base model a chat is refused for want of a template."""
    status = simulated(name).ask("POST", path, asked(path)).status
    lacking = 400 if name == "sim-base" and "chat" in path else 404

    assert status == (200 if name in ROUTES[path] else lacking)


@pytest.mark.parametrize(
    ("name", "path", "what"),
    [("sim-base", "/v1/embeddings", "Embeddings"), ("sim-embed", "/classify", "Classification")],
)
def test_an_older_server_has_every_route_and_refuses(
    name: str, path: str, what: str, simulated: Callable[..., Client]
) -> None:
    """Until 0.15."""
    answer = simulated(name, "--sim-version", "0.15.1").ask("POST", path, asked(path))

    assert (answer.status, answer.json["error"]["message"]) == (400, f"The model does not support {what} API")


def test_a_base_model_refuses_all_that_needs_a_template(simulated: Callable[..., Client]) -> None:
    """Chats on every route, and their tokens; with a template of the operator's it chats."""
    base, told = simulated("sim-base"), simulated("sim-base", "--chat-template", "{{ messages }}")
    turns = [{"role": "user", "content": "Hi"}]
    answers = [
        base.post("/tokenize", messages=turns),
        base.post("/v1/responses", input="Hi"),
        base.post("/v1/messages", model="sim-base", messages=turns, max_tokens=1),
    ]

    assert [answer.status for answer in answers] == [400] * 3
    assert all(NO_TEMPLATE in answer.body.decode() for answer in answers)
    assert told.chat("Hi", max_tokens=1).status == 200


@pytest.mark.parametrize("name", ["sim-embed", "sim-late", "sim-rerank"])
def test_what_fits_ranks_first(name: str, simulated: Callable[..., Client]) -> None:
    """Ranking and scores say the same, best first, `top_n` of them."""
    client = simulated(name)
    rows = client.post("/rerank", query=QUERY, documents=DOCUMENTS).json["results"]
    scores = [row["score"] for row in client.post("/score", text_1=QUERY, text_2=DOCUMENTS).json["data"]]
    top = client.post("/v2/rerank", query=QUERY, documents=DOCUMENTS, top_n=1).json["results"]

    assert [row["index"] for row in top] == [1] == [rows[0]["index"]]
    assert [row["relevance_score"] for row in rows] == sorted(scores, reverse=True)
    assert rows[0]["document"] == {"text": DOCUMENTS[1], "multi_modal": None}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"text_1": ["a", "b"], "text_2": ["c", "d", "e"]}, "Input lengths must be either 1:1, 1:N or N:N"),
        ({"text_1": "a", "text_2": []}, "At least one text_pair element must be given"),
        ({"text_1": "a", "text_2": "b", "max_tokens_per_doc": 10**6}, "must be less than max_model_len"),
        ({"text_1": "a", "text_2": "b", "truncate_prompt_tokens": 10**6}, "greater than max_model_len"),
        ({"text_1": "a", "text_2": [{"content": []}]}, "MultiModalParam is not supported"),
        ({"text_2": "b"}, "Field required"),
    ],
)
def test_pairs_that_make_no_sense_are_refused(
    body: dict[str, Any], words: str, simulated: Callable[..., Client]
) -> None:
    """With vLLM's words."""
    answer = simulated("sim-rerank").ask("POST", "/score", body)

    assert answer.status == 400
    assert words in answer.json["error"]["message"]


def test_a_long_document_is_cut_where_the_request_says(simulated: Callable[..., Client]) -> None:
    """What is cut off is not scored, and not counted."""
    client, text = simulated("sim-rerank"), f"{'word ' * 50}cat sleep"
    whole = client.post("/score", text_1=QUERY, text_2=text).json
    cut = client.post("/score", text_1=QUERY, text_2=text, max_tokens_per_doc=20).json

    assert cut["usage"]["prompt_tokens"] < whole["usage"]["prompt_tokens"]
    assert cut["data"][0]["score"] < whole["data"][0]["score"]


def test_a_classifier_names_the_class(simulated: Callable[..., Client]) -> None:
    """Probabilities of all classes; without the activation numbers of any size."""
    client = simulated("sim-classify")
    rows = client.post("/classify", input=["I love it, wonderful.", "An awful, broken thing."]).json["data"]
    raw = client.post("/classify", input="I love it, wonderful.", use_activation=False).json["data"][0]

    assert [row["label"] for row in rows] == ["positive", "negative"]
    assert all(abs(sum(row["probs"]) - 1) < 1e-9 and row["num_classes"] == 3 for row in rows)
    assert max(raw["probs"]) > 1


def test_a_reward_model_gives_a_number_for_each_token(simulated: Callable[..., Client]) -> None:
    """Of a good text higher than of a bad one."""
    client = simulated("sim-reward")
    good, bad = (client.post("/pooling", input=text).json for text in ("A great, helpful text.", "Awful."))
    counted = client.post("/tokenize", prompt="A great, helpful text.").json["count"]

    assert len(good["data"][0]["data"]) == counted == good["usage"]["prompt_tokens"]
    assert good["data"][0]["data"][-1] > bad["data"][0]["data"][-1]


def test_pooling_knows_one_task(simulated: Callable[..., Client]) -> None:
    """Its own; others are refused as unknown, removed or to be switched on."""
    client = simulated("sim-rerank")
    told = {
        task: client.post("/pooling", input="Hi", task=task).json["error"]["message"]
        for task in ("embed", "score", "token_classify", "plugin")
    }

    assert told["embed"].startswith("Unsupported task: 'embed' Supported tasks: ")
    assert told["score"].startswith("`score` task was removed; use `classify` instead.")
    assert told["token_classify"].startswith("Try switching the model's pooling_task via")
    assert told["plugin"].startswith("No IOProcessor plugin installed.")


@pytest.mark.parametrize(("kind", "size", "letter"), [("float32", 4, "f"), ("float16", 2, "e")])
def test_vectors_come_packed(kind: str, size: int, letter: str, simulated: Callable[..., Client]) -> None:
    """As base64 and as bytes, in the asked order, near the plain numbers."""
    client = simulated("sim-embed")
    plain = client.post("/v1/embeddings", input="Hi there").json["data"][0]["embedding"]
    more = {"input": "Hi there", "embed_dtype": kind, "endianness": "big"}
    coded = client.post("/v1/embeddings", **more, encoding_format="base64").json["data"][0]["embedding"]
    raw = client.post("/v1/embeddings", **more, encoding_format="bytes")
    numbers = struct.unpack(f">{len(plain)}{letter}", base64.b64decode(coded))

    assert raw.body == base64.b64decode(coded)
    assert json.loads(raw.headers["metadata"])["data"][0]["end"] == size * len(plain)
    assert all(abs(one - other) < 1e-3 for one, other in zip(plain, numbers, strict=True))


def test_eighths_are_near(simulated: Callable[..., Client]) -> None:
    """One byte a number, of the same sign."""
    client = simulated("sim-embed")
    plain = client.post("/v1/embeddings", input="Hi there").json["data"][0]["embedding"]
    raw = client.post(
        "/v1/embeddings", input="Hi there", encoding_format="bytes_only", embed_dtype="fp8_e4m3"
    )

    assert len(raw.body) == len(plain)
    assert [byte > 127 for byte in raw.body if byte & 0x7F] == [
        value < 0 for value, byte in zip(plain, raw.body, strict=True) if byte & 0x7F
    ]


def test_pooling_takes_the_engines_time_and_is_counted(simulated: Callable[..., Client]) -> None:
    """Prompt tokens, requests; no tokens are generated."""
    client = simulated("sim-embed", "--max-num-seqs", "4")
    before = client.counter("vllm:prompt_tokens_total")
    usage = client.post("/v1/embeddings", input=["One text.", "And another."]).json["usage"]

    assert client.counter("vllm:prompt_tokens_total") - before == usage["prompt_tokens"]
    assert client.counter("vllm:generation_tokens_total") == 0
    assert client.counter("vllm:e2e_request_latency_seconds_count") >= 2


def heard(client: Client, sound: bytes, path: str = "transcriptions", **more: str) -> Answer:
    """A recording, sent as a form."""
    body, kind = form({"file": sound, **more})
    return client.ask("POST", f"/v1/audio/{path}", body, {"content-type": kind})


@pytest.fixture(scope="module")
def ears(simulated: Callable[..., Client]) -> Client:
    """A server that transcribes."""
    return simulated("sim-transcribe")


def test_what_is_said_is_written(ears: Client) -> None:
    """Whole, with its length; translated without one; in segments that make up the text."""
    whole = heard(ears, wav(SPOKEN, seconds=2.5)).json
    translated = heard(ears, wav(SPOKEN), "translations").json
    verbose = heard(ears, wav(SPOKEN, seconds=4), response_format="verbose_json").json

    assert whole == {"text": SPOKEN, "usage": {"type": "duration", "seconds": 3}}
    assert translated == {"text": SPOKEN}
    assert "".join(part["text"] for part in verbose["segments"]).strip() == SPOKEN == verbose["text"]
    assert (verbose["duration"], verbose["segments"][-1]["end"]) == (4.0, 4.0)


def test_silence_has_no_words(ears: Client) -> None:
    """And other recordings have their own."""
    assert heard(ears, wav(SPOKEN, loud=False)).json["text"] == ""
    assert heard(ears, wav("")).json["text"] == heard(ears, wav("")).json["text"] != ""


def test_a_transcription_is_streamed(ears: Client) -> None:
    """In chunks that make up the text; the usage comes when asked for."""
    answer = heard(ears, wav(SPOKEN), stream="true", stream_include_usage="true")
    parts = [choice for chunk in answer.chunks for choice in chunk["choices"]]

    assert {chunk["object"] for chunk in answer.chunks} == {"transcription.chunk"}
    assert "".join(part["delta"]["content"] for part in parts) == SPOKEN
    assert (parts[-1]["finish_reason"], answer.events[-1]) == ("stop", "[DONE]")
    assert answer.chunks[-1]["usage"]["completion_tokens"] > 0


@pytest.mark.parametrize(
    ("form_fields", "status", "words"),
    [
        ({"file": b"no sound"}, 400, "Invalid or unsupported audio file."),
        ({"file": "no file"}, 422, "Expected 'file' to be a file-like object"),
        ({}, 400, "Field required"),
        ({"response_format": "srt"}, 400, "Currently only support response_format"),
        ({"response_format": "diarized_json"}, 400, "Currently do not support diarized_json"),
        ({"response_format": "verbose_json", "stream": "true"}, 400, "doesn't support streaming case"),
        ({"stream_include_usage": "true"}, 400, "Stream options can only be defined"),
        ({"language": "xx"}, 400, "Unsupported language"),
        ({"model": "nobody"}, 404, "does not exist"),
        ({"temperature": "hot"}, 400, "unable to parse string as a number"),
        ({"vllm_xargs": "{"}, 400, "Must be valid JSON"),
    ],
)
def test_forms_that_make_no_sense_are_refused(
    form_fields: dict[str, Any], status: int, words: str, ears: Client
) -> None:
    """With vLLM's words."""
    given = {"file": wav(SPOKEN), **form_fields} if form_fields else {"prompt": "x"}
    body, kind = form(given)
    answer = ears.ask("POST", "/v1/audio/transcriptions", body, {"content-type": kind})

    assert answer.status == status
    assert words in answer.json["error"]["message"]


def test_a_reranker_can_not_be_made_to_generate() -> None:
    """The start ends."""
    with pytest.raises(BootFailure) as found, Simulated(["sim-rerank", "--runner", "generate"]):
        pass

    assert "do not support `--runner generate`" in "\n".join(found.value.lines)
