"""The forms a prompt may have."""

from __future__ import annotations

from pytest_vllm import MUST, SHOULD, Recording, check, text_of

SPEC = "openai:completions/create#prompt"
VLLM = "vllm:serving/openai_compatible_server/#completions-api"
NEEDS = ["completions"]
COUNTED = ["completions", "tokenize"]


@check("completions.prompt.counted", MUST, spec=SPEC, needs=COUNTED)
def test_counted(completions_plain: Recording, tokenize_opening: Recording) -> None:
    """A prompt is as long as `/tokenize` counts it."""
    used, counted = _prompt(completions_plain), tokenize_opening.ok["count"]

    assert used == counted, f"{used} prompt tokens, /tokenize counts {counted}"


@check("completions.prompt.ids-counted", MUST, spec=SPEC, needs=COUNTED)
def test_ids_counted(completions_ids: Recording) -> None:
    """A prompt of token ids is read as it is."""
    used, sent = _prompt(completions_ids), len(completions_ids.request.json["prompt"])

    assert used == sent, f"{used} prompt tokens for {sent} ids"


@check("completions.prompt.ids-alike", SHOULD, spec=SPEC, needs=COUNTED)
def test_ids_alike(completions_plain: Recording, completions_ids: Recording) -> None:
    """A prompt of token ids is continued like its text."""
    text, ids = (text_of(one.ok["choices"][0]) for one in (completions_plain, completions_ids))

    assert ids == text, f"{ids!r} from token ids, {text!r} from the text"


@check("completions.prompt.bare", MUST, spec=VLLM, needs=COUNTED)
def test_bare(completions_bare: Recording, tokenize_opening_bare: Recording) -> None:
    """`add_special_tokens: false` leaves the special tokens out of the prompt."""
    used, counted = _prompt(completions_bare), tokenize_opening_bare.ok["count"]

    assert used == counted, f"{used} prompt tokens, /tokenize counts {counted} without special tokens"


@check("completions.prompt.truncated", MUST, spec=VLLM, needs=NEEDS)
def test_truncated(completions_truncated: Recording) -> None:
    """`truncate_prompt_tokens` cuts the prompt to that many tokens."""
    used = _prompt(completions_truncated)
    wanted = completions_truncated.request.json["truncate_prompt_tokens"]

    assert used == wanted, f"{used} prompt tokens, truncate_prompt_tokens is {wanted}"


@check("completions.batch.indices", MUST, spec=SPEC, needs=NEEDS)
def test_batch_indices(completions_batch: Recording) -> None:
    """Two prompts with two choices each give four choices, numbered from zero."""
    indices = [choice["index"] for choice in completions_batch.ok["choices"]]

    assert sorted(indices) == [0, 1, 2, 3], f"indices {indices}"


@check("completions.batch.order", MUST, spec=SPEC, needs=NEEDS)
def test_batch_order(completions_batch: Recording) -> None:
    """The choices of a batch are numbered prompt by prompt."""
    prompts = completions_batch.request.json["prompt"]
    texts = {choice["index"]: choice["text"] for choice in completions_batch.ok["choices"]}
    wrong = {n: text for n, text in texts.items() if not text.startswith(prompts[n // 2])}

    assert not wrong, f"choices that do not begin with their prompt: {wrong}"


@check("completions.batch.ids", MUST, spec=SPEC, needs=COUNTED)
def test_batch_ids(completions_batch_ids: Recording) -> None:
    """A batch of token-id prompts gives one choice for each."""
    indices = [choice["index"] for choice in completions_batch_ids.ok["choices"]]

    assert sorted(indices) == [0, 1], f"indices {indices} for two prompts"


@check("completions.echo.verbatim", MUST, spec="openai:completions/create#echo", needs=NEEDS)
def test_echo_verbatim(completions_echo: Recording) -> None:
    """An echoed prompt is the prompt, character by character."""
    prompt, text = completions_echo.request.json["prompt"], text_of(completions_echo.ok["choices"][0])

    assert text.startswith(prompt), f"{prompt!r} is echoed as {text!r}"


@check("completions.echo.only", MUST, spec="fault:vllm-project/vllm/issues/6521", needs=NEEDS)
def test_echo_only(completions_echo_only: Recording) -> None:
    """An echo with nothing generated is the bare prompt, or refused."""
    completions_echo_only.answered()
    prompt = completions_echo_only.request.json["prompt"]

    assert completions_echo_only.status in (200, 400), f"answered with {completions_echo_only.status}"
    assert completions_echo_only.status == 400 or text_of(completions_echo_only.ok["choices"][0]) == prompt, (
        f"{prompt!r} is echoed as {completions_echo_only.text[:200]}"
    )


def _prompt(answer: Recording) -> int:
    return int(answer.ok["usage"]["prompt_tokens"])
