"""What no answer may hold: another request's words, torn characters, marks of the template."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, SHOULD, Recording, Recordings, Server, check, listed, observe, only_if

from .answers import COMPLETIONS, answers
from .apis import TORN

if TYPE_CHECKING:
    from .answers import Answer
    from .apis import Choice

MIXED = "fault:vllm-project/vllm/issues/9910"
OBJECT = "openai:chat/object"
#: Codes that a prompt gives and no model would say by itself: `QX7-4182`, `kestrel-4417`, a checksum.
CODE = re.compile(r"\b(?:[A-Za-z]{2,}\d?-\d{4}|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{12,})\b")
#: Names that look like codes and are known to everybody.
KNOWN = re.compile(r"(?:iso|cve|ieee|din|rfc|ansi|isbn|issn|utf)\d?-", re.IGNORECASE)
#: How special tokens are written: `<|im_start|>`, `<bos>`. Reasoning marks have checks of their own.
SPECIAL = re.compile(r"<(?!/?think)[^<>\s]{1,40}>")
#: How an answer says in what its characters are written.
MARKED = re.compile(r"(application/json|text/event-stream)[^,]*;\s*charset=([^;,]+)", re.IGNORECASE)
CONSTRAINTS = ("structured_outputs", "response_format", "guided_json", "guided_choice", "guided_regex")
#: What makes a model write what it would not write by itself.
BENT = ("allowed_token_ids", "logit_bias", "bad_words", "echo", "ignore_eos", "min_tokens", "prompt_embeds")
#: Of so many free answers one may hold torn characters before the model itself is known to write them.
OWN_WRITING = 5


@check("oracle.text.charset", MUST, spec="rfc8259:section-8.1", exchanges=["*"])
def test_charset(vllm_recordings: Recordings) -> None:
    """No answer in JSON, whole or streamed, is marked as anything but UTF-8."""
    marked = [(one.key, MARKED.search(one.header("content-type"))) for one in vllm_recordings.of("")]
    told = [(key, found[2].strip(' "').casefold()) for key, found in marked if found]
    only_if(told, "no answer in JSON is marked with a set of characters")
    wrong = [f"{key}: {name}" for key, name in told if name not in ("utf-8", "utf8", "us-ascii")]

    assert not wrong, listed(wrong)


@check("oracle.text.foreign", MUST, spec=MIXED, exchanges=["canary.needle", "*"])
def test_foreign(vllm_recordings: Recordings) -> None:
    """No answer of the run holds a code that only other requests were given."""
    said = [one for one in answers(vllm_recordings) if not one.asked.get("previous_response_id")]
    asked = {one.key: json.dumps(one.asked, ensure_ascii=False) for one in said}
    givers: dict[str, list[str]] = {}
    for key, body in asked.items():
        for code in set(CODE.findall(body)):
            if not KNOWN.match(code):
                givers.setdefault(code, []).append(key)
    only_if(givers, "no request of this run held a code of its own")
    observe("codes given", len(givers))
    wrong = [
        f"{one.key} holds {code!r}, which was given to {givers[code][0]}"
        for one in said
        for code in dict.fromkeys(CODE.findall(_all_of(one)))
        if code in givers and code.casefold() not in asked[one.key].casefold()
    ]

    assert not wrong, f"answers were mixed up between requests: {listed(wrong)}"


@check("oracle.text.special-tokens", MUST, spec=OBJECT, needs=["chat", "tokenize"], exchanges=["*"])
def test_special_tokens(
    vllm_server: Server, vllm_recordings: Recordings, tokenize_chat_back: Recording
) -> None:
    """No special token of the chat template stands in an answer of any route.

    Parsers of vLLM 0.30 and later read the texts of special tokens and leave in those that are not theirs: of
    a server that has some, the token that ended an answer is judged, and not what a model writes within it.
    """
    marks = set(SPECIAL.findall(tokenize_chat_back.ok["prompt"]))
    only_if(marks, "the chat template uses no special tokens")
    parses = vllm_server.can("tools") or vllm_server.can("reasoning")
    wrong = [
        f"{one.key}: {mark} in {choice.text[-80:]!r}"
        for one in answers(vllm_recordings)
        if one.asked.get("skip_special_tokens") is not False and not one.asked.get("echo")
        if not vllm_server.shows_marks(one.path, one.asked)
        for choice in one.choices
        for mark in sorted(marks & set(SPECIAL.findall(choice.text)))
        if mark not in json.dumps(one.asked, ensure_ascii=False)
        if not parses or one.path == COMPLETIONS or _ended_by(mark, one, choice)
    ]

    assert not wrong, listed(wrong)


@check("oracle.text.constrained-characters", MUST, spec=OBJECT, exchanges=["*"])
def test_constrained_characters(vllm_recordings: Recordings) -> None:
    """Every character of an answer under a constraint, or of a forced call, is whole."""
    bound = [one for one in answers(vllm_recordings) if constrained(one.asked)]
    only_if(bound, "no request had a constraint")
    wrong = [f"{one.key}: {_around(one)}" for one in bound if _torn(one)]

    assert not wrong, f"replacement characters: {listed(wrong)}"


@check("oracle.text.characters", SHOULD, spec=OBJECT, exchanges=["*"])
def test_characters(vllm_recordings: Recordings) -> None:
    """Every character of a free answer is whole, unless the model writes so itself."""
    free = [one for one in answers(vllm_recordings) if _free(one.asked)]
    only_if(free, "no free answer was given")
    torn = [one for one in free if _torn(one)]
    observe("answers with replacement characters", f"{len(torn)} of {len(free)}")
    only_if(
        OWN_WRITING * len(torn) <= len(free),
        f"the model writes so: {len(torn)} of {len(free)} answers hold torn characters",
    )
    wrong = [f"{one.key}: {_around(one)}" for one in torn]

    assert not wrong, f"replacement characters: {listed(wrong)}"


def _ended_by(mark: str, one: Answer, choice: Choice) -> bool:
    """Whether an answer that the model ended shows the token of its end, which nobody asked to see."""
    ended = choice.finish[-1:] in (("stop",), ("completed",), ("end_turn",))
    return ended and not one.asked.get("include_stop_str_in_output") and choice.text.rstrip().endswith(mark)


def _all_of(one: Answer) -> str:
    calls = [f"{name} {arguments}" for choice in one.choices for name, arguments in choice.calls]
    return "\n".join([one.text, *calls])


def constrained(asked: dict[str, Any]) -> bool:
    choice = asked.get("tool_choice")
    return any(asked.get(name) for name in CONSTRAINTS) or choice == "required" or isinstance(choice, dict)


def _free(asked: dict[str, Any]) -> bool:
    return asked.get("temperature") == 0 and not constrained(asked) and not any(map(asked.get, BENT))


def _torn(one: Answer) -> bool:
    """Whether a torn character stands in it, but for the very end, where a limit may have cut."""
    given = json.dumps(one.asked, ensure_ascii=False)
    texts = [text.rstrip(TORN) for choice in one.choices for text in (choice.text, *_arguments(choice.calls))]
    return TORN not in given and any(TORN in text for text in texts)


def _arguments(calls: tuple[tuple[str, str], ...]) -> list[str]:
    return [arguments for _, arguments in calls]


def _around(one: Answer) -> str:
    text = _all_of(one)
    place = text.find(TORN)
    return repr(text[max(0, place - 20) : place + 20])
