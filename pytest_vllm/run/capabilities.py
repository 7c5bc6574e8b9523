"""How each capability is found out: one small function each, all run at once.

Broken is not absent: a server that answers 500, or nothing at all, counts as having the capability, so
that the checks which need it run and say what is wrong. Absent is what the server refuses as unknown or not
enabled.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.declare.pictures import picture
from pytest_vllm.run.findings import FACT_SECONDS, NO_ANSWER, TRIAL, UNKNOWN, Finding, Findings, answered
from pytest_vllm.wire.metrics import Metrics
from pytest_vllm.wire.recording import Recording, Request, Undecided

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping


#: What a scripted server says when it is told to, and no other does by itself.
SCRIPT = "river seven yellow paper"


async def _chat(ask: Findings) -> Finding:
    return ask.served(await ask.chat())


async def _completions(ask: Findings) -> Finding:
    return ask.served(await ask.trial("/v1/completions", {"prompt": "Hi", "max_tokens": 1}))


async def _responses(ask: Findings) -> Finding:
    body = {"input": "Hi", "max_output_tokens": 1, "store": False}
    return ask.served(await ask.trial("/v1/responses", body))


async def _messages(ask: Findings) -> Finding:
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    return ask.served(await ask.trial("/v1/messages", body))


async def _embeddings(ask: Findings) -> Finding:
    generates = (await ask.find("chat")).present
    return ask.served(await ask.trial("/v1/embeddings", {"input": "Hi"}), refusable=generates)


async def _rerank(ask: Findings) -> Finding:
    return await _pooled(ask, "/rerank", {"query": "Hi", "documents": ["Hi"]})


async def _score(ask: Findings) -> Finding:
    return await _pooled(ask, "/score", {"text_1": "Hi", "text_2": "Hi"})


async def _classify(ask: Findings) -> Finding:
    return await _pooled(ask, "/classify", {"input": "Hi"})


async def _pooled(ask: Findings, path: str, body: Mapping[str, Any]) -> Finding:
    generates = (await ask.find("completions")).present
    return ask.served(await ask.trial(path, body), refusable=generates)


async def _transcription(ask: Findings) -> Finding:
    # old versions have the route on every server, and answer by kind: only the body says which (no JSON)
    boundary = "pytest-vllm"
    field = 'content-disposition: form-data; name="model"'
    content = f"--{boundary}\r\n{field}\r\n\r\n{ask.server.model}\r\n--{boundary}--\r\n"
    request = Request(
        "POST",
        "/v1/audio/transcriptions",
        content=content,
        headers={"content-type": f"multipart/form-data; boundary={boundary}"},
        timeout=FACT_SECONDS,
        expect=None,
    )
    recording = await ask.send("probe POST /v1/audio/transcriptions", request)
    said = recording.text
    lacks = bool(re.search(r"not support", said, re.IGNORECASE)) or recording.status in UNKNOWN
    return not lacks, f"{TRIAL} without a file: {answered(recording)}"


async def _tokenize(ask: Findings) -> Finding:
    return ask.served(await ask.trial("/tokenize", {"prompt": "Hi"}))


async def _stream(ask: Findings) -> Finding:
    chat = await ask.find("chat")
    if chat.how.startswith(NO_ANSWER):
        return True, "not tried: chat gave no answer"
    if chat.present:
        recording = await ask.chat(stream=True)
    elif (await ask.find("completions")).present:
        recording = await ask.trial("/v1/completions", {"prompt": "Hi", "max_tokens": 1, "stream": True})
    else:
        return False, "neither chat nor completions are there to stream"
    return ask.served(recording)


TOOL = {
    "type": "function",
    "function": {"name": "noop", "parameters": {"type": "object", "properties": {}}},
}


async def _tools(ask: Findings) -> Finding:
    if ask.args is not None and (await ask.find("chat")).present:
        flags = ("enable-auto-tool-choice", "tool-call-parser")
        missing = [flag for flag in flags if not ask.args.get(flag)]
        return not missing, f"server args: no {' and no '.join(missing)}" if missing else "server args"
    return await _with_chat(ask, tools=[TOOL], tool_choice="auto")


async def _tools_required(ask: Findings) -> Finding:
    # Streamed and left after the first event: some versions answer 400 to a call that max_tokens cut short.
    if untried := await _without_chat(ask):
        return untried
    body = {"messages": [{"role": "user", "content": "Hi"}], "tools": [TOOL], "tool_choice": "required"}
    recording = await ask.trial(
        "/v1/chat/completions", {**body, "max_tokens": 4, "stream": True}, abort_after=1
    )
    return ask.served(recording, refusable=True)


async def _structured_output(ask: Findings) -> Finding:
    schema = {"name": "yes", "schema": {"type": "object", "properties": {}, "additionalProperties": False}}
    shape = {"type": "json_schema", "json_schema": schema}
    return await _with_text(ask, {"response_format": shape}, {"response_format": shape}, tokens=2)


async def _logprobs(ask: Findings) -> Finding:
    return await _with_text(ask, {"logprobs": True, "top_logprobs": 1}, {"logprobs": 1})


async def _vision(ask: Findings) -> Finding:
    content = [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": picture(64, 64)}}]
    if untried := await _without_chat(ask):
        return untried
    return ask.served(await ask.chat(content), refusable=True)


async def _without_chat(ask: Findings) -> Finding | None:
    """What follows for a capability of chat when chat itself does not answer; None when it does."""
    chat = await ask.find("chat")
    if not chat.present:
        return False, "chat is absent"
    if chat.how.startswith(NO_ANSWER):
        return True, "not tried: chat gave no answer"
    return None


async def _with_chat(ask: Findings, **params: Any) -> Finding:
    if untried := await _without_chat(ask):
        return untried
    return ask.served(await ask.chat(**params), refusable=True)


async def _with_text(
    ask: Findings, chat: Mapping[str, Any], completion: Mapping[str, Any], *, tokens: int = 1
) -> Finding:
    """A trial on chat, or on completions where there is no chat: a base model has no chat template."""
    if (await ask.find("chat")).present or not (await ask.find("completions")).present:
        return await _with_chat(ask, max_tokens=tokens, **chat)
    body = {"prompt": "Hi", "max_tokens": tokens, **completion}
    return ask.served(await ask.trial("/v1/completions", body), refusable=True)


async def _reasoning(ask: Findings) -> Finding:
    if ask.args is not None and (await ask.find("chat")).present:
        present = bool(ask.args.get("reasoning-parser"))
        return present, "server args" if present else "server args: no reasoning-parser"
    if untried := await _without_chat(ask):
        return untried
    message = _first_message(await ask.chat(max_tokens=4))
    present = bool(message.get("reasoning") or message.get("reasoning_content"))
    return present, f"trial request: 4 tokens {'of' if present else 'without'} reasoning"


def _first_message(recording: Recording) -> Mapping[str, Any]:
    try:
        message = recording.ok["choices"][0]["message"]
    except (Undecided, LookupError, TypeError):
        return {}
    return message if isinstance(message, dict) else {}


async def _prefix_cache(ask: Findings) -> Finding:
    if several := await ask.by_turns():
        return False, several
    value = _cache_config(await ask.get("/metrics")).get("enable_prefix_caching")
    if value is not None:
        return value == "True", f"cache_config_info in /metrics: enable_prefix_caching={value}"
    if ask.args is not None and "enable-prefix-caching" in ask.args:
        return bool(ask.args["enable-prefix-caching"]), "server args"
    if ask.args is not None and ask.args.get("no-enable-prefix-caching"):
        return False, "server args: no-enable-prefix-caching"
    return False, "cache_config_info is not in /metrics, and nothing else reports it"


def _cache_config(metrics: Recording) -> Mapping[str, str]:
    return Metrics(metrics.text).labels("vllm:cache_config_info") if metrics.status == 200 else {}


async def _cached_tokens(ask: Findings) -> Finding:
    if several := await ask.by_turns():
        return False, several
    if ask.args is not None:
        present = bool(ask.args.get("enable-prompt-tokens-details"))
        return present, "server args" if present else "server args: no enable-prompt-tokens-details"
    if not (await ask.find("prefix-cache")).present:
        return False, "no prefix cache"
    if untried := await _without_chat(ask):
        return untried
    block = _number(_cache_config(await ask.get("/metrics")).get("block_size")) or 16
    words = 2 * block + 16
    if ask.server.max_model_len is not None and 2 * words > ask.server.max_model_len:
        return False, f"max-model-len {ask.server.max_model_len} is too short to try it"
    prompt = "one two three four " * (words // 4)
    await ask.chat(prompt)
    recording = await ask.chat(prompt)
    try:
        details = recording.ok["usage"].get("prompt_tokens_details")
    except (Undecided, LookupError, TypeError, AttributeError):
        details = None
    return details is not None, f"trial request: prompt_tokens_details of a repeated prompt is {details}"


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


async def _metrics(ask: Findings) -> Finding:
    recording = await ask.get("/metrics")
    how = f"GET /metrics: {answered(recording)}"
    if recording.status != 200:
        return _shown(ask, recording), how
    if several := await ask.by_turns():
        return False, several
    present = "vllm:" in recording.text
    return present, how if present else f"{how}, but no vllm: names (disable-log-stats?)"


async def _openapi(ask: Findings) -> Finding:
    recording = await ask.get("/openapi.json")
    return _shown(ask, recording), f"GET /openapi.json: {answered(recording)}"


async def _version(ask: Findings) -> Finding:
    recording = await ask.get("/version")
    return _shown(ask, recording), f"GET /version: {answered(recording)}"


def _shown(ask: Findings, recording: Recording) -> bool:
    """Whether a page is for clients: vLLM keeps none of these from anybody, what stands in front may."""
    kept = ask.args is None and recording.status in (401, 403)
    return not kept and recording.status not in UNKNOWN


async def _auth(ask: Findings) -> Finding:
    recording = await ask.get("/v1/models", key=False)
    return recording.status in (401, 403), f"GET /v1/models without a key: {answered(recording)}"


async def _lora(ask: Findings) -> Finding:
    adapters = adapters_in(await ask.get("/v1/models"))
    if adapters:
        return True, f"GET /v1/models lists the adapter {adapters[0]}"
    if ask.args is not None and ask.args.get("enable-lora"):
        return True, "server args"
    present, how = await ask.has_route("/v1/load_lora_adapter")
    return present, how


def adapters_in(models: Recording) -> list[str]:
    """The ids of `/v1/models` that have a parent: LoRA adapters."""
    return [str(row.get("id")) for row in rows_of(models) if row.get("parent")]


def rows_of(models: Recording) -> list[Mapping[str, Any]]:
    """The entries of `/v1/models`; none when it is not such a list."""
    try:
        rows = models.ok["data"]
    except (Undecided, LookupError, TypeError):
        return []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


async def _sleep(ask: Findings) -> Finding:
    recording = await ask.get("/is_sleeping")
    return recording.status not in UNKNOWN, f"GET /is_sleeping: {answered(recording)}"


async def _scripted(ask: Findings) -> Finding:
    if ask.args is not None and not ask.args.get("logits-processors"):
        return False, "server args: no logits-processors"
    if untried := await _without_chat(ask):
        return untried
    script = {"max_tokens": 32, "vllm_xargs": {"script": SCRIPT}}
    said = SCRIPT in (await ask.chat(**script)).text
    if not said:  # a broken parser is not a missing script: a completion goes through none
        said = SCRIPT in (await ask.trial("/v1/completions", {"prompt": "Hi", **script})).text
    return said, f"{TRIAL}: {'says what was scripted' if said else 'does not say what was scripted'}"


PROBES: dict[str, Callable[[Findings], Awaitable[Finding]]] = {
    "chat": _chat,
    "completions": _completions,
    "responses": _responses,
    "messages": _messages,
    "embeddings": _embeddings,
    "rerank": _rerank,
    "score": _score,
    "classify": _classify,
    "transcription": _transcription,
    "stream": _stream,
    "tools": _tools,
    "tools.required": _tools_required,
    "structured-output": _structured_output,
    "reasoning": _reasoning,
    "logprobs": _logprobs,
    "prefix-cache": _prefix_cache,
    "cached-tokens": _cached_tokens,
    "metrics": _metrics,
    "tokenize": _tokenize,
    "openapi": _openapi,
    "version": _version,
    "auth": _auth,
    "lora": _lora,
    "vision": _vision,
    "sleep": _sleep,
    "scripted": _scripted,
}
