"""A field that is accepted has its effect: none of them is silently ignored."""

from __future__ import annotations

import json
from typing import Any

from pytest_vllm import MUST, Case, Recording, Server, check, need, only_if, text_of

from .exchanges import BEGUN, COMMON, ID, KEEP, LONG, QUESTION

VLLM = "vllm:serving/openai_compatible_server/"
RESPONSE = "openai:responses/create"
MESSAGE = "anthropic:messages"
TOKENS = ("tokenize",)
#: Parts of the names of models whose own tokenizer renders chats.
MISTRAL = ("stral", "mixtral")


def choice_of(answer: Recording) -> dict[str, Any]:
    """The first choice."""
    found: dict[str, Any] = answer.ok["choices"][0]
    return found


def refusable(answer: Recording) -> None:
    """Raise NotRun where a server may refuse, and did."""
    only_if(answer.status not in (400, 422, 501), f"refused: {answer.text[:120]}")


@check("fields.rendering", MUST, spec=VLLM, needs=("chat", *TOKENS))
def test_rendering(rendering: Case, fields_rendered: Recording, fields_rendered_count: Recording) -> None:
    """A conversation is rendered for an answer as it is for a count of its tokens."""
    refusable(fields_rendered)
    refusable(fields_rendered_count)
    used, counted = fields_rendered.ok["usage"]["prompt_tokens"], fields_rendered_count.ok["count"]

    assert used == counted, (
        f"{rendering['set']}: {used} tokens in the answer's usage, /tokenize counts {counted}"
    )


@check("fields.token-ids", MUST, spec=VLLM, needs=("chat", *TOKENS))
def test_token_ids(fields_ids: Recording, tokenize_chat: Recording, tokenize_chat_pieces: Recording) -> None:
    """A chat answer gives the ids of its prompt's tokens and of its own."""
    again = tokenize_chat_pieces.ok["tokens"] if tokenize_chat_pieces.status == 200 else None
    alike = again in (None, tokenize_chat.ok["tokens"])
    only_if(alike, "the template renders one conversation in two ways, as one does that tells the time")
    answer, own = fields_ids.ok, choice_of(fields_ids).get("token_ids")
    only = fields_ids.request.json["allowed_token_ids"]
    number = answer["usage"]["completion_tokens"]

    assert answer.get("prompt_token_ids") == tokenize_chat.ok["tokens"], (
        f"prompt {answer.get('prompt_token_ids')!r:.120}, /tokenize gives {tokenize_chat.ok['tokens']!r:.120}"
    )
    assert own == only * number, f"{number} times {only} were possible, token_ids is {own!r:.120}"


@check("fields.cut-prompt", MUST, spec=VLLM, needs=("completions", *TOKENS))
def test_cut(cut_side: Case, fields_cut: Recording, fields_whole_prompt: Recording) -> None:
    """A prompt is cut to its tokens at the side that was asked for."""
    whole = fields_whole_prompt.ok["tokens"]
    kept = choice_of(fields_cut).get("prompt_token_ids")
    wanted = whole[-KEEP:] if cut_side["side"] == "left" else whole[:KEEP]

    assert kept == wanted, f"cut at the {cut_side['side']}: {kept} of {whole}"


@check("fields.cut-chat", MUST, spec=VLLM, needs=("chat", *TOKENS))
def test_cut_chat(cut_side: Case, fields_cut_chat: Recording, tokenize_chat: Recording) -> None:
    """A conversation is cut to its tokens at the side that was asked for."""
    refusable(fields_cut_chat)
    whole, kept = tokenize_chat.ok["tokens"], fields_cut_chat.ok.get("prompt_token_ids")
    wanted = whole[-KEEP:] if cut_side["side"] == "left" else whole[:KEEP]

    assert kept == wanted, f"cut at the {cut_side['side']}: {kept} of {whole}"


