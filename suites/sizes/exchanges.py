"""Requests that are larger, longer or rarer than those of other suites: what is right may end at a size.

Each leaves the model no choice, or is judged by the tokens of its prompt: what is right is then known for any
model. Long answers are as long as the server's speed, measured on an earlier answer, allows.
"""

from __future__ import annotations

from typing import Any

from pytest_vllm import Case, Recording, Request, Server, cases, exchange, only_if, undecided

from .conversations import TOOL, chat_agent, chat_tool, message_agent, parameters, plain, response_agent

QUESTION = "What is the capital of France?"
#: Tokens of a long stream, and seconds that it may take where many are served at once.
LONG, PATIENCE = 2100, 60.0
#: How many tokens other suites' streams have; a shorter one would show nothing new.
USUAL = 320
#: Tokens of the longest prompt here, and what is left of the context beside it.
LONGEST, REST = 30_000, 144
#: Tokens of a long prompt at least; a shorter one would show nothing new.
LEAST = 600
#: Tokens of a prompt that is read in several steps: more than a server reads at once by default.
STEPS = 2600
#: Tools at most, and as many as other suites offer.
TOOLS, FEW = 128, 20
CHOICES = 16
#: Words of a long text in a form, and the form.
STORY = " ".join(f"heron {number} flies" for number in range(24))
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "story": {"type": "string", "enum": [STORY]},
        "end": {"type": "string", "enum": ["curlew"]},
    },
    "required": ["story", "end"],
    "additionalProperties": False,
}
HOT: dict[str, Any] = {"temperature": 2.0, "top_p": 1.0, "top_k": -1}

PLAIN = "heron"
CODE = "curlew-6203"
CODE_ASKED = f'Repeat this code and nothing else: "{CODE}"'
#: A short sentence in each script that other suites leave out, and in some that they do not.
SCRIPTS = {
    "arabic": "السلام عليكم",
    "bengali": "শুভ সকাল",
    "emoji": "👍🏽👩‍👩‍👧🇫🇷",
    "georgian": "დილა მშვიდობისა",
    "greek": "Καλημέρα",
    "hebrew": "שָׁלוֹם",
    "hindi": "नमस्ते",
    "japanese": "おはよう",
    "korean": "안녕하세요",
    "tamil": "வணக்கம்",
    "thai": "สวัสดีครับ",
    "cyrillic": "Доброе утро",
}
#: Headers as clients and what stands in front of servers send them.
HEADERS: list[dict[str, Any]] = [
    {
        "id": "openai-sdk",
        "headers": {
            "User-Agent": "OpenAI/Python 2.3.0",
            "X-Stainless-Lang": "python",
            "X-Stainless-Package-Version": "2.3.0",
            "X-Stainless-Retry-Count": "0",
            "X-Stainless-Read-Timeout": "600",
        },
    },
    {
        "id": "anthropic-sdk",
        "headers": {"Anthropic-Version": "2023-06-01", "Anthropic-Beta": "claude-code-20250219"},
    },
    {
        "id": "trace",
        "headers": {
            "Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "Tracestate": "gate=1",
            "Baggage": "user=1",
        },
    },
    {
        "id": "proxy",
        "headers": {
            "X-Forwarded-For": "203.0.113.7",
            "X-Forwarded-Proto": "https",
            "Forwarded": "for=203.0.113.7",
            "Via": "1.1 gate",
        },
    },
]

script = cases("script", [{"id": name, "text": text} for name, text in SCRIPTS.items()])
client_headers = cases("client_headers", HEADERS)
talk = cases("talk", [{"id": str(turns), "turns": turns} for turns in (7, 41)])


