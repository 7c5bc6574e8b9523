"""Requests of the embeddings suite, for servers that embed, score or rank."""

from __future__ import annotations

from typing import Any

from pytest_vllm import Case, Recording, Request, Server, case_file, cases, exchange, only_if

PATH = "/v1/embeddings"

SHORT = "A cat sleeps on the warm sofa."
LIKE = "The cat is asleep on the sofa."
OTHER = "Quarterly tax forms are due in April."
LONG = " ".join(f"Chapter {number}: the river rose again in spring." for number in range(1, 13))
LETTERS = "naïve żółć 東京 😀 नम"
TEXTS = (SHORT, LONG, OTHER, LETTERS, SHORT, LIKE)
#: How often they stand in a large batch.
TIMES = 6
#: Tokens to which a text is cut.
KEPT = 8
#: A context up to which a text that fills it is cheap on any server.
CHEAP = 9000

QUERY = "Where does the cat sleep?"
DOCUMENTS = (OTHER, "Iron melts at 1538 degrees.", "The cat sleeps on the sofa.", "Rivers rise in spring.")
BEST = 2

embedding_refusal = cases("embedding_refusal", case_file("embeddings-refusals"))
embedded_text = cases(
    "embedded_text",
    [{"id": name, "text": text} for name, text in (("short", SHORT), ("long", LONG), ("letters", LETTERS))],
)


def embed(server: Server, given: Any, *, expect: int | None = 200, **more: Any) -> Request:
    """A request for vectors."""
    return server.post(PATH, {"input": given, **more}, expect=expect)


@exchange("embeddings.text")
def embeddings_text(server: Server, embedded_text: Case) -> Request:
    """One text."""
    return embed(server, embedded_text["text"])


@exchange("embeddings.batch")
def embeddings_batch(server: Server) -> Request:
    """Six texts of unequal lengths, one of them twice."""
    return embed(server, list(TEXTS))