@check("fields.prompt-logprobs", MUST, spec=VLLM, needs=["chat", "logprobs"])
def test_prompt_logprobs(fields_prompt_logprobs: Recording) -> None:
    """A chat prompt has a log probability for each token but the first."""
    answer = fields_prompt_logprobs.ok
    rows, number = answer.get("prompt_logprobs"), answer["usage"]["prompt_tokens"]

    assert isinstance(rows, list), f"prompt_logprobs is {rows!r:.80}"
    assert len(rows) == number, f"{len(rows)} entries for {number} tokens"
    assert rows[0] is None, f"the first token has nothing before it, and has {rows[0]!r:.80}"
    assert all(rows[1:]), f"no entry at {[at for at, row in enumerate(rows[1:], 1) if not row][:5]}"


@check("fields.prompt-text", MUST, spec=VLLM, needs=["chat"])
def test_prompt_text(vllm_server: Server, fields_prompt_text: Recording, models_list: Recording) -> None:
    """The text of a rendered prompt holds the question."""
    told = fields_prompt_text.ok
    text = told.get("prompt_text")
    no_text = "prompt_text" in told and text is None and _may_render_ids(vllm_server, models_list.text)
    only_if(not no_text, "chats are rendered to ids at once: prompt embeddings, or Mistral's tokenizer")

    assert QUESTION in str(text), f"prompt_text is {text!r:.160}"


def _may_render_ids(server: Server, models: str) -> bool:
    """Whether a chat may become ids without a text between, by the server's flags and the models it lists."""
    args = server.args
    mistral = args.get("tokenizer-mode") == "mistral" or any(word in models.lower() for word in MISTRAL)
    return not server.flags_known or bool(args.get("enable-prompt-embeds")) or mistral


@check("fields.echo", MUST, spec=VLLM, needs=["chat"])
def test_echo(fields_echo: Recording) -> None:
    """An echoed answer begins with what was begun."""
    refusable(fields_echo)
    text = choice_of(fields_echo)["message"].get("content") or ""

    assert text.startswith(BEGUN), f"{text!r:.120} does not begin with {BEGUN!r}"


@check("fields.echo-again", MUST, spec="fault:vllm-project/vllm/issues/19285", needs=["chat"])
def test_echo_again(fields_echo: Recording, fields_echo_again: Recording) -> None:
    """An echo is answered the second time, when its beginning is cached."""
    refusable(fields_echo)
    need(fields_echo.status == 200, f"the first time it was answered with {fields_echo.status}")
    fields_echo_again.answered()
    status = fields_echo_again.status

    assert status == 200, f"then {status}: {fields_echo_again.text[:160]}"


@check("fields.request-id", MUST, spec=VLLM)
def test_request_id(vllm_server: Server, named_route: Case, fields_named: Recording) -> None:
    """An answer has the id that its request brought."""
    only_if(not vllm_server.api_only, "something in front of the server may give ids of its own")
    fields_named.answered()
    status, text = fields_named.status or 0, fields_named.text[:160]

    assert status < 500, f"{named_route.id}: a request that brings its id is answered with {status}: {text}"
    given, told = str(fields_named.ok["id"]), fields_named.header("x-request-id")
    between = bool(told) and told in given and not vllm_server.kind.starts  # a header goes before the body
    only_if(ID in given or not between, "something in front of the server names requests itself")

    assert ID in given, f"{named_route.id}: id {given!r}, the request brought {ID!r}"


@check("fields.logprob-token-ids", MUST, spec=VLLM, needs=("chat", "logprobs", *TOKENS))
def test_logprob_token_ids(fields_score_ids: Recording) -> None:
    """Each token of a chat answer has the log probabilities that were asked for by id."""
    wanted = _names(fields_score_ids)
    rows = choice_of(fields_score_ids)["logprobs"]["content"]
    wrong = [row["token"] for row in rows if not wanted <= {one["token"] for one in row["top_logprobs"]}]

    assert rows, "there are no log probabilities"
    assert not wrong, f"{sorted(wanted)} are not among those of {wrong}"


@check("fields.stop-included", MUST, spec=VLLM, needs=["chat"])
def test_stop_included(fields_stop_included: Recording) -> None:
    """A chat answer keeps the stop string that was wanted in it."""
    choice = choice_of(fields_stop_included)
    need(choice["finish_reason"] == "stop" and choice.get("stop_reason") in COMMON, "no stop string came")
    text = text_of(choice)

    assert text.endswith(choice["stop_reason"]), f"{text!r} was stopped by {choice['stop_reason']!r}"