@exchange("sizes.stream")
def sizes_stream(server: Server, tokenize_word: Recording, completions_default_length: Recording) -> Request:
    """A drawn chat stream of 2,100 tokens, or of as many as this server makes in a minute."""
    per_token = completions_default_length.seconds / 16
    room = (server.max_model_len or 4096) - 128
    tokens = min(LONG, room, int(PATIENCE / per_token) if per_token else LONG)
    only_if(room > USUAL, f"the context of {server.max_model_len} tokens is shorter than such a stream")
    only_if(tokens > USUAL, f"{per_token:.2f} s a token: {LONG} would take {LONG * per_token:.0f} s")
    return _streamed(server, tokenize_word, tokens, temperature=1.0)


@exchange("sizes.stream-short")
def sizes_stream_short(server: Server, tokenize_word: Recording) -> Request:
    """The same of eight tokens: what fails here is no matter of length."""
    return _streamed(server, tokenize_word, 8)


@exchange("sizes.plain")
def sizes_plain(server: Server) -> Request:
    """A plain word that a constraint makes the model write."""
    return _written(server, PLAIN)


@exchange("sizes.plain-stream")
def sizes_plain_stream(server: Server) -> Request:
    """The same, streamed."""
    return _written(server, PLAIN, stream=True)


@exchange("sizes.prompt-probe")
def sizes_prompt_probe(server: Server) -> Request:
    """The tokens of two hundred numbers in words."""
    return server.post("/tokenize", {"prompt": _numbers(200), "add_special_tokens": False})


@exchange("sizes.prompt")
def sizes_prompt(server: Server, sizes_prompt_probe: Recording, streaming_long_prompt: Recording) -> Request:
    """A question behind a text that all but fills the context, or takes half a minute to read."""
    text = _long_text(server, sizes_prompt_probe, streaming_long_prompt)
    return server.chat(f"{text}\n{CODE_ASKED}", max_tokens=16)


@exchange("sizes.prompt-written")
def sizes_prompt_written(
    server: Server, sizes_prompt_probe: Recording, streaming_long_prompt: Recording
) -> Request:
    """A constraint behind that text."""
    return _written(server, PLAIN, _long_text(server, sizes_prompt_probe, streaming_long_prompt, STEPS))


@exchange("sizes.prompt-short")
def sizes_prompt_short(server: Server) -> Request:
    """The same question behind a short text."""
    return server.chat(f"{_numbers(12)}\n{CODE_ASKED}", max_tokens=16)


@exchange("sizes.prompt-count")
def sizes_prompt_count(server: Server, sizes_prompt: Recording) -> Request:
    """The tokens of the same conversation."""
    return server.post("/tokenize", {"messages": sizes_prompt.request.json["messages"]})


@exchange("sizes.talk")
def sizes_talk(server: Server, talk: Case) -> Request:
    """A conversation of more turns than other suites have."""
    return server.chat(plain(talk["turns"]), max_tokens=1)


@exchange("sizes.talk-count")
def sizes_talk_count(server: Server, talk: Case) -> Request:
    """The tokens of the same conversation."""
    return server.post("/tokenize", {"messages": plain(talk["turns"])})


@exchange("sizes.agent")
def sizes_agent(server: Server) -> Request:
    """A conversation of forty turns and more with twelve tool results; some templates refuse it."""
    ids = server.taken("/v1/chat/completions", return_token_ids=True)
    return server.chat(chat_agent(), tools=[chat_tool()], max_tokens=1, expect=None, **ids)


@exchange("sizes.agent-count")
def sizes_agent_count(server: Server) -> Request:
    """The tokens of the same conversation."""
    return server.post("/tokenize", {"messages": chat_agent(), "tools": [chat_tool()]}, expect=None)


@exchange("sizes.agent-messages")
def sizes_agent_messages(server: Server) -> Request:
    """The same conversation as Messages."""
    body = {"messages": message_agent(), "tools": [_message_tool()], "max_tokens": 1}
    return server.post("/v1/messages", body, expect=None)


@exchange("sizes.agent-messages-count")
def sizes_agent_messages_count(server: Server) -> Request:
    """The tokens of the same conversation."""
    body = {"messages": message_agent(), "tools": [_message_tool()]}
    return server.post("/v1/messages/count_tokens", body, expect=None)


