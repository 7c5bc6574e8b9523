"""Requests of the oracle suite: questions about what was answered before, and one question over and over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import Case, Recording, Request, Server, cases, exchange, only_if

from .answers import CHAT, COMPLETIONS, MESSAGES, RESPONSES, answer_of
from .counting import kind_of, questions
from .likeness import as_chat
from .sameness import across, unexplained
from .streamed import twins
from .three import three
from .written import called, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COUNTS = "/v1/messages/count_tokens"
#: Requests at most that are asked once more for their candidates.
EXPLAINED = 24
#: Answers at most whose tokens are read back.
READ_BACK = 60
#: Prompts of a large batch.
MANY = 24
calling_route = cases(
    "calling_route", [{"id": path.split("/")[2], "path": path} for path in (CHAT, RESPONSES, MESSAGES)]
)
owned_form = cases("owned_form", [{"id": "whole", "set": {}}, {"id": "stream", "set": {"stream": True}}])


@exchange("oracle.count", afterwards=True)
def oracle_count(server: Server, recorded: Sequence[Recording]) -> Iterator[Request]:
    """How many tokens the run's prompts have, by the server's own tokenizer: one prompt of each kind."""
    kinds: set[tuple[object, ...]] = set()
    for request in counting(server, recorded):
        if (kind := kind_of(request.path, request.json)) not in kinds:
            kinds.add(kind)
            yield request


@exchange("oracle.every-count", afterwards=True)
def oracle_every_count(server: Server, recorded: Sequence[Recording]) -> Iterator[Request]:
    """How many tokens every prompt of the run has, by the server's own tokenizer."""
    return counting(server, recorded)


def counting(server: Server, recorded: Sequence[Recording]) -> Iterator[Request]:
    """The requests that count the prompts of these answers."""
    for one in recorded:
        answer = answer_of(one)
        bodies = questions(answer.path, answer.asked, server) if answer else ""
        if answer and not isinstance(bodies, str):
            path = COUNTS if answer.path == MESSAGES else "/tokenize"
            if path != COUNTS or server.at_least("0.17.0"):
                yield from (server.post(path, body, expect=None) for body in bodies)


@exchange("oracle.explained", afterwards=True)
def oracle_explained(server: Server, recorded: Sequence[Recording]) -> Iterator[Request]:
    """A request whose answers differ, once more with its likeliest candidates."""
    return explaining(server, recorded)


def explaining(server: Server, recorded: Sequence[Recording]) -> Iterator[Request]:
    """The requests that list the candidates of answers that differ."""
    said = [answer for one in recorded if (answer := answer_of(one))]
    for group in list(filter(unexplained, across(said)))[:EXPLAINED]:
        path, asked = as_chat(group[0].path, group[0].asked)
        if path in (CHAT, COMPLETIONS):
            listing = {"logprobs": True, "top_logprobs": 5} if path == CHAT else {"logprobs": 5}
            yield server.post(path, {**asked, **listing}, expect=None)


@exchange("oracle.streamed", afterwards=True)
def oracle_streamed(server: Server, recorded: Sequence[Recording]) -> Iterator[Request]:
    """A request that sets what no stream of the run has set, once more, as a stream."""
    for path, body in twins(server, recorded) if server.can("stream") else ():
        yield server.post(path, body)


@exchange("oracle.three")
def oracle_three(server: Server, calling_route: Case, tools_thinking_off: Recording) -> Request:
    """A stream for which three calls are due."""
    able = {RESPONSES: "responses", MESSAGES: "messages"}.get(calling_route["path"], "chat")
    only_if(server.can(able) and server.can("tools.required"), "the server makes no such calls")
    return three(server, tools_thinking_off, calling_route["path"])


@exchange("oracle.owned")
def oracle_owned(server: Server, owned_form: Case, tokenize_word: Recording) -> Request:
    """Two prompts by their ids and two texts for each, all of them with the ids that they are made of."""
    only_if(server.takes(COMPLETIONS, "return_token_ids"), "this version gives no token ids")
    ids = tokenize_word.ok["tokens"]
    drawn: dict[str, Any] = {"n": 2, "temperature": 1.0, "max_tokens": 3, "ignore_eos": True}
    return server.completion([ids * 2, ids * 3], return_token_ids=True, **drawn, **owned_form["set"])


@exchange("oracle.stopped")
def oracle_stopped(server: Server) -> Request:
    """A text in several scripts that a constraint makes the model write, up to a word beyond ASCII."""
    only_if(server.can("structured-output"), "the server keeps no constraints")
    only_if(server.at_least("0.11.0"), "this version names its constraints otherwise")
    only: dict[str, Any] = {"structured_outputs": {"choice": ["Ça va, żółć 東京 end"]}, "stop": ["東京"]}
    return server.completion("<think>\n</think>\nWrite:", max_tokens=48, expect=None, **only)


@exchange("oracle.many")
def oracle_many(server: Server, owned_form: Case) -> Request:
    """Two dozen prompts in one request, each echoed before its text."""
    prompts = [f"Bird {at} of {MANY} is" for at in range(MANY)]
    return server.completion(prompts, echo=True, max_tokens=1, expect=None, **owned_form["set"])


