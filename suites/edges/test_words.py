"""What a request says reaches the model to the letter, over each route, to its last turn and value."""

from __future__ import annotations

from pytest_vllm import MUST, Case, Recording, Server, check, need, only_if

from .exchanges import BEGUN

VLLM = "vllm:serving/openai_compatible_server/"
TRIMMED = "fault:BerriAI/litellm/issues/22841"
NEEDS = ("chat", "tokenize")
#: How each route's usage names the tokens of a prompt.
READ = ("prompt_tokens", "input_tokens")
#: Tokens by which a prompt may differ for a notation of the route's own: fewer than any value weighs.
MARKS = 3


def billed(answer: Recording) -> int:
    """The tokens of a prompt. Raises NotRun where the template refuses it, or the route is not there."""
    only_if(answer.status not in (400, 404, 422, 501), f"refused: {answer.text[:120]}")
    usage = answer.ok["usage"]
    cached = (usage.get("cache_read_input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)
    found = [usage[name] for name in READ if name in usage]
    need(found, f"{answer.key} counts no tokens of its prompt")
    return int(found[0]) + cached


def counted(answer: Recording) -> int:
    """The tokens that the server's tokenizer counts."""
    only_if(answer.status not in (400, 404, 422, 501), f"refused: {answer.text[:120]}")
    return int(answer.ok["count"])


def rendered(server: Server) -> None:
    """Raise NotRun where an answer's conversation is not rendered as `/tokenize` renders it."""
    only_if(server.templated, "this model's conversations are not rendered by a chat template")
    options = server.args.get("default-chat-template-kwargs") and not server.at_least("0.27.0")
    only_if(not options, "whether the server's own options of the template reach its tokenizer is not known")


@check("edges.text", MUST, spec=VLLM, needs=("completions", "tokenize"))
def test_text(edges_text: Recording, edges_text_count: Recording) -> None:
    """Blanks around a prompt and rare letters within it reach the model."""
    used, right = billed(edges_text), counted(edges_text_count)

    assert used == right, f"{used} prompt tokens, the tokenizer counts {right}"


@check("edges.words", MUST, spec=VLLM, needs=NEEDS)
def test_words(
    vllm_server: Server, edge_route: Case, edges_words: Recording, edges_words_count: Recording
) -> None:
    """Blanks around a message and rare letters in it reach the model over each route."""
    rendered(vllm_server)
    used, right = billed(edges_words), counted(edges_words_count)

    assert used == right, f"{edge_route.id}: {used} prompt tokens, the tokenizer counts {right}"


@check("edges.last-turn", MUST, spec=VLLM, needs=["chat"])
def test_last_turn(edge_route: Case, edges_asked: Recording, edges_begun: Recording) -> None:
    """An answer that was begun is part of the prompt, over each route."""
    without, begun = billed(edges_asked), billed(edges_begun)

    assert begun > without, (
        f"{edge_route.id}: {without} prompt tokens, {begun} with an answer begun by {len(BEGUN)} letters"
    )


@check("edges.values", MUST, spec=VLLM, needs=(*NEEDS, "tools"))
def test_values(
    vllm_server: Server, edge_route: Case, edges_called: Recording, edges_called_count: Recording
) -> None:
    """Zeros, nulls and long numbers of a call reach the model, over each route."""
    rendered(vllm_server)
    used, right = billed(edges_called), counted(edges_called_count)

    assert abs(used - right) < MARKS, f"{edge_route.id}: {used} prompt tokens, the tokenizer counts {right}"


@check("edges.parts", MUST, spec=VLLM, needs=NEEDS)
def test_parts(vllm_server: Server, edges_parts: Recording, edges_parts_count: Recording) -> None:
    """Each part of each turn reaches the model, whoever speaks."""
    rendered(vllm_server)
    used, right = billed(edges_parts), counted(edges_parts_count)

    assert used == right, f"{used} prompt tokens, the tokenizer counts {right}"
