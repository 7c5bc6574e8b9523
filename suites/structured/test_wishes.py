"""vLLM's own constraints: regular expressions, choices, grammars; and what becomes of bad ones."""

from __future__ import annotations

import json
import re

from pytest_vllm import (
    INFO,
    MUST,
    Case,
    Recording,
    Recordings,
    Server,
    case_file,
    check,
    need,
    observe,
    only_if,
)

from .exchanges import CROWD, CROWD_RULE
from .test_schema import reasoning_in, text_in

VLLM = "vllm:features/structured_outputs/"
NEEDS = ["chat", "structured-output"]
WISHES = {row["id"]: row["matches"] for row in json.loads(case_file("structured-wishes").read_text("utf-8"))}
COMPLETIONS = ["completions", "structured-output"]
#: How a JSON object begins, blanks aside.
BEGUN = re.compile(r'\s*(?:$|\{\s*(?:$|"|\}))')


@check("structured.wish.matches", MUST, spec=VLLM, needs=NEEDS)
def test_matches(wish_case: Case, structured_wish: Recording) -> None:
    """An answer under a regular expression, a choice or a grammar is one of its words."""
    _matches(wish_case["matches"], structured_wish)


@check(
    "structured.wish.matches-completion",
    MUST,
    spec="fault:vllm-project/vllm/issues/57726",
    needs=COMPLETIONS,
    exchanges=["structured.wish-completion"],
)
def test_matches_completion(vllm_recordings: Recordings) -> None:
    """Over completions too, every answer is within its constraint."""
    answers = [one for one in vllm_recordings.of("structured.wish-completion[") if one.status == 200]
    need(answers, "no request was answered")
    texts = {one.key: text_in(one.json["choices"][0]).strip() for one in answers}
    wrong = {key: text[:60] for key, text in texts.items() if not _fits(key, text)}

    assert not wrong, f"{len(wrong)} of {len(texts)} are not within their constraint: {wrong}"


@check(
    "structured.wish.ends",
    MUST,
    spec="openai:chat/object#choices",
    needs=NEEDS,
    exchanges=["structured.wish"],
)
def test_ends(vllm_recordings: Recordings) -> None:
    """Where a constraint leaves nothing more to say, the answer ends with `stop`."""
    answers = [one for one in vllm_recordings.of("structured.wish") if one.status == 200]
    choices = {one.key: one.json["choices"][0] for one in answers}
    obeyed = {key: choice for key, choice in choices.items() if _fits(key, text_in(choice).strip())}
    need(obeyed, "no constraint was obeyed")
    wrong = {key: c["finish_reason"] for key, c in obeyed.items() if c["finish_reason"] != "stop"}

    assert not wrong, f"finish reasons: {wrong}"


@check(
    "structured.lanes",
    MUST,
    spec="fault:vllm-project/vllm/issues/9910",
    needs=NEEDS,
    exchanges=["structured.lane"],
)
def test_lanes(vllm_recordings: Recordings) -> None:
    """Of several constraints at once, each answer obeys its own."""
    answers = {one.key: one for one in vllm_recordings.of("structured.lane[") if one.status == 200}
    texts = {key: text_in(one.json["choices"][0]).strip() for key, one in answers.items()}
    rules = {key: _regex_of(one) for key, one in answers.items()}
    need(any(texts.values()), "no request was answered")
    wrong = {key: text for key, text in texts.items() if text and not re.fullmatch(rules[key], text)}

    assert not wrong, f"not within their own constraint: {wrong}"


@check("structured.crowd", MUST, spec="fault:vllm-project/vllm/issues/52620", needs=COMPLETIONS)
def test_crowd(structured_crowd: Recording) -> None:
    """Of eight answers at once under one constraint each is within it."""
    rows = [(choice["finish_reason"], choice["text"]) for choice in structured_crowd.ok["choices"]]
    wrong = _outside(rows)

    assert len(rows) == CROWD, f"{len(rows)} answers of {CROWD}"
    assert not wrong, f"not within {CROWD_RULE!r}: {wrong[:3]}"


@check("structured.crowd.objects", MUST, spec="fault:vllm-project/vllm/issues/19493", needs=COMPLETIONS)
def test_crowd_objects(structured_crowd_objects: Recording) -> None:
    """Of eight JSON objects that are written at once each is one, as far as it goes."""
    rows = [(choice["finish_reason"], choice["text"]) for choice in structured_crowd_objects.ok["choices"]]
    wrong = [row for row in rows if not _object(*row)]

    assert len(rows) == CROWD, f"{len(rows)} answers of {CROWD}"
    assert not wrong, f"no objects: {wrong[:3]}"