@check("fields.repetition", MUST, spec=VLLM, needs=("chat", *TOKENS))
def test_repetition(fields_repeats: Recording) -> None:
    """A chat answer that repeats itself ends where that was asked for."""
    _ends_early(fields_repeats)


@check("fields.repetition-completion", MUST, spec=VLLM, needs=("completions", *TOKENS))
def test_repetition_completion(fields_repeats_completion: Recording) -> None:
    """A completion that repeats itself ends where that was asked for."""
    _ends_early(fields_repeats_completion)


@check("fields.stream-interval", MUST, spec=VLLM, needs=["chat", "stream"])
def test_interval(fields_interval: Recording) -> None:
    """A chat stream comes in pieces of as many tokens as were asked for."""
    _in_pieces(fields_interval)


@check("fields.stream-interval-completion", MUST, spec=VLLM, needs=["completions", "stream"])
def test_interval_completion(fields_interval_completion: Recording) -> None:
    """A completion stream comes in pieces of as many tokens as were asked for."""
    _in_pieces(fields_interval_completion)


@check("fields.beams", MUST, spec=VLLM, needs=["chat"])
def test_beams(fields_beams: Recording) -> None:
    """A search with two beams ends in two chat answers that are not the same."""
    refusable(fields_beams)
    texts = [text_of(choice) for choice in fields_beams.ok["choices"]]

    assert len(texts) == 2, f"{len(texts)} answers of two beams"
    assert texts[0] != texts[1], f"both beams say {texts[0]!r:.100}"


@check("fields.response-logprobs", MUST, spec=f"{RESPONSE}#include", needs=["responses", "logprobs"])
def test_response_logprobs(fields_response_logprobs: Recording) -> None:
    """A response has the log probabilities that were asked for."""
    refusable(fields_response_logprobs)
    parts = [part for item in fields_response_logprobs.ok["output"] for part in item.get("content") or ()]
    spoken = [part for part in parts if part.get("type") == "output_text"]
    only_if(spoken, "the response has no text: its few tokens were reasoning")
    rows = [row for part in spoken for row in part.get("logprobs") or ()]

    assert rows, "the text has no log probabilities"
    assert all(len(row.get("top_logprobs") or ()) >= 2 for row in rows), f"fewer than two: {rows[0]!r:.120}"


@check("fields.response-choice", MUST, spec=VLLM, needs=["responses", "structured-output"])
def test_response_choice(fields_response_choice: Recording) -> None:
    """A response that can only be one word is that word."""
    items = [item for item in fields_response_choice.ok["output"] if item.get("type") == "message"]
    need(items, "the response has no message: thinking took all tokens")
    text = "".join(part.get("text") or "" for item in items for part in item["content"])

    assert text.strip() == "heron", f"only 'heron' was possible, the text is {text!r:.100}"


@check("fields.message-format", MUST, spec=MESSAGE, needs=["messages", "structured-output"])
def test_message_format(fields_message_format: Recording) -> None:
    """A message in a format that leaves no choice is what the format says."""
    blocks = fields_message_format.ok.get("content") or []
    text = "".join(block.get("text") or "" for block in blocks if block.get("type") == "text")
    need(text, "the message has no text: thinking took all tokens")
    cut = fields_message_format.ok.get("stop_reason") == "max_tokens"
    begun = '{"bird":"heron"}'.startswith("".join(text.split()))
    need(not (cut and begun), f"the model filled its tokens with white space: {text!r:.60}")

    assert _value(text) == {"bird": "heron"}, (
        f"only {{'bird': 'heron'}} was possible, the text is {text!r:.100}"
    )


def _names(answer: Recording) -> set[str]:
    return {f"token_id:{number}" for number in answer.request.json["logprob_token_ids"]}


def _ends_early(answer: Recording) -> None:
    number = answer.ok["usage"]["completion_tokens"]

    assert number < LONG, f"one token came {number} times, the limit on repetition is far below"


def _in_pieces(answer: Recording) -> None:
    """A quarter of the events, and a few that carry no token: the role, the finish, the end mark."""
    number = len(answer.events)

    assert number <= LONG // 2, f"{number} events for {LONG} tokens, asked for were pieces of four tokens"


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
