"""Requests of the tokenize suite: no tokens are generated here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm import Case, Recording, Request, Server, case_file, cases, exchange

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

QUESTION = "What is the capital of France?"
OPENING = "The capital of France is"
BEGUN = "The capital city of"
RULE = "Answer in one short sentence."
TURNS = ("My dog is called Bello.", "Good to know.", "How is my dog called?")

#: Two messages of the user in a row, the second in two parts: what clients send after an answer failed.
IN_A_ROW: list[dict[str, Any]] = [
    {"role": "user", "content": "The first heron is grey."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "The second heron is white."},
            {"type": "text", "text": "How many herons are there?"},
        ],
    },
]
#: Conversations at most that are read back.
READ_BACK = 10

round_trip = cases("round_trip", case_file("round-trip"))


@exchange("tokenize.text")
def tokenize_text(server: Server, round_trip: Case) -> Request:
    """A text without special tokens."""
    return _text(server, round_trip["text"])


@exchange("tokenize.text-back")
def tokenize_text_back(server: Server, round_trip: Case, tokenize_text: Recording) -> Request:  # noqa: ARG001
    """The same text from its tokens."""
    return _back(server, tokenize_text)


@exchange("tokenize.opening")
def tokenize_opening(server: Server) -> Request:
    """The prompt of the completions suite as the server reads it, special tokens included."""
    return server.post("/tokenize", {"prompt": OPENING, "return_token_strs": True})


@exchange("tokenize.opening-bare")
def tokenize_opening_bare(server: Server) -> Request:
    """The same prompt without special tokens."""
    return _text(server, OPENING)


@exchange("tokenize.word")
def tokenize_word(server: Server) -> Request:
    """A word whose last token the completions suite makes the only possible one."""
    return _text(server, " hello")


@exchange("tokenize.rule")
def tokenize_rule(server: Server) -> Request:
    """Four equal signs, which are one token in many vocabularies."""
    return _text(server, "====")


@exchange("tokenize.repeated")
def tokenize_repeated(server: Server, completions_pair: Recording) -> Request:
    """The token that the completions suite sees repeated, as a word by itself."""
    word = str(completions_pair.ok["choices"][0]["logprobs"]["tokens"][0])
    return _text(server, word)


@exchange("tokenize.other-word")
def tokenize_other_word(server: Server) -> Request:
    """A second word."""
    return _text(server, " world")


@exchange("tokenize.chat")
def tokenize_chat(server: Server) -> Request:
    """The plain question of the chat suite, rendered."""
    return _messages(server, {"role": "user", "content": QUESTION})


@exchange("tokenize.chat-pieces")
def tokenize_chat_pieces(server: Server) -> Request:
    """The same with the text of each token."""
    question = {"role": "user", "content": QUESTION}
    return server.post("/tokenize", {"messages": [question], "return_token_strs": True})


@exchange("tokenize.chat-back")
def tokenize_chat_back(server: Server, tokenize_chat: Recording) -> Request:
    """The rendered question as text."""
    return _back(server, tokenize_chat)


@exchange("tokenize.turns")
def tokenize_turns(server: Server) -> Request:
    """A conversation of three turns, rendered."""
    roles = ("user", "assistant", "user")
    return _messages(server, *({"role": r, "content": t} for r, t in zip(roles, TURNS, strict=True)))


@exchange("tokenize.turns-back")
def tokenize_turns_back(server: Server, tokenize_turns: Recording) -> Request:
    """The rendered conversation as text."""
    return _back(server, tokenize_turns)


@exchange("tokenize.late-rule")
def tokenize_late_rule(server: Server, chat_late_rule: Recording) -> Request:
    """A conversation with a rule in its middle, as it was asked; some templates refuse it."""
    return server.post("/tokenize", {"messages": chat_late_rule.request.json["messages"]}, expect=None)


@exchange("tokenize.system")
def tokenize_system(server: Server) -> Request:
    """A system message before the question; some templates know none and refuse it."""
    rule = {"role": "system", "content": RULE}
    question = {"role": "user", "content": QUESTION}
    return server.post("/tokenize", {"messages": [rule, question]}, expect=None)


@exchange("tokenize.system-back")
def tokenize_system_back(server: Server, tokenize_system: Recording, tokenize_chat: Recording) -> Request:
    """The rendered question with its system message as text."""
    return _back(server, tokenize_system if tokenize_system.status == 200 else tokenize_chat)


@exchange("tokenize.begun")
def tokenize_begun(server: Server) -> Request:
    """An answer that was begun and is to be gone on with."""
    question = {"role": "user", "content": QUESTION}
    begun = {"role": "assistant", "content": BEGUN}
    goes_on = {"add_generation_prompt": False, "continue_final_message": True}
    return server.post("/tokenize", {"messages": [question, begun], **goes_on})


@exchange("tokenize.begun-back")
def tokenize_begun_back(server: Server, tokenize_begun: Recording) -> Request:
    """The begun answer as text."""
    return _back(server, tokenize_begun)


@exchange("tokenize.in-a-row")
def tokenize_in_a_row(server: Server) -> Request:
    """Two messages of the user in a row; some templates refuse them."""
    return server.post("/tokenize", {"messages": IN_A_ROW}, expect=None)


@exchange("tokenize.in-a-row-chat")
def tokenize_in_a_row_chat(server: Server) -> Request:
    """The same for an answer."""
    return server.chat(IN_A_ROW, max_tokens=1, expect=None)


@exchange("tokenize.held", afterwards=True)
def tokenize_held(server: Server, recorded: Sequence[Recording]) -> Iterator[Request]:
    """The text of the tokens that conversations were made of, one of each length and order of roles."""
    seen: set[str] = set()
    for one in sorted(recorded, key=lambda one: not one.key.startswith(("tokenize.", "sizes."))):
        if one.status == 200 and one.request.path == "/tokenize" and isinstance(one.json, dict):
            turns = one.request.json.get("messages")
            kind = json.dumps([turn.get("role") for turn in turns]) if isinstance(turns, list) else ""
            if kind and len(turns) > 1 and kind not in seen and len(seen) < READ_BACK:
                seen.add(kind)
                yield _back(server, one)


def _text(server: Server, text: str) -> Request:
    return server.post("/tokenize", {"prompt": text, "add_special_tokens": False})


def _messages(server: Server, *messages: dict[str, str]) -> Request:
    return server.post("/tokenize", {"messages": list(messages)})


def _back(server: Server, tokenized: Recording) -> Request:
    return server.post("/detokenize", {"tokens": tokenized.ok["tokens"]})