@check(
    "structured.crowd.stream",
    MUST,
    spec="fault:vllm-project/vllm/pull/11898",
    needs=(*COMPLETIONS, "stream"),
)
def test_crowd_stream(structured_crowd_stream: Recording) -> None:
    """Streamed choices that end at different lengths are each streamed to their end."""
    texts: dict[int, str] = {}
    ends: dict[int, str] = {}
    for delta in structured_crowd_stream.deltas:
        for choice in delta.get("choices") or ():
            texts[choice["index"]] = texts.get(choice["index"], "") + (choice.get("text") or "")
            ends[choice["index"]] = choice.get("finish_reason") or ends.get(choice["index"], "")
    observe("characters of each", sorted(map(len, texts.values())))
    wrong = _outside([(ends[index], text) for index, text in texts.items()])

    assert sorted(texts) == list(range(4)), f"choices {sorted(texts)} of four"
    assert not wrong, f"not within {CROWD_RULE!r}: {wrong[:3]}"


def _outside(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Finish reason and text of the answers that are not within the crowd's rule, as far as they go."""
    begun, whole = re.compile(r"[a-d]{0,12}!?"), re.compile(CROWD_RULE)
    return [
        (end, text) for end, text in rows if not (begun if end == "length" else whole).fullmatch(text.strip())
    ]


@check("structured.refused", MUST, spec="fault:vllm-project/vllm/issues/17248", needs=NEEDS)
def test_refused(refusal_case: Case, structured_refused: Recording) -> None:  # noqa: ARG001 - picks the case
    """A constraint that contradicts itself is refused with 400, in words."""
    structured_refused.answered()
    message = structured_refused.text

    assert structured_refused.status == 400, f"answered with {structured_refused.status}: {message[:200]}"
    assert "message" in message, f"refused without a message: {message[:200]}"


@check("structured.awkward", MUST, spec="fault:vllm-project/vllm/issues/44006", needs=NEEDS)
def test_awkward(awkward_case: Case, structured_awkward: Recording) -> None:  # noqa: ARG001 - picks the case
    """A constraint that is hard to compile is obeyed or refused: no server error."""
    structured_awkward.answered()

    assert structured_awkward.status in (200, 400), (
        f"answered with {structured_awkward.status}: {structured_awkward.text[:200]}"
    )


@check(
    "structured.awkward.alive",
    MUST,
    spec="fault:vllm-project/vllm/issues/17313",
    needs=["completions", *NEEDS],
)
def test_alive(awkward_case: Case, structured_after_awkward: Recording) -> None:  # noqa: ARG001 - picks the case
    """After a constraint that is hard to compile the server still answers."""
    after = structured_after_awkward

    assert after.status == 200, f"then {after.status or after.error}: {after.text[:200]}"


@check("structured.tag", MUST, spec=VLLM, needs=NEEDS, exchanges=["structured.awkward"])
def test_tag(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """A structural tag stands around its content, which fits its schema."""
    only_if(vllm_server.at_least("0.12.0"), "structural tags of this form came with 0.12")
    answer = vllm_recordings.get("structured.awkward[structural-tag]")
    takes = vllm_server.flags_known and _backend(vllm_server) in ("auto", "xgrammar")
    only_if(takes or answer.status != 400, "its backend of structured output takes tags of another form")
    need(answer.status == 200, f"answered with {answer.status}")
    choice = answer.ok["choices"][0]
    text, thought = text_in(choice).strip(), reasoning_in(choice)
    only_if(text or not thought, "the model thinks first, and no token is left for what is tagged")
    need(text, "the answer is empty")
    words = ['<answer>"left"</answer>', '<answer>"right"</answer>']

    assert any(word.startswith(text) for word in words), f"{text!r} is not a beginning of {words}"


@check("structured.legacy.known", INFO, spec="fault:vllm-project/vllm/issues/53975", needs=NEEDS)
def test_legacy_known(legacy_case: Case, structured_legacy: Recording) -> None:
    """It is known whether a `guided_` field is obeyed, refused or ignored."""
    structured_legacy.answered()
    answered = structured_legacy.status == 200
    text = text_in(structured_legacy.ok["choices"][0]) if answered else ""
    outcome = "obeyed" if "zz-" in text else "ignored" if answered else "refused"
    observe(f"guided_{legacy_case.id}", outcome)

    assert structured_legacy.status in (200, 400), f"answered with {structured_legacy.status}"


def _backend(server: Server) -> str:
    """What compiles constraints, as the server's flags name it."""
    named = server.table("structured-outputs-config").get("backend")
    return str(server.args.get("guided-decoding-backend") or named or "auto")


def _matches(pattern: str, answer: Recording) -> None:
    (choice,) = answer.ok["choices"]
    text = text_in(choice).strip()
    need(text or choice["finish_reason"] != "length", "the reasoning took all tokens")

    assert re.fullmatch(pattern, text), f"{text!r} is not within {pattern!r}"


def _fits(key: str, text: str) -> bool:
    """Whether a text is within the constraint of its case."""
    return re.fullmatch(WISHES[key.partition("[")[2].rstrip("]")], text) is not None


def _regex_of(answer: Recording) -> str:
    asked = answer.request.json
    return str(asked.get("guided_regex") or asked["structured_outputs"]["regex"])


def _object(end: str, text: str) -> bool:
    """Whether a text is a JSON object, or the beginning of one that its limit ended."""
    if end == "length":
        return BEGUN.match(text) is not None
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
