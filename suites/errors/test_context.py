"""A prompt that does not fit the context."""

import re

from pytest_vllm import MUST, Recording, Server, check, need, only_if

from .bodies import error_of

SPEC = "fault:vllm-project/vllm/issues/22092"


@check("errors.context.refused", MUST, spec=SPEC, needs=["chat"])
def test_refused(errors_context_chat: Recording) -> None:
    """A chat prompt longer than the context is refused with 400."""
    errors_context_chat.answered()

    assert errors_context_chat.status == 400, (
        f"answered with {errors_context_chat.status}: {errors_context_chat.text[:200]}"
    )


@check("errors.context.refused-tokens", MUST, spec=SPEC, needs=["completions"])
def test_refused_tokens(errors_context_tokens: Recording) -> None:
    """A prompt of one token id more than the context holds is refused with 400."""
    errors_context_tokens.answered()

    assert errors_context_tokens.status == 400, (
        f"answered with {errors_context_tokens.status}: {errors_context_tokens.text[:200]}"
    )


@check("errors.context.refused-stream", MUST, spec="fault:ggml-org/llama.cpp/issues/14566", needs=["chat"])
def test_refused_stream(errors_context_stream: Recording) -> None:
    """A stream that cannot start for want of context is refused with 400, not opened."""
    errors_context_stream.answered()

    assert errors_context_stream.status == 400, (
        f"answered with {errors_context_stream.status}: {errors_context_stream.text[:200]}"
    )


@check("errors.context.names-limit", MUST, spec="fault:vllm-project/vllm/issues/33418", needs=["chat"])
def test_names_limit(vllm_server: Server, errors_context_chat: Recording) -> None:
    """The refusal of a long prompt names the real context length."""
    limit = vllm_server.max_model_len
    only_if(limit, "/v1/models does not report the context length")
    need(errors_context_chat.status == 400, f"answered with {errors_context_chat.status}")
    message = str(error_of(errors_context_chat).get("message"))

    assert re.search(rf"(?<!\d){limit}(?!\d)", message), f"the context is {limit} tokens: {message[:200]}"


@check("errors.context.same-words", MUST, spec="fault:ggml-org/llama.cpp/issues/14566", needs=["chat"])
def test_same_words(errors_context_chat: Recording, errors_context_stream: Recording) -> None:
    """A long prompt is refused in the same words whether streamed or not."""
    whole, stream = error_of(errors_context_chat), error_of(errors_context_stream)
    need(errors_context_chat.status == 400 == errors_context_stream.status, "one of the two was not refused")

    assert stream.get("message") == whole.get("message"), (
        f"{stream.get('message')!r}, {whole.get('message')!r}"
    )
