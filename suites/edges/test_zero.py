"""Zero is a value: the token, the seed; and a penalty below nothing is a reward."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pytest_vllm import MUST, Case, Recording, Recordings, Server, check, only_if, text_of

from .exchanges import CROWD

VLLM = "vllm:serving/openai_compatible_server/"
CREATE = "openai:chat/create"
REFUSED = (400, 422, 501)


def _taken(answer: Recording) -> Any:
    """An answer's body. Raises NotRun where a server may refuse the request, and did."""
    only_if(answer.status not in REFUSED, f"refused: {answer.text[:120]}")
    return answer.ok


def _ids(answer: Recording) -> list[int] | None:
    """The ids of the answer's tokens; None where the version gives none."""
    found: list[int] | None = _taken(answer)["choices"][0].get("token_ids")
    return found


@check("edges.zero.token", MUST, spec=VLLM, needs=["completions"])
def test_token(vllm_server: Server, edges_zeros: Recording) -> None:
    """The token zero is read in a prompt, and makes an answer that has no other."""
    only_if(not vllm_server.drafts, "where tokens are drafted some versions do not keep them from an answer")
    usage, ids = _taken(edges_zeros)["usage"], _ids(edges_zeros)
    sent = len(edges_zeros.request.json["prompt"])

    assert usage["prompt_tokens"] == sent, f"{usage['prompt_tokens']} prompt tokens of {sent}"
    assert ids in (None, [0, 0, 0]), f"only the token 0 is allowed, the answer's are {ids}"


@check("edges.zero.biased", MUST, spec="openai:completions/create#logit_bias", needs=["completions"])
def test_biased(vllm_server: Server, zero_bias: Case, edges_zero_biased: Recording) -> None:
    """A bias toward the token zero, or against it, decides between it and another one."""
    only_if(not vllm_server.drafts, "where tokens are drafted some versions do not keep them from an answer")
    only_if(edges_zero_biased.request.json["allowed_token_ids"][0], "the other token is the same")
    ids = _ids(edges_zero_biased)
    only_if(ids is not None, "this version gives no ids of tokens")
    zeros = [one for one in ids or () if one == 0]

    assert len(zeros) == (len(ids or ()) if zero_bias["bias"] > 0 else 0), (
        f"bias of {zero_bias['bias']} for the token 0, the answer's are {ids}"
    )


@check("edges.zero.stops", MUST, spec=VLLM)
def test_stops(vllm_server: Server, stopping_route: Case, edges_zero_stops: Recording) -> None:
    """The token zero ends an answer that it is to end, and is named as what ended it."""
    only_if(vllm_server.can(stopping_route.id), f"the server has no {stopping_route.id}")
    only_if(not vllm_server.drafts, "where tokens are drafted some versions do not keep them from an answer")
    body = _taken(edges_zero_stops)
    choice, tokens = body["choices"][0], body["usage"]["completion_tokens"]

    assert (choice["finish_reason"], tokens) == ("stop", 1), (
        f"{stopping_route.id}: {choice['finish_reason']} after {tokens} tokens, one was to end it"
    )
    assert choice.get("stop_reason", 0) == 0, f"{stopping_route.id}: stop_reason {choice['stop_reason']!r}"


@check(
    "edges.zero.seed",
    MUST,
    spec=f"{CREATE}#seed",
    needs=["chat", "logprobs"],
    exchanges=["edges.seeded["],
)
def test_seed(vllm_recordings: Recordings) -> None:
    """The seed zero draws the same first tokens each time."""
    first, again = (
        [
            row["token"]
            for row in vllm_recordings.get(f"edges.seeded[{one}]").ok["choices"][0]["logprobs"]["content"]
        ]
        for one in ("first", "again")
    )

    assert again[:2] == first[:2], f"seed 0 drew {first}, then {again}"


