"""Requests of the ranking suite, for every server that ranks or scores, whatever its model is made for."""

from __future__ import annotations

from typing import Any

from pytest_vllm import Case, Request, Server, cases, exchange, only_if

QUERY = "Where does the cat sleep?"
BEST = 2
#: Words that say nothing of the question: every second document goes on with them.
FILLER = " ".join(f"Line {number} of the harbour report: nothing new." for number in range(1, 16))
SHORT = (
    "Quarterly tax forms are due in April.",
    "Iron melts at 1538 degrees.",
    "The cat sleeps on the sofa.",
    "Rivers rise in spring.",
)
#: How often they stand in a long list.
TIMES = 9
DOCUMENTS = tuple(f"{text} {FILLER}" if number % 2 == 0 else text for number, text in enumerate(SHORT))

#: Characters of a document that no batch reads at once: 2,500 tokens and more, where the context holds them.
DEEP, EACH = 12_000, 2.5

#: Words of which a document has fewer, and tokens to which it is cut.
LONGEST, CUT = 40_000, 128

MANY = 24
#: How often what says nothing stands before a long question.
LONG_QUERY = 3

ranked_alone = cases("ranked_alone", [{"id": "long", "number": BEST}, {"id": "short", "number": 1}])
ranked_first = cases("ranked_first", [{"id": f"best-{many}", "number": many} for many in (1, 3, 8, 200)])
ranking_route = cases(
    "ranking_route", [{"id": "v1", "path": "/v1/rerank"}, {"id": "v2", "path": "/v2/rerank"}]
)


def ranked(server: Server, *documents: str, path: str = "/rerank", expect: int | None = 200) -> Request:
    """Documents, to be ordered by the question."""
    body: dict[str, Any] = {"query": QUERY, "documents": list(documents)}
    return server.post(path, body, expect=expect)


@exchange("ranking.mixed")
def ranking_mixed(server: Server) -> Request:
    """Long documents and short ones."""
    return ranked(server, *DOCUMENTS)


@exchange("ranking.many")
def ranking_many(server: Server) -> Request:
    """Two dozen documents, each with more beside what it says."""
    return ranked(server, *(f"{SHORT[at % len(SHORT)]} {'More of it. ' * at}" for at in range(MANY)))


@exchange("ranking.first")
def ranking_first(server: Server, ranked_first: Case) -> Request:
    """The best so many of two dozen and more."""
    body = {"query": QUERY, "documents": [*reversed(DOCUMENTS)] * TIMES, "top_n": ranked_first["number"]}
    return server.post("/rerank", body, expect=None)


@exchange("ranking.reversed")
def ranking_reversed(server: Server) -> Request:
    """The same in reverse, several times over: a long list."""
    return ranked(server, *[*reversed(DOCUMENTS)] * TIMES)


@exchange("ranking.alone")
def ranking_alone(server: Server, ranked_alone: Case) -> Request:
    """One of them without the others."""
    return ranked(server, DOCUMENTS[ranked_alone["number"]])


@exchange("ranking.spelled")
def ranking_spelled(server: Server, ranking_route: Case) -> Request:
    """The same by another address of the route, which not every version has."""
    return ranked(server, *DOCUMENTS, path=ranking_route["path"], expect=None)


@exchange("ranking.unlimited")
def ranking_unlimited(server: Server) -> Request:
    """The same with a limit for tokens that no pair reaches: that of the context."""
    only_if(server.max_model_len or 0, "how long the context is, is not known")
    body = {"query": QUERY, "documents": [*DOCUMENTS], "truncate_prompt_tokens": server.max_model_len}
    return server.post("/rerank", body, expect=None)


@exchange("ranking.each-unlimited")
def ranking_each_unlimited(server: Server) -> Request:
    """The same with a limit for each document that none reaches."""
    only_if(server.max_model_len or 0, "how long the context is, is not known")
    body = {"query": QUERY, "documents": [*DOCUMENTS], "max_tokens_per_doc": (server.max_model_len or 0) - 1}
    return server.post("/rerank", body, expect=None)


@exchange("ranking.cut", anyway=True)
def ranking_cut(server: Server) -> Request:
    """A document longer than the context, with a limit for tokens that cuts it."""
    only_if(server.max_model_len or 0, "how long the context is, is not known")
    words = 2 * (server.max_model_len or 0)
    only_if(2 * CUT < words < LONGEST, f"a context of {server.max_model_len} tokens is none for this")
    document = f"{SHORT[BEST]} {'sea ' * words}"
    body = {"query": QUERY, "documents": [document], "truncate_prompt_tokens": CUT}
    return server.post("/rerank", body, expect=None)


@exchange("ranking.score")
def ranking_score(server: Server) -> Request:
    """The question against each of them, as scores."""
    return server.post("/score", {"text_1": QUERY, "text_2": list(DOCUMENTS)})


@exchange("ranking.pairs")
def ranking_pairs(server: Server) -> Request:
    """The same pair by pair, the question four times."""
    return server.post("/score", {"text_1": [QUERY] * len(DOCUMENTS), "text_2": list(DOCUMENTS)})


@exchange("ranking.pair")
def ranking_pair(server: Server) -> Request:
    """The question against the document that answers it, two texts and no list."""
    return server.post("/score", {"text_1": QUERY, "text_2": DOCUMENTS[BEST]})


@exchange("ranking.pairs-unlike")
def ranking_pairs_unlike(server: Server) -> Request:
    """The same pair by pair, under the other address: two with other texts than the question."""
    left = [SHORT[0], SHORT[3], QUERY, QUERY]
    return server.post("/v1/score", {"text_1": left, "text_2": list(DOCUMENTS)}, expect=None)


@exchange("ranking.deep")
def ranking_deep(server: Server) -> Request:
    """A document that is read in several steps, beside short ones and another one of its length."""
    text = _deep(server)
    return ranked(server, SHORT[1], text, SHORT[3], f"{SHORT[0]} {text}", expect=None)


@exchange("ranking.long-query")
def ranking_long_query(server: Server) -> Request:
    """The question behind some hundred words: instructions of rerankers are that long."""
    only_if(server.max_model_len or 0, "how long the context is, is not known")
    room = int((server.max_model_len or 0) * EACH) // 3
    only_if(room > len(FILLER), f"a context of {server.max_model_len} tokens holds no longer question")
    told = f"{' '.join([FILLER] * LONG_QUERY)}"[: room - len(QUERY)]
    return server.post("/rerank", {"query": f"{told} {QUERY}", "documents": [*SHORT]})


@exchange("ranking.deep-alone")
def ranking_deep_alone(server: Server) -> Request:
    """The same document without the others."""
    return ranked(server, _deep(server), expect=None)


@exchange("ranking.deep-again")
def ranking_deep_again(server: Server) -> Request:
    """The same among others, in another place."""
    return ranked(server, _deep(server), SHORT[3], expect=None)


def _deep(server: Server) -> str:
    """The document that answers the question, as long as the context allows, with nothing new behind it."""
    only_if(server.max_model_len or 0, "how long the context is, is not known")
    room = min(DEEP, int((server.max_model_len or 0) * EACH))
    only_if(room > 2 * len(FILLER), f"a context of {server.max_model_len} tokens holds no longer document")
    return f"{SHORT[BEST]} {' '.join([FILLER] * (DEEP // len(FILLER) + 1))}"[: room - len(SHORT[0])]