@exchange("sizes.agent-response")
def sizes_agent_response(server: Server) -> Request:
    """The same conversation as Responses."""
    return _response(server, response_agent())


@exchange("sizes.agent-response-less")
def sizes_agent_response_less(server: Server) -> Request:
    """The same without the last call and its result."""
    items = response_agent()
    last = max(at for at, item in enumerate(items) if item.get("type") == "function_call")
    return _response(server, items[:last] + items[last + 2 :])


@exchange("sizes.tools-probe")
def sizes_tools_probe(server: Server) -> Request:
    """The tokens of a question beside twenty tools; some templates and versions refuse it."""
    turns = [{"role": "user", "content": QUESTION}]
    return server.post("/tokenize", {"messages": turns, "tools": [*map(_pick, range(FEW))]}, expect=None)


@exchange("sizes.tools")
def sizes_tools(server: Server, sizes_tools_probe: Recording, tokenize_chat: Recording) -> Request:
    """A question beside many tools."""
    tools = _many(server, sizes_tools_probe, tokenize_chat)
    return server.chat(QUESTION, tools=tools, max_tokens=1)


@exchange("sizes.tools-count")
def sizes_tools_count(server: Server, sizes_tools: Recording) -> Request:
    """The tokens of the question beside these tools."""
    asked = sizes_tools.request.json
    return server.post("/tokenize", {"messages": asked["messages"], "tools": asked["tools"]})


@exchange("sizes.tools-last")
def sizes_tools_last(server: Server, sizes_tools_probe: Recording, tokenize_chat: Recording) -> Request:
    """The last of many tools, forced."""
    tools = _many(server, sizes_tools_probe, tokenize_chat)
    last = {"type": "function", "function": {"name": tools[-1]["function"]["name"]}}
    return server.chat("Read line 1.", tools=tools, tool_choice=last, max_tokens=128)


@exchange("sizes.prompt-streamed")
def sizes_prompt_streamed(sizes_prompt: Recording) -> Request:
    """The long prompt, answered in a stream."""
    return _streaming(sizes_prompt)


@exchange("sizes.agent-streamed")
def sizes_agent_streamed(sizes_agent: Recording) -> Request:
    """The chat of an agent, answered in a stream."""
    return _streaming(sizes_agent)


@exchange("sizes.agent-messages-streamed")
def sizes_agent_messages_streamed(sizes_agent_messages: Recording) -> Request:
    """The Messages of an agent, answered in a stream."""
    return _streaming(sizes_agent_messages)


@exchange("sizes.agent-response-streamed")
def sizes_agent_response_streamed(sizes_agent_response: Recording) -> Request:
    """The items of an agent, answered in a stream."""
    return _streaming(sizes_agent_response)


@exchange("sizes.form")
def sizes_form(server: Server) -> Request:
    """A form that can be filled in in one way, with a long text."""
    rule = {"name": "form", "strict": True, "schema": FORM}
    form = {"type": "json_schema", "json_schema": rule}
    return server.chat("Fill in the form.", max_tokens=400, response_format=form, expect=None)


@exchange("sizes.choices")
def sizes_choices(server: Server) -> Request:
    """Sixteen choices at a temperature where no two are alike."""
    return server.chat("Tell me a story.", n=CHOICES, max_tokens=6, ignore_eos=True, **HOT)


@exchange("sizes.choices-stream")
def sizes_choices_stream(server: Server) -> Request:
    """The same, streamed."""
    hot: dict[str, Any] = {**HOT, "stream_options": {"include_usage": True}}
    return server.chat("Tell me a story.", n=CHOICES, max_tokens=6, ignore_eos=True, stream=True, **hot)


@exchange("sizes.script")
def sizes_script(server: Server, script: Case) -> Request:
    """A sentence in a script, which a constraint makes the model write."""
    return _written(server, script["text"])


