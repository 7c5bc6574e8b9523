"""A stream that fails shows its failure."""

from pytest_vllm import MUST, SHOULD, Recording, check, need

from .bodies import error_of

SPEC = "fault:vllm-project/guidellm/issues/743"


@check("errors.stream.shown", MUST, spec=SPEC, needs=["chat", "stream"])
def test_shown(errors_stream_bad_regex: Recording) -> None:
    """A stream that cannot be made is refused, or its first event is the error."""
    errors_stream_bad_regex.answered()
    found = error_of(errors_stream_bad_regex)

    assert "message" in found, f"HTTP {errors_stream_bad_regex.status}: {errors_stream_bad_regex.text[:200]}"


@check(
    "errors.stream.before-start",
    SHOULD,
    spec="fault:ggml-org/llama.cpp/issues/14566",
    needs=["chat", "stream"],
)
def test_before_start(errors_stream_bad_regex: Recording) -> None:
    """A stream that cannot be made is refused by its HTTP status."""
    errors_stream_bad_regex.answered()

    assert errors_stream_bad_regex.status != 200, f"HTTP 200, then {errors_stream_bad_regex.text[:120]!r}"


@check("errors.stream.shape", MUST, spec="openai:error-codes", needs=["chat", "stream"])
def test_shape(errors_stream_bad_regex: Recording) -> None:
    """An error in a stream says what happened, of which kind, with a number."""
    errors_stream_bad_regex.answered()
    found = error_of(errors_stream_bad_regex)
    need(found, "the stream shows no error")

    assert isinstance(found.get("message"), str), f"message is {found.get('message')!r}"
    assert found["message"].strip(), "the message is empty"
    assert isinstance(found.get("type"), str), f"type is {found.get('type')!r}"
    assert found["type"], "the type is empty"
    assert isinstance(found.get("code"), int), f"code is {found.get('code')!r}"


@check("errors.stream.code", MUST, spec=SPEC, needs=["chat", "stream"])
def test_code(errors_stream_bad_regex: Recording, errors_whole_bad_regex: Recording) -> None:
    """A stream fails with the code that the same request gets unstreamed."""
    errors_whole_bad_regex.answered()
    found = error_of(errors_stream_bad_regex)
    need(found, "the stream shows no error")

    assert str(found.get("code")) == str(errors_whole_bad_regex.status), (
        f"code {found.get('code')!r} in the stream, HTTP {errors_whole_bad_regex.status} without"
    )


@check(
    "errors.stream.closed", MUST, spec="fault:EricLBuehler/mistral.rs/issues/1874", needs=["chat", "stream"]
)
def test_closed(errors_stream_bad_regex: Recording) -> None:
    """A stream that failed is ended by the server, not left open."""
    errors_stream_bad_regex.answered()

    assert not errors_stream_bad_regex.error, errors_stream_bad_regex.error


@check("errors.stream.nothing-else", MUST, spec=SPEC, needs=["chat", "stream"])
def test_nothing_else(errors_stream_bad_regex: Recording) -> None:
    """A failed stream holds its error and at most the end mark."""
    errors_stream_bad_regex.answered()
    failed_late = errors_stream_bad_regex.status == 200
    rest = [event.data for event in errors_stream_bad_regex.events[1:]] if failed_late else []

    assert rest in ([], ["[DONE]"]), f"after the first event came {rest[:3]}"
