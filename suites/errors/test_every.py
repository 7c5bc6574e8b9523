"""What holds for the error of one route holds for every refusal of the run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recordings, Server, check, listed, only_if

from .bodies import value_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording

SPEC, MESSAGES = "openai:error-codes", "/v1/messages"


@check("errors.every.code", MUST, spec=SPEC, exchanges=["*"])
def test_code(vllm_recordings: Recordings) -> None:
    """The code of an error is its HTTP status, and of one type in all refusals."""
    told = [(one, code) for one in vllm_recordings.of("") for code in _codes(one)]
    only_if(told, "no refusal has a code")
    usual = Counter(type(code).__name__ for _, code in told).most_common(1)[0][0]
    wrong = [
        f"{one.key}: {code!r} under HTTP {one.status}" for one, code in told if str(code) != str(one.status)
    ]
    wrong += [f"{one.key}: {code!r} is no {usual}" for one, code in told if type(code).__name__ != usual]

    assert not wrong, f"{len(wrong)} of {len(told)} refusals: {listed(wrong)}"


@check("errors.every.words", MUST, spec=SPEC, exchanges=["*"])
def test_words(vllm_recordings: Recordings) -> None:
    """Every refusal that is meant says something, and of which kind it is."""
    # of a feature that it lacks vLLM says but the type, as Python's NotImplementedError without words
    meant = [one for one in vllm_recordings.of("") if one.request.expect not in (200, None)]
    told = [(one, error) for one in meant if (error := _error(one)) is not None]
    only_if(told, "nothing was refused with an error object")
    wrong = [
        f"{one.key}: {name} is {error.get(name)!r}"
        for one, error in told
        for name in ("message", "type")
        if not (isinstance(error.get(name), str) and error[name].strip())
    ]

    assert not wrong, f"{len(wrong)} of {len(told)} refusals: {listed(wrong)}"


@check("errors.every.shape", MUST, spec="anthropic:errors", exchanges=["*"])
def test_shape(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """An error without a code is one of Anthropic's, and its body says so by its type."""
    only_if(not vllm_server.api_only, "something in front of the server writes errors of its own")
    told = [
        (one, value_of(one))
        for one in vllm_recordings.of("")
        if one.request.path.startswith(MESSAGES) and (_error(one) or {"code": 0}).get("code") is None
    ]
    only_if(told, "every error has a code")
    wrong = [f"{one.key}: {sorted(value)}" for one, value in told if value.get("type") != "error"]

    assert not wrong, listed(wrong)


def _error(one: Recording) -> dict[str, Any] | None:
    """The nested error object of a refusal; None where it has none, as before 0.10.1 or of a gateway."""
    if one.status is None or one.status < 400 or one.aborted or "/json" not in one.header("content-type"):
        return None
    value = value_of(one)
    error = value.get("error") if isinstance(value, dict) else None
    return error if isinstance(error, dict) else None


def _codes(one: Recording) -> Iterator[Any]:
    error = _error(one)
    if error is not None and error.get("code") is not None:
        yield error["code"]
