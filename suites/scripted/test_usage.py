"""Token counts of scripted answers: the script's tokens and the one that ends it, no more and no less."""

from __future__ import annotations

from pytest_vllm import MUST, SHOULD, Recording, Recordings, Server, check, listed, need, only_if

from .answers import said
from .phrasing import answer_rows, cut_pieces
from .scripts import markup_of_thoughts, pieces_of, script_of, text_of, tokens_in

NEEDS = ("chat", "scripted")
STREAM = (*NEEDS, "stream")
WHOLE, STREAMED, SPLIT = "scripted.answer.whole[", "scripted.answer.stream[", "scripted.answer.split["
CUT = "scripted.cut."


@check("scripted.usage.exact", MUST, spec="openai:chat/object#usage", needs=STREAM, exchanges=(SPLIT,))
def test_exact(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """An answer counts the tokens of its script and the one that ends it."""
    wrong, seen = [], 0
    for case in answer_rows():
        one = vllm_recordings.get(f"{SPLIT}{case.id}]")
        if one.status == 200 and not case.get("long"):
            pieces = pieces_of(vllm_server, text_of(vllm_server, script_of(vllm_server, case)))
            found, meant = said(one), tokens_in(vllm_server, pieces) + 1
            if found.errors:
                continue  # what broke off has no usage; that it did is `scripted.answer.split`'s to blame
            spent = found.spent
            seen += spent is not None
            wrong += [f"{one.key}: {spent}, not {meant}"] if spent != meant else []
    need(seen, "no stream reports its usage")

    assert not wrong, listed(wrong)


@check(
    "scripted.usage.alike", MUST, spec="openai:chat/object#usage", needs=STREAM, exchanges=(WHOLE, STREAMED)
)
def test_alike(vllm_recordings: Recordings) -> None:
    """The same script costs the same tokens, streamed or whole."""
    wrong, seen = [], 0
    for whole in vllm_recordings.of(WHOLE):
        stream = vllm_recordings.get(whole.key.replace(WHOLE, STREAMED))
        if whole.status == stream.status == 200:
            one, other = said(whole).spent, said(stream).spent
            seen += 1
            wrong += [f"{whole.key}: whole {one}, streamed {other}"] if one != other else []
    need(seen, "no script was answered in both modes")

    assert not wrong, listed(wrong)


@check("scripted.usage.cut", MUST, spec="openai:chat/object#usage", needs=NEEDS, exchanges=(CUT,))
def test_cut(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """An answer that its limit cuts counts as many tokens as the limit allows."""
    pieces, _ = cut_pieces(vllm_server)
    whole = tokens_in(vllm_server, pieces) + 1
    wrong = []
    for one in vllm_recordings.of(CUT):
        if one.status == 200:
            meant, spent = min(one.request.json["max_tokens"], whole), said(one).spent
            wrong += [f"{one.key}: {spent}, not {meant}"] if spent != meant else []

    assert not wrong, listed(wrong)


@check(
    "scripted.usage.thoughts",
    SHOULD,
    spec="openai:chat/object#usage",
    needs=(*STREAM, "reasoning"),
    exchanges=(SPLIT,),
)
def test_thoughts(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Where an answer reports its reasoning tokens, they are those of the reasoning."""
    wrong, seen = [], 0
    around = sum(
        tokens_in(vllm_server, pieces_of(vllm_server, text)) for text in markup_of_thoughts(vllm_server)
    )
    for case in answer_rows():
        one = vllm_recordings.get(f"{SPLIT}{case.id}]")
        count = said(one).thought if one.status == 200 else None
        if count is not None and not case.get("long"):
            meant = len((script_of(vllm_server, case).thinking or "").encode())
            seen += 1
            if not meant <= count <= meant + around:
                wrong.append(f"{one.key}: {count}, not {meant} (and {around} of markup at most)")
    only_if(seen, "no answer reports its reasoning tokens")

    assert not wrong, listed(wrong)


@check("scripted.choices.all", MUST, spec="openai:chat/create#n", needs=NEEDS)
def test_choices(scripted_choices: Recording) -> None:
    """Several choices with one script all say it, and are counted together."""
    found = [said(scripted_choices, number) for number in range(3)]
    texts = [(one.content.strip(), one.thoughts.strip(), len(one.calls)) for one in found]

    assert len(set(texts)) == 1, f"three choices of one script: {texts}"
    assert found[0].spent is not None, "no usage"
    assert found[0].spent % 3 == 0, f"{found[0].spent} tokens for three equal choices"
