"""How messages reach the prompt."""

from __future__ import annotations

from pytest_vllm import MUST, Recording, Server, check, only_if

SPEC = "openai:chat/create#messages"
CHAT = ["chat"]


@check("chat.messages.parts", MUST, spec=SPEC, needs=CHAT)
def test_parts(chat_plain: Recording, chat_parts: Recording) -> None:
    """Text as a content part is the same prompt as the text itself."""
    plain, parts = _prompt(chat_plain), _prompt(chat_parts)

    assert parts == plain, f"{parts} prompt tokens as a part, {plain} as a string"


@check("chat.messages.system", MUST, spec=SPEC, needs=CHAT)
def test_system(chat_system_short: Recording, chat_system_long: Recording) -> None:
    """A longer system message makes a longer prompt, or the role is refused by name."""
    chat_system_long.answered()
    if chat_system_long.status != 200:
        said = f"{chat_system_long.status} {chat_system_long.text[:200]}"
        assert chat_system_long.status == 400, f"answered with {said}"
        assert "system" in chat_system_long.text.lower(), f"refused without naming the role: {said}"
        return
    short, long = _prompt(chat_system_short), _prompt(chat_system_long)

    assert long > short, f"{long} prompt tokens with the longer system message, {short} with the shorter"


@check("chat.messages.history", MUST, spec=SPEC, needs=["chat", "tokenize"])
def test_history(chat_turns: Recording, tokenize_turns: Recording) -> None:
    """A conversation of three turns is as long as `/tokenize` counts it."""
    used, counted = _prompt(chat_turns), tokenize_turns.ok["count"]

    assert used == counted, f"{used} prompt tokens, /tokenize counts {counted}"


@check("chat.messages.late-rule", MUST, spec=SPEC, needs=["chat", "tokenize"])
def test_late_rule(chat_late_rule: Recording, tokenize_late_rule: Recording, vllm_server: Server) -> None:
    """A rule in the middle of a conversation is part of the prompt, or is refused."""
    for one in (chat_late_rule, tokenize_late_rule):
        only_if(one.status not in (400, 422), f"refused: {one.text[:120]}")
    parsers = [str(vllm_server.args.get(name)) for name in ("tool-call-parser", "reasoning-parser")]
    only_if(not any(name.startswith("openai") for name in parsers), "rendered without a chat template")
    used, counted = _prompt(chat_late_rule), tokenize_late_rule.ok["count"]

    assert used == counted, f"{used} prompt tokens, /tokenize counts {counted}"


@check("chat.messages.empty", MUST, spec=SPEC, needs=CHAT)
def test_empty(chat_empty_user: Recording) -> None:
    """A message without a word is answered or refused, and is not a server error."""
    chat_empty_user.answered()

    assert chat_empty_user.status in (200, 400), f"answered with {chat_empty_user.status}"


@check("chat.messages.developer", MUST, spec=SPEC, needs=CHAT)
def test_developer(chat_developer: Recording, chat_developer_longer: Recording, vllm_server: Server) -> None:
    """A developer's message is part of the prompt."""
    only_if(bool(vllm_server.version) and vllm_server.at_least("0.32.0"), "templates decide before 0.32.0")
    only_if(chat_developer.status != 400, f"refused: {chat_developer.text[:120]}")
    # many templates have a system message of their own, which it replaces: no message at all is not a measure
    once, twice = _prompt(chat_developer), _prompt(chat_developer_longer)

    assert twice > once, (
        f"{once} prompt tokens with a developer's message, {twice} when it says the same twice"
    )


def _prompt(answer: Recording) -> int:
    return int(answer.ok["usage"]["prompt_tokens"])
