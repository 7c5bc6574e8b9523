"""What the chat template makes of messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recording, Recordings, Server, check, listed, observe, only_if, unexpected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SPEC = "vllm:serving/openai_compatible_server/#chat-template"
NEEDS = ["chat", "tokenize"]
#: How most templates write what no text holds: `<|im_start|>`.
MARK = re.compile(r"<\|[^<>|\s]{1,40}\|>")
#: What no template writes otherwise.
PLAIN = re.compile(r"[A-Za-z0-9 .,?-]+")
CHATS = ("tokenize.chat", "tokenize.turns", "tokenize.system", "tokenize.begun")


@check("tokenize.chat.answered", MUST, spec=SPEC, needs=NEEDS, exchanges=CHATS)
def test_answered(vllm_recordings: Recordings) -> None:
    """Every conversation is rendered and tokenized."""
    wrong = unexpected(one for prefix in CHATS for one in vllm_recordings.of(prefix))

    assert not wrong, "; ".join(wrong)


@check("tokenize.chat.verbatim", MUST, spec=SPEC, needs=NEEDS)
def test_verbatim(tokenize_chat: Recording, tokenize_chat_back: Recording) -> None:
    """The user's words stand in the rendered prompt, once."""
    words = tokenize_chat.request.json["messages"][0]["content"]
    prompt = tokenize_chat_back.ok["prompt"]

    assert prompt.count(words) == 1, f"{words!r} stands {prompt.count(words)} times in {prompt!r}"


@check("tokenize.chat.history", MUST, spec=SPEC, needs=NEEDS)
def test_history(tokenize_turns: Recording, tokenize_turns_back: Recording) -> None:
    """Earlier turns stand in the rendered prompt, in order."""
    turns = [message["content"] for message in tokenize_turns.request.json["messages"]]
    prompt = tokenize_turns_back.ok["prompt"]
    places = [prompt.find(turn) for turn in turns]

    assert -1 not in places, f"missing from {prompt!r}: {turns[places.index(-1)]!r}"
    assert places == sorted(places), f"out of order in {prompt!r}"


@check("tokenize.chat.system", MUST, spec=SPEC, needs=NEEDS)
def test_system(tokenize_system: Recording, tokenize_system_back: Recording) -> None:
    """A system message stands in the rendered prompt, once, or is refused by name."""
    rule = tokenize_system.request.json["messages"][0]["content"]
    tokenize_system.answered()
    if tokenize_system.status != 200:
        said = f"{tokenize_system.status} {tokenize_system.text[:200]}"
        assert tokenize_system.status == 400, f"answered with {said}"
        assert "system" in tokenize_system.text.lower(), f"refused without naming the role: {said}"
        return
    prompt = tokenize_system_back.ok["prompt"]

    assert prompt.count(rule) == 1, f"{rule!r} stands {prompt.count(rule)} times in {prompt!r}"


@check("tokenize.chat.continued", MUST, spec="fault:vllm-project/vllm/issues/46256", needs=NEEDS)
def test_continued(tokenize_begun: Recording, tokenize_begun_back: Recording) -> None:
    """With `continue_final_message` the prompt ends where the begun answer ends."""
    begun = tokenize_begun.request.json["messages"][-1]["content"]
    prompt = tokenize_begun_back.ok["prompt"]

    assert prompt.endswith(begun), f"the prompt ends {prompt[-60:]!r}, the begun answer is {begun!r}"


@check("tokenize.chat.marks", MUST, spec=SPEC, needs=NEEDS)
def test_marks(tokenize_chat_back: Recording, tokenize_chat_pieces: Recording) -> None:
    """A rendered prompt comes back from its tokens with its special tokens."""
    strings = [str(one) for one in tokenize_chat_pieces.ok.get("token_strs") or ()]
    marks = [one for one in strings if MARK.fullmatch(one)]
    only_if(marks, "this template has no such marks")
    prompt = tokenize_chat_back.ok["prompt"]
    lost = [
        f"{one} {marks.count(one)} times, back {prompt.count(one)}"
        for one in dict.fromkeys(marks)
        if prompt.count(one) < marks.count(one)
    ]

    assert not lost, f"{', '.join(lost)}: {prompt!r:.120}"


@check(
    "tokenize.every.held",
    MUST,
    spec=SPEC,
    needs=NEEDS,
    exchanges=[
        "tokenize.in-a-row",
        "tokenize.in-a-row-chat",
        "tokenize.held[",
        "sizes.talk-count",
        "sizes.agent-count",
        "*",
    ],
)
def test_held(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """The tokens of a conversation, however long, hold the words of every turn of it."""
    only_if(vllm_server.templated, "this model's conversations are not rendered by a chat template")
    said = {
        tuple(one.request.json["tokens"]): str(one.json["prompt"])
        for one in vllm_recordings.of("tokenize.held[")
        if one.status == 200 and isinstance(one.json, dict) and "prompt" in one.json
    }
    asked = [one for one in vllm_recordings.of("") if one.request.path == "/tokenize" and one.status == 200]
    rows = [
        (one.key, words, _joined(words) in _joined(said[ids]))
        for one in asked
        if isinstance(one.json, dict) and (ids := tuple(one.json.get("tokens") or ())) in said
        for words in _plain_words(one.request.json.get("messages") or (), _joined(said[ids]))
    ]
    only_if(rows, "no conversation was read back")
    observe("messages read back", len(rows))
    wrong = [f"{key}: {words!r}" for key, words, held in rows if not held]

    assert not wrong, f"{len(wrong)} of {len(rows)} are not in the prompt: {listed(wrong)}"


def _plain_words(turns: Sequence[dict[str, Any]], prompt: str) -> Iterator[str]:
    """What is said in plain words, part by part: by users, assistants, and tools where one of them is heard.

    A template may write calls as it likes, and know no results.
    """
    results = [words for turn in turns if turn.get("role") == "tool" for words in _words(turn)]
    heard = any(_joined(words) in prompt for words in results)
    for turn in turns:
        spoken = turn.get("role") in ("user", "assistant") and not turn.get("tool_calls")
        if spoken or (heard and turn.get("role") == "tool"):
            yield from _words(turn)


def _words(turn: dict[str, Any]) -> list[str]:
    given = turn.get("content")
    parts = given if isinstance(given, list) else [{"text": given}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return [text for text in texts if isinstance(text, str) and PLAIN.fullmatch(text)]


def _joined(text: str) -> str:
    return "".join(text.split()).casefold()
