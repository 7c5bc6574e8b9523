"""A whole answer: its shape, its identity, its counts."""

from pytest_vllm import (
    INFO,
    MUST,
    SHOULD,
    Recording,
    Recordings,
    Server,
    check,
    listed,
    need,
    only_if,
    shape_faults,
    unexpected,
)

from .exchanges import TOKENS
from .items import items, wholes, words

SPEC = "openai:responses/object"
NEEDS = ("responses",)
AREA = ("responses.",)


@check("responses.answered", MUST, spec="openai:responses/create", needs=NEEDS, exchanges=AREA)
def test_answered(vllm_recordings: Recordings) -> None:
    """Every valid request that is not streamed gets the status it is meant to get."""
    asked = [r for r in vllm_recordings.of("responses.") if not r.request.streams]
    wrong = unexpected(r for r in asked if not r.key.startswith(("responses.call", "responses.history")))

    assert not wrong, listed(wrong)


@check("responses.schema", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_schema(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """An answer has the fields and types that clients rely on."""
    wrong = shape_faults("response", wholes(vllm_recordings), vllm_server.version, MUST)

    assert not wrong, listed(wrong)


@check("responses.schema-fully", SHOULD, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_schema_fully(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """An answer has the fields that OpenAI always sends."""
    wrong = shape_faults("response", wholes(vllm_recordings), vllm_server.version, SHOULD)

    assert not wrong, listed(wrong)


@check("responses.known-fields", INFO, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_known_fields(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """No answer has a field that neither OpenAI nor this vLLM is known to send."""
    wrong = shape_faults("response", wholes(vllm_recordings), vllm_server.version, INFO)

    assert not wrong, listed(wrong)


@check("responses.id.prefix", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_id(vllm_recordings: Recordings) -> None:
    """The id of a response begins with `resp_`, by which it is asked for later."""
    ids = {r.key: r.ok.get("id") for r in wholes(vllm_recordings)}
    need(ids, "no request was answered")
    wrong = [f"{key}: {found!r}" for key, found in ids.items() if not str(found).startswith("resp_")]

    assert not wrong, listed(wrong)


@check("responses.id.unique", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_unique(vllm_recordings: Recordings) -> None:
    """No two responses share an id."""
    answers = [r for r in wholes(vllm_recordings) if r.key != "responses.retrieved"]
    need(len(answers) > 1, f"{len(answers)} requests were answered")
    ids = [str(r.ok.get("id")) for r in answers]

    assert len(set(ids)) == len(ids), f"{len(ids) - len(set(ids))} of {len(ids)} ids were given before"


@check("responses.model", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_model(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """An answer names the model that was asked for, or another name of it."""
    answers = wholes(vllm_recordings)
    need(answers, "no request was answered")
    known = {vllm_server.model, *vllm_server.models}
    wrong = [f"{r.key}: {r.ok.get('model')!r}" for r in answers if r.ok.get("model") not in known]

    assert not wrong, listed(wrong)


@check("responses.output.filled", MUST, spec=SPEC, needs=NEEDS)
def test_filled(responses_plain: Recording) -> None:
    """An answer of a dozen tokens holds an item that says something."""
    need(responses_plain.ok["usage"]["output_tokens"] > 1, "the model ended at once")

    assert words(responses_plain.ok).strip(), f"output is {responses_plain.ok.get('output')!r:.120}"


@check("responses.output.ids", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_item_ids(vllm_recordings: Recordings) -> None:
    """Every output item has an id of its own."""
    ids = [
        (r.key, str(item.get("id") or ""))
        for r in wholes(vllm_recordings)
        for item in items(r.ok)
        if r.key != "responses.retrieved"
    ]
    need(ids, "no answer held an item")
    wrong = [f"{key}: {found!r}" for key, found in ids if not found]
    named = [found for _, found in ids if found]

    assert not wrong, f"no id in {listed(wrong)}"
    assert len(set(named)) == len(named), f"{len(named) - len(set(named))} of {len(named)} were given before"


@check("responses.output.message", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_message(vllm_recordings: Recordings) -> None:
    """A text is a message of the assistant, in parts of type `output_text`."""
    messages = [(r.key, item) for r in wholes(vllm_recordings) for item in items(r.ok, "message")]
    need(any(items(r.ok) for r in wholes(vllm_recordings)), "no answer held an item")
    wrong = [
        f"{key}: role {item.get('role')!r}, parts {[p.get('type') for p in item.get('content') or []]}"
        for key, item in messages
        if item.get("role") != "assistant"
        or any(part.get("type") not in ("output_text", "refusal") for part in item.get("content") or [])
    ]

    assert not wrong, listed(wrong)


@check("responses.usage.sum", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_sum(vllm_recordings: Recordings) -> None:
    """The total of tokens is input plus output."""
    found = {r.key: r.ok.get("usage") or {} for r in wholes(vllm_recordings)}
    counted = {key: usage for key, usage in found.items() if "total_tokens" in usage}
    need(counted, "no answer gave usage")
    wrong = [
        f"{key}: {usage['input_tokens']} + {usage['output_tokens']} is {usage['total_tokens']}"
        for key, usage in counted.items()
        if usage["total_tokens"] != usage["input_tokens"] + usage["output_tokens"]
    ]

    assert not wrong, listed(wrong)


@check("responses.usage.counted", MUST, spec="fault:vllm-project/vllm/issues/24184", needs=NEEDS)
def test_counted(responses_plain: Recording) -> None:
    """Input and output tokens are counted, and no more than were asked for."""
    usage = responses_plain.ok.get("usage") or {}
    given, made = usage.get("input_tokens") or 0, usage.get("output_tokens") or 0

    assert given > 0, f"input_tokens is {usage.get('input_tokens')}"
    assert 0 < made <= TOKENS, f"output_tokens is {usage.get('output_tokens')} of {TOKENS}"


@check("responses.usage.like-chat", SHOULD, spec=SPEC, needs=("responses", "chat"))
def test_like_chat(responses_list: Recording, responses_chat: Recording) -> None:
    """The same question has as many input tokens as over chat."""
    ours, chat = responses_list.ok["usage"]["input_tokens"], responses_chat.ok["usage"]["prompt_tokens"]

    assert ours == chat, f"{ours} here, {chat} over chat"


@check("responses.echo", MUST, spec=SPEC, needs=NEEDS)
def test_echo(responses_plain: Recording) -> None:
    """An answer repeats the settings it was made with."""
    sent, body = responses_plain.request.json, responses_plain.ok
    names = ("max_output_tokens", "temperature", "metadata")
    wrong = [
        f"{name}: {body.get(name)!r}, not {sent[name]!r}" for name in names if body.get(name) != sent[name]
    ]

    assert not wrong, "; ".join(wrong)


@check("responses.stored.same", MUST, spec="openai:responses/get", needs=NEEDS)
def test_stored(responses_stored: Recording, responses_retrieved: Recording) -> None:
    """A response that was stored is given back as it was."""
    only_if(responses_retrieved.status != 404, "responses are not stored (VLLM_ENABLE_RESPONSES_API_STORE)")
    made, kept = responses_stored.ok, responses_retrieved.ok
    pairs = {name: (made.get(name), kept.get(name)) for name in ("id", "status", "output", "usage")}
    wrong = [
        f"{name}: {there!r:.60}, not {here!r:.60}" for name, (here, there) in pairs.items() if here != there
    ]

    assert not wrong, "; ".join(wrong)