@exchange("oracle.written", afterwards=True)
def oracle_written(server: Server, recorded: Sequence[Recording]) -> Iterator[Request]:
    """What tokens say whose ids an answer gives, by the server's own tokenizer."""
    said = [answer for one in recorded if (answer := answer_of(one))]
    ids = dict.fromkeys(
        choice.ids for one in said for choice in (*shown(one, server), *called(one)) if choice.ids
    )
    for some in [*ids][:READ_BACK]:
        yield server.post("/detokenize", {"tokens": [*some]}, expect=None)


@exchange("oracle.response-listed", alone=True)
def oracle_response_listed(server: Server) -> Request:
    """The plain question over Responses, with candidates for each token: chat is asked it so, too."""
    listing = {"include": ["message.output_text.logprobs"], "top_logprobs": 3}
    body = {"input": "What is the capital of France?", "max_output_tokens": 12, "temperature": 0, **listing}
    return server.post("/v1/responses", body, expect=None)


#: The same question so often that a fault of one answer in 50 shows with a probability of 95 %, and of one in
#: 200 with more than a half: 1 - 0.98 ** 150 and 1 - 0.995 ** 150. Half of them are streamed.
TURNS = 75
#: As many again, and again: 1 - 0.995 ** 1000.
MORE = 850
#: Requests with several prompts, and the prompts of each.
BATCHES, BATCH = 4, 15
#: Seconds that all of them may take, and in the soak tier: a server that is slower is asked less often.
PATIENCE, LONGER = 20.0, 120.0
LANES = 16
STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
WORDS = "north east south west north east south west north east south west north east"
ASKED = f"Repeat these words and say nothing else: {WORDS}"

oracle_turn = cases("oracle_turn", [{"id": f"{number:03}", "at": number} for number in range(TURNS)])
oracle_more = cases("oracle_more", [{"id": f"{number:03}", "at": number} for number in range(MORE)])
#: What narrows a draw, and counts for nothing where nothing is drawn. Who drafts tokens refuses `min_p`.
NARROW: dict[str, Any] = {"top_p": 0.3, "top_k": 5, "seed": 3}
oracle_greedy = cases("oracle_greedy", [{"id": "chat"}, {"id": "stream"}, {"id": "completions"}])
oracle_batch = cases("oracle_batch", [{"id": f"{number:02}", "at": number} for number in range(BATCHES)])


def _again(server: Server, **more: Any) -> Request:
    return server.chat(ASKED, max_tokens=6, **more)


def _in_time(server: Server, once: Recording, before: int, patience: float) -> None:
    """Go on when so many such requests before this one leave it time; raise NotRun where they do not."""
    lanes = min(server.max_num_seqs or 8, LANES)
    least = once.seconds * (before + 1) / lanes
    only_if(
        least <= patience, f"{before + 1} such answers at {once.seconds:.1f} s each would take {least:.0f} s"
    )


@exchange("oracle.again-listed")
def oracle_again_listed(server: Server) -> Request:
    """The question with its likeliest candidates."""
    return _again(server, logprobs=True, top_logprobs=5)


@exchange("oracle.again", spread=True)
def oracle_again(server: Server, oracle_turn: Case, oracle_again_listed: Recording) -> Request:
    """The question, once more."""
    _in_time(server, oracle_again_listed, 2 * oracle_turn["at"], PATIENCE)
    return _again(server)


@exchange("oracle.again-stream", spread=True)
def oracle_again_stream(server: Server, oracle_turn: Case, oracle_again_listed: Recording) -> Request:
    """The question, once more, streamed."""
    _in_time(server, oracle_again_listed, 2 * oracle_turn["at"] + 1, PATIENCE)
    return _again(server, **STREAM)


@exchange("oracle.often", spread=True)
def oracle_often(server: Server, oracle_more: Case, oracle_again_listed: Recording) -> Request:
    """The question, a thousand times, every other time streamed."""
    _in_time(server, oracle_again_listed, oracle_more["at"], LONGER)
    return _again(server, **(STREAM if oracle_more["at"] % 2 else {}))


@exchange("oracle.greedy")
def oracle_greedy_(server: Server, oracle_greedy: Case) -> Request:
    """The question, and the words to be gone on with, with fields that narrow a draw, while none is made."""
    if oracle_greedy.id == "completions":
        return server.completion(WORDS, max_tokens=4, **NARROW)
    return _again(server, **NARROW, **(STREAM if oracle_greedy.id == "stream" else {}))


@exchange("oracle.batch-listed")
def oracle_batch_listed(server: Server) -> Request:
    """The words to be gone on with, with the likeliest candidates."""
    return server.completion(WORDS, max_tokens=4, logprobs=5)


@exchange("oracle.batch", spread=True)
def oracle_batch_(server: Server, oracle_batch: Case, oracle_batch_listed: Recording) -> Request:
    """The words many times in one request."""
    _in_time(server, oracle_batch_listed, oracle_batch["at"] * BATCH, PATIENCE)
    return server.completion([WORDS] * BATCH, max_tokens=4)