@exchange("sizes.script-stream")
def sizes_script_stream(server: Server, script: Case) -> Request:
    """The same, streamed."""
    return _written(server, script["text"], stream=True)


@exchange("sizes.script-chat")
def sizes_script_chat(server: Server, script: Case) -> Request:
    """The same sentence as a question."""
    return server.chat(script["text"], max_tokens=1)


@exchange("sizes.script-count")
def sizes_script_count(server: Server, script: Case) -> Request:
    """The tokens of that question."""
    return server.post("/tokenize", {"messages": [{"role": "user", "content": script["text"]}]})


@exchange("sizes.headers")
def sizes_headers(server: Server, client_headers: Case) -> Request:
    """A question with the headers of a client."""
    request = server.chat(QUESTION, max_tokens=1)
    return Request(request.method, request.path, json=request.json, headers=client_headers["headers"])


def _streamed(server: Server, word: Recording, tokens: int, **more: Any) -> Request:
    only = {"allowed_token_ids": word.ok["tokens"][-1:], "ignore_eos": True, **more}
    usage = {"include_usage": True}
    return server.chat(QUESTION, max_tokens=tokens, stream=True, stream_options=usage, **only)


def _streaming(whole: Recording) -> Request:
    """What was asked whole, asked for as a stream."""
    asked, path = whole.request.json, whole.request.path
    only_if(whole.status == 200, f"{whole.key} was not served")
    usage = {"stream_options": {"include_usage": True}} if path == "/v1/chat/completions" else {}
    return Request(whole.request.method, path, json={**asked, "stream": True, **usage}, expect=None)


def _numbers(words: int) -> str:
    return " ".join(str(1000 + 7 * at % 9000) for at in range(words))


def _long_text(server: Server, probe: Recording, earlier: Recording, most: int = LONGEST) -> str:
    """Numbers that come near the context's end; fewer where reading them would take long."""
    each = probe.ok["count"] / 200
    seconds = earlier.seconds or PATIENCE
    fast = int(600 * each * PATIENCE / 2 / seconds)
    room = (server.max_model_len or 4096) - REST
    only_if(room >= LEAST, f"needs a context of {LEAST + REST} tokens")
    tokens = min(room, most, fast)
    if tokens < LEAST:
        undecided(f"the speed allows {tokens} tokens only")
    return _numbers(int(tokens / each))


def _pick(at: int) -> dict[str, Any]:
    nothing: dict[str, Any] = {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": f"pick_{at:03}", "parameters": nothing}}


def _many(server: Server, probe: Recording, alone: Recording) -> list[dict[str, Any]]:
    """As many tools as the context holds, 128 at most."""
    only_if(probe.status == 200, f"tools are refused: {probe.text[:120]}")
    each = max(1, probe.ok["count"] - alone.ok["count"]) / FEW
    number = min(TOOLS, int(((server.max_model_len or 4096) - 256) * 0.9 / each))
    only_if(number > FEW, f"a context of {server.max_model_len} tokens holds {number} tools only")
    return [_pick(at) for at in range(number)]


def _message_tool() -> dict[str, Any]:
    return {"name": TOOL, "description": TOOL, "input_schema": parameters()}


def _response(server: Server, items: list[dict[str, Any]]) -> Request:
    tool = {"type": "function", "name": TOOL, "description": TOOL, "parameters": parameters()}
    body = {"input": items, "tools": [tool], "max_output_tokens": 1, "store": False, "temperature": 0}
    return server.post("/v1/responses", body, expect=None)


def _written(server: Server, text: str, before: str = "", **more: Any) -> Request:
    """A completion that can only be this text; the tag ends thinking where constraints begin after it."""
    constraint: dict[str, Any] = {"structured_outputs": {"choice": [text]}}
    if not server.at_least("0.11.0"):
        constraint = {"guided_choice": [text]}
    prompt = f"{before}<think>\n</think>\nWrite:"
    return server.completion(prompt, max_tokens=96, **constraint, **more)