def long_texts(server: Server) -> list[str]:
    """Five texts of half a context each, 1,200 words at most."""
    words = min((server.max_model_len or 4096) // 2, 1200)
    return ["sea " * (words - 8) + f"and harbour number {number}" for number in range(5)]


@exchange("embeddings.mixed")
def embeddings_mixed(server: Server) -> Request:
    """Short texts between long ones."""
    long = long_texts(server)
    return embed(server, [SHORT, long[0], OTHER, *long[1:3], LIKE, *long[3:], LETTERS])


@exchange("embeddings.many-long")
def embeddings_many_long(server: Server) -> Request:
    """Twelve texts at once that nearly fill the context, 1,200 words at most; the last is the first again."""
    words = min((server.max_model_len or 4096) * 3 // 4, 1200)
    texts = ["reed " * (words - 8) + f"and harbour number {number}" for number in range(11)]
    return embed(server, [*texts, texts[0]], expect=None)


@exchange("embeddings.uncut")
def embeddings_uncut(server: Server) -> Request:
    """A text that may be cut to the length of the context, which it is far below."""
    only_if(server.at_least("0.12.0"), "before 0.12 such a limit may be refused")
    return embed(server, SHORT, truncate_prompt_tokens=-1)


@exchange("embeddings.cut")
def embeddings_cut(server: Server) -> Request:
    """A text that is cut to a few tokens; not every version takes the limit."""
    return embed(server, LONG, truncate_prompt_tokens=KEPT, expect=None)


@exchange("embeddings.reversed")
def embeddings_reversed(server: Server) -> Request:
    """The same in reverse, several times over: a large batch."""
    return embed(server, [*reversed(TEXTS)] * TIMES)


@exchange("embeddings.base64")
def embeddings_base64(server: Server) -> Request:
    """Two texts, their vectors as base64."""
    return embed(server, [SHORT, OTHER], encoding_format="base64")


@exchange("embeddings.batch-base64")
def embeddings_batch_base64(server: Server) -> Request:
    """The six texts of unequal lengths, their vectors as base64."""
    return embed(server, list(TEXTS), encoding_format="base64")


@exchange("embeddings.pooled")
def embeddings_pooled(server: Server) -> Request:
    """The six texts over the route that gives what the pooler makes; not every server has it."""
    return server.post("/pooling", {"input": list(TEXTS), "encoding_format": "float"}, expect=None)


@exchange("embeddings.two")
def embeddings_two(server: Server) -> Request:
    """The same two as numbers."""
    return embed(server, [SHORT, OTHER], encoding_format="float")


@exchange("embeddings.tokens")
def embeddings_tokens(server: Server) -> Request:
    """The tokens of a text."""
    return server.post("/tokenize", {"prompt": SHORT}, expect=None)


@exchange("embeddings.ids")
def embeddings_ids(server: Server, embeddings_tokens: Recording) -> Request:
    """A text as its token ids."""
    return embed(server, embeddings_tokens.ok["tokens"])


@exchange("embeddings.id-batch")
def embeddings_id_batch(server: Server, embeddings_tokens: Recording) -> Request:
    """Two texts as their token ids: the same, and twice over."""
    ids = embeddings_tokens.ok["tokens"]
    return embed(server, [ids, ids * 2], expect=None)


@exchange("embeddings.brim")
def embeddings_brim(server: Server, embeddings_tokens: Recording) -> Request:
    """A text that fills the context to its last token, where that is cheap."""
    room, ids = server.max_model_len or 0, embeddings_tokens.ok["tokens"]
    only_if(0 < room <= CHEAP, f"a text of {room or 'unknown'} tokens is not sent")
    return embed(server, (ids * (room // len(ids) + 1))[:room])


@exchange("embeddings.narrow")
def embeddings_narrow(server: Server) -> Request:
    """Vectors of fewer dimensions, which most models refuse."""
    return embed(server, SHORT, dimensions=32, expect=None)


@exchange("embeddings.too-long", anyway=True)
def embeddings_too_long(server: Server) -> Request:
    """A text that is longer than the context."""
    return embed(server, "sea " * (2 * (server.max_model_len or 8192)), expect=None)


@exchange("embeddings.empty")
def embeddings_empty(server: Server) -> Request:
    """No text at all."""
    return embed(server, [], expect=None)


@exchange("embeddings.after-empty")
def embeddings_after_empty(
    server: Server, embeddings_empty: Recording, embeddings_too_long: Recording
) -> Request:
    """A text after those."""
    del embeddings_empty, embeddings_too_long
    return embed(server, SHORT)


@exchange("embeddings.refusal")
def embeddings_refusal(server: Server, embedding_refusal: Case) -> Request:
    """A request that makes no sense."""
    body = {"input": "Hi", **embedding_refusal["set"]}
    for name in embedding_refusal.get("without", ()):
        del body[name]
    return server.post(PATH, body, expect=None)


@exchange("embeddings.chat", anyway=True)
def embeddings_chat(server: Server) -> Request:
    """A chat with a model that only embeds."""
    return server.chat("Hi", max_tokens=1, expect=None)


@exchange("embeddings.completion", anyway=True)
def embeddings_completion(server: Server) -> Request:
    """A completion by a model that only embeds."""
    return server.completion("Hi", max_tokens=1, expect=None)


@exchange("embeddings.score")
def embeddings_score(server: Server) -> Request:
    """How well a text fits others."""
    return server.post("/score", {"text_1": QUERY, "text_2": list(DOCUMENTS)}, expect=None)


@exchange("embeddings.score-unequal")
def embeddings_score_unequal(server: Server) -> Request:
    """Two texts against three."""
    return server.post("/score", {"text_1": [QUERY, LIKE], "text_2": list(DOCUMENTS[:3])}, expect=None)


@exchange("embeddings.rerank")
def embeddings_rerank(server: Server) -> Request:
    """Documents, to be ordered by a question."""
    return server.post("/rerank", {"query": QUERY, "documents": list(DOCUMENTS)}, expect=None)


@exchange("embeddings.rerank-top")
def embeddings_rerank_top(server: Server) -> Request:
    """The best two of them."""
    return server.post("/rerank", {"query": QUERY, "documents": list(DOCUMENTS), "top_n": 2}, expect=None)
