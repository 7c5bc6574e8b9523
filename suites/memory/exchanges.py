"""Requests of the memory suite: what a server has to give back, and the longest that it has to take."""

from pytest_vllm import Recording, Request, Server, exchange

#: Long enough that a block which is kept shows.
PROMPT = [1100 + number % 50 for number in range(300)]
TOKENS = 4
#: Tokens of an answer whose client leaves.
LONG = 1000
#: A context up to which the longest request is cheap on any server.
CHEAP = 5000


def fitting(server: Server) -> list[int]:
    """The prompt, cut to half the context where that is short."""
    return PROMPT[: (server.max_model_len or 4096) // 2]


@exchange("memory.finished", metrics=True)
def memory_finished(server: Server) -> Request:
    """A completion that ends at its token limit."""
    return server.completion(fitting(server), max_tokens=TOKENS, ignore_eos=True)


@exchange("memory.many", metrics=True)
def memory_many(server: Server) -> Request:
    """Eight completions of prompts that share nothing, in one request, each longer than the one before."""
    prompts = [[1200 + number, *fitting(server)[: 41 + 37 * number]] for number in range(8)]
    return server.completion(prompts, max_tokens=TOKENS, ignore_eos=True)


@exchange("memory.left", metrics=True)
def memory_left(server: Server) -> Request:
    """A stream whose client goes away after two events."""
    prompt = fitting(server)
    room = min(LONG, (server.max_model_len or 4096) - len(prompt))
    body = server.completion(prompt, max_tokens=room, ignore_eos=True, stream=True)
    return Request(body.method, body.path, json=body.json, abort_after=2)


@exchange("memory.longest", metrics=True)
def memory_longest(server: Server, memory_finished: Recording) -> Request:
    """The longest prompt that leaves room for a token; a short one where that is not cheap."""
    del memory_finished
    longest = (server.max_model_len or 0) - 1
    tokens = longest if 0 < longest < CHEAP else len(fitting(server))
    return server.completion([1100 + number % 50 for number in range(tokens)], max_tokens=1, ignore_eos=True)


@exchange("memory.refused", metrics=True)
def memory_refused(server: Server, memory_longest: Recording) -> Request:
    """Two prompts in one request, of which one does not fit into the context: the whole is refused."""
    del memory_longest
    beyond = [1100 + number % 50 for number in range((server.max_model_len or 4096) + 1)]
    return server.completion([fitting(server), beyond], max_tokens=TOKENS, ignore_eos=True, expect=400)