@check("edges.zero.seed-crowd", MUST, spec="openai:completions/create#seed", needs=["completions"])
def test_seed_crowd(edges_seeded_crowd: Recording) -> None:
    """Of four texts drawn at once with the seed zero two at least are the same."""
    texts = Counter(text_of(choice) for choice in edges_seeded_crowd.ok["choices"])
    usual, count = texts.most_common(1)[0]

    assert 2 * count >= CROWD, f"{len(texts)} texts of {CROWD}, the most frequent {count} times: {usual!r}"


@check(
    "edges.reward",
    MUST,
    spec="openai:completions/create#frequency_penalty",
    needs=["completions", "tokenize"],
)
def test_reward(completions_pair: Recording, rewarded: Case, edges_rewarded: Recording) -> None:
    """A penalty below nothing breaks no repetition."""
    plain = completions_pair.ok["choices"][0]["logprobs"]["tokens"]
    only_if(len(set(plain)) == 1, f"without it the answer is no repetition: {plain}")
    prompted = "repetition_penalty" not in rewarded["set"] or " hello".endswith(plain[0])
    only_if(prompted, f"{plain[0]!r} is not in the prompt, whose tokens are rewarded, too")
    found = _taken(edges_rewarded)["choices"][0]["logprobs"]["tokens"]
    only_if(found[:1] == plain[:1], f"{plain[:1]} and {found[:1]} are about equally likely")

    assert len(set(found)) == 1, f"{rewarded['set']}: {found}, without it {plain}"


@check(
    "edges.penalty.chat",
    MUST,
    spec=f"{CREATE}#frequency_penalty",
    needs=["chat", "tokenize", "logprobs"],
    exchanges=["edges.penalised-chat["],
)
def test_penalty_chat(vllm_recordings: Recordings) -> None:
    """Over chat a frequency penalty breaks a repetition, one below nothing does not."""
    plain, above, below = (_drawn(vllm_recordings, one) for one in ("none", "above", "below"))
    only_if(
        len(set(plain)) == 1 and len(plain) > 1, f"without a penalty the answer is no repetition: {plain}"
    )

    assert len(set(above)) == 2, f"a penalty of 2: {above}, without it {plain}"
    only_if(below[:1] == plain[:1], f"{plain[:1]} and {below[:1]} are about equally likely")
    assert len(set(below)) == 1, f"a penalty of -2: {below}, without it {plain}"


def _drawn(recordings: Recordings, name: str) -> list[str]:
    body = _taken(recordings.get(f"edges.penalised-chat[{name}]"))
    return [row["token"] for row in (body["choices"][0].get("logprobs") or {}).get("content") or ()]


@check("edges.chat.biased", MUST, spec=f"{CREATE}#logit_bias", needs=["chat", "tokenize"])
def test_biased_chat(vllm_server: Server, chat_bias: Case, edges_biased_chat: Recording) -> None:
    """Over chat no token is drawn that a bias of -100 is against."""
    only_if(not vllm_server.drafts, "where tokens are drafted some versions do not keep them from an answer")
    ids, asked = _ids(edges_biased_chat), edges_biased_chat.request.json
    only_if(ids is not None and len(set(asked["allowed_token_ids"])) == 2, "no two tokens are told apart")
    against = asked["allowed_token_ids"][chat_bias["at"]]

    assert against not in (ids or ()), f"the bias is against {against}, the answer's tokens are {ids}"


@check("edges.chat.barred", MUST, spec="fault:vllm-project/vllm/pull/31908", needs=["chat", "tokenize"])
def test_barred_chat(vllm_server: Server, edges_barred_chat: Recording, tokenize_repeated: Recording) -> None:
    """Over chat a bad word is not drawn."""
    only_if(not vllm_server.drafts, "where tokens are drafted some versions do not keep them from an answer")
    ids, barred = _ids(edges_barred_chat), tokenize_repeated.ok["tokens"]
    only_if(ids is not None, "this version gives no ids of tokens")

    assert barred[0] not in (ids or ()), f"the bad word is {barred[0]}, the answer's tokens are {ids}"
