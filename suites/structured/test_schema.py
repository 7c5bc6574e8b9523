"""Answers fit the JSON schema that they were asked to fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, SHOULD, Case, Recording, Recordings, check, need, only_if, unexpected

from .exchanges import BIRDS
from .jsontext import cut_fault, schema_fault

if TYPE_CHECKING:
    from collections.abc import Iterator

SPEC = "openai:chat/create#response_format"
KEYWORDS = "jsonschema:section-6"
NEEDS = ["chat", "structured-output"]
FORMS = ("structured.schema[", "structured.light", "structured.prose", "structured.object")
SCHEMAS = ("structured.schema",)

#: White space in a row that no writer of JSON puts there on purpose.
RUN = " " * 64


@check("structured.answered", MUST, spec=SPEC, needs=NEEDS, exchanges=["structured."])
def test_answered(vllm_recordings: Recordings) -> None:
    """Every request with a constraint is answered."""
    over = [one for one in vllm_recordings.of("structured.") if not one.request.path.endswith("/responses")]
    wrong = unexpected(over)

    assert not wrong, "; ".join(wrong)


@check("structured.schema.valid", MUST, spec=SPEC, needs=NEEDS, exchanges=SCHEMAS)
def test_valid(vllm_recordings: Recordings) -> None:
    """Every answer under a schema fits it; one cut by its limit, as far as it goes."""
    answers = list(_answers(vllm_recordings.of("structured.schema[")))
    need(answers, "no request with a schema was answered")
    wrong = {key: fault for key, choice, schema in answers if (fault := _fault(choice, schema))}

    assert not wrong, f"{len(wrong)} of {len(answers)} do not fit: {wrong}"


@check(
    "structured.schema.alike",
    MUST,
    spec="fault:vllm-project/vllm/issues/9910",
    needs=NEEDS,
    exchanges=["structured.alike["],
)
def test_alike(vllm_recordings: Recordings) -> None:
    """Of forms that differ in one value each answer fits its own."""
    answers = list(_answers(vllm_recordings.of("structured.alike[")))
    need(answers, "no request with a schema was answered")
    wrong = {key: fault for key, choice, schema in answers if (fault := _fault(choice, schema))}

    assert not wrong, f"{len(wrong)} of {len(answers)} do not fit their own form: {wrong}"


@check(
    "structured.schema.ends",
    MUST,
    spec="fault:vllm-project/vllm/issues/38696",
    needs=NEEDS,
    exchanges=SCHEMAS,
)
def test_ends(vllm_recordings: Recordings) -> None:
    """Most answers under a schema end by themselves, not at their token limit."""
    ends = [choice["finish_reason"] for _, choice, _ in _answers(vllm_recordings.of("structured.schema["))]
    need(ends, "no request with a schema was answered")
    cut = ends.count("length")

    assert cut <= len(ends) / 2, f"{cut} of {len(ends)} answers ran into their limit"


@check(
    "structured.schema.whitespace",
    SHOULD,
    spec="fault:vllm-project/vllm/issues/38696",
    needs=NEEDS,
    exchanges=SCHEMAS,
)
def test_whitespace(vllm_recordings: Recordings) -> None:
    """No answer under a schema runs on in white space."""
    texts = {key: text_in(choice) for key, choice, _ in _answers(vllm_recordings.of("structured.schema["))}
    need(texts, "no request with a schema was answered")
    runs = {
        key: text[:40] for key, text in texts.items() if RUN in " ".join(text.split("\n")).replace("\t", " ")
    }

    assert not runs, f"64 and more white space characters in a row: {runs}"


@check("structured.schema.keyword", SHOULD, spec=KEYWORDS, needs=NEEDS)
def test_keyword(keyword_case: Case, structured_keyword: Recording) -> None:
    """A keyword of JSON Schema is obeyed or refused, never ignored."""
    only_if("response_format" in structured_keyword.request.json, "versions before 0.30 may not survive it")
    structured_keyword.answered()
    if structured_keyword.status == 400:
        return
    (choice,) = structured_keyword.ok["choices"]
    need(choice["finish_reason"] != "length", "the answer was cut by its token limit")
    fault = schema_fault(text_in(choice), keyword_case["schema"])

    assert not fault, fault


@check("structured.schema.keyword-survived", MUST, spec=KEYWORDS, needs=NEEDS)
def test_keyword_survived(keyword_case: Case, structured_keyword: Recording) -> None:  # noqa: ARG001
    """A keyword of JSON Schema is not a server error."""
    structured_keyword.answered()

    assert structured_keyword.status in (200, 400), (
        f"answered with {structured_keyword.status}: {structured_keyword.text[:200]}"
    )


@check(
    "structured.often",
    MUST,
    spec="fault:vllm-project/vllm/issues/55313",
    needs=[*NEEDS, "stream"],
    exchanges=["structured.often["],
)
def test_often(vllm_recordings: Recordings) -> None:
    """A form that is filled in many times at once fits its schema each time.

    Where most run into their limit, the model fills them with white space: they are judged as far as they go.
    """
    ended = [one for one in vllm_recordings.of("structured.often[") if one.status == 200 and not one.failure]
    texts = {one.key: _streamed(one) for one in ended}
    said = {
        key: (text, end == "length") for key, (text, end) in texts.items() if text.strip() or end != "length"
    }
    need(said, "no form was filled in: the reasoning took all tokens")
    blank = 2 * sum(cut for _, cut in said.values()) > len(said)
    wrong = {
        key: f"{fault}: {text[-60:]!r}"
        for key, (text, cut) in said.items()
        if (fault := cut_fault(text) if cut and blank else schema_fault(text, BIRDS))
    }

    assert not wrong, f"{len(wrong)} of {len(said)} do not fit: {dict(list(wrong.items())[:3])}"


@check("structured.schema.truncated", MUST, spec=SPEC, needs=NEEDS)
def test_truncated(structured_light_cut: Recording) -> None:
    """An answer that its token limit cuts says so, and is JSON as far as it goes."""
    (choice,) = structured_light_cut.ok["choices"]
    reason = choice["finish_reason"]
    fault = cut_fault(text_in(choice))

    assert reason == "length", f"finish_reason is {reason!r} after 4 tokens: {text_in(choice)!r}"
    assert not fault, fault


@check("structured.schema.choices", MUST, spec=SPEC, needs=NEEDS)
def test_choices(structured_light_three: Recording) -> None:
    """Each of several choices fits the schema."""
    choices = list(_answers([structured_light_three]))
    need(choices, "the request was not answered")
    wrong = [fault for _, choice, schema in choices if (fault := _fault(choice, schema))]

    assert len(choices) == 3, f"{len(choices)} choices for n=3"
    assert not wrong, "; ".join(wrong)


@check("structured.schema.against-prompt", MUST, spec="fault:vllm-project/vllm/issues/36138", needs=NEEDS)
def test_against_prompt(structured_prose: Recording) -> None:
    """A schema holds against a question that asks for a fenced sentence."""
    _judge(structured_prose)


@check("structured.object", MUST, spec=SPEC, needs=NEEDS)
def test_object(structured_object: Recording) -> None:
    """`json_object` gives a JSON object, as far as the answer goes."""
    (choice,) = structured_object.ok["choices"]
    text = text_in(choice)
    fault = cut_fault(text) if choice["finish_reason"] == "length" else schema_fault(text, {"type": "object"})

    assert not fault, fault
    assert not text.strip() or text.lstrip()[0] == "{", f"no object: {text[:120]!r}"


def _streamed(answer: Recording) -> tuple[str, str]:
    """The text of a chat stream, and why it ended."""
    choices = [choice for delta in answer.deltas for choice in delta.get("choices", ())]
    reasons = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    text = "".join((choice.get("delta") or {}).get("content") or "" for choice in choices)
    return text, str(reasons[-1] if reasons else "")


def text_in(choice: Any) -> str:
    """The text of a chat or completion choice, reasoning left out."""
    return str((choice["message"].get("content") if "message" in choice else choice.get("text")) or "")


def schema_of(answer: Recording) -> Any:
    """The schema that a chat or completion request asked for."""
    return answer.request.json["response_format"]["json_schema"]["schema"]


def _answers(recordings: list[Recording]) -> Iterator[tuple[str, Any, Any]]:
    """Key, choice and schema of every choice that was given."""
    for one in recordings:
        if one.status == 200:
            for choice in one.json["choices"]:
                yield one.key, choice, schema_of(one)


def _fault(choice: Any, schema: Any) -> str:
    text = text_in(choice)
    return cut_fault(text) if choice["finish_reason"] == "length" else schema_fault(text, schema)


def _judge(answer: Recording) -> None:
    """The only choice of an answer is whole and fits its schema."""
    (choice,) = answer.ok["choices"]
    fault = _fault(choice, schema_of(answer))

    assert not fault, fault
    need(choice["finish_reason"] != "length", f"cut by its token limit: {text_in(choice)[:120]!r}")


def reasoning_in(choice: Any) -> str:
    """The reasoning of a chat choice, under its name of today or of before 0.16."""
    message = choice["message"]
    return str(message.get("reasoning") or message.get("reasoning_content") or "")
