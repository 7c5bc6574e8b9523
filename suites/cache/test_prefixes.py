"""How much of a prompt is found, to the token: the smallest prefix, agents' turns, an edit in the middle."""

from pytest_vllm import MUST, Case, Recording, Recordings, Server, check, need, observe, only_if

from .exchanges import answered
from .scrapes import between, block, cached_tokens, capacity, findable, length, undisturbed

DESIGN = "vllm:design/prefix_caching/"
TURNS = "fault:vllm-project/vllm/issues/31920"
NEEDS = ("completions", "prefix-cache", "cached-tokens", "metrics")


@check("cache.rung.exact", MUST, spec=DESIGN, needs=NEEDS)
def test_rung(  # noqa: PLR0917 - pytest passes them by name
    vllm_server: Server,
    cache_rung: Case,
    cache_config: Recording,
    cache_rung_cold: Recording,
    cache_rung_warm: Recording,
    vllm_recordings: Recordings,
) -> None:
    """A block of a repeated prompt is found once a token follows it, not before."""
    size = block(cache_config)
    tokens, found = length(cache_rung_warm), cached_tokens(cache_rung_warm)
    right = findable(tokens, size, vllm_server)
    need(cache_rung_cold.status == 200, f"at first it was answered with {cache_rung_cold.status}")
    need(right[0] == cache_rung["found"] * size, "the prompt does not have the length that is asked for")
    observe(cache_rung.id, f"{found} of {tokens} tokens, blocks of {size}")
    if found < right[-1]:
        undisturbed(vllm_recordings, cache_config, cache_rung_cold, cache_rung_warm)

    assert found in right, f"{found} of {tokens} tokens are found, {right[0]} fill blocks of {size}"


@check("cache.turns.exact", MUST, spec=TURNS, needs=(*NEEDS, "logprobs"))
def test_turns(  # noqa: PLR0917 - pytest passes them by name
    vllm_server: Server,
    cache_agent: Case,
    cache_config: Recording,
    cache_turn_first: Recording,
    cache_turn_second: Recording,
    cache_turn_third: Recording,
    vllm_recordings: Recordings,
) -> None:
    """Each turn of an agent finds all full blocks of the turns before it, answers too."""
    size, room = block(cache_config), capacity(cache_config)
    wrong, crowded = [], []
    for before, now in ((cache_turn_first, cache_turn_second), (cache_turn_second, cache_turn_third)):
        answer = answered(before)
        need(answer, f"{before.key} tells no token ids")
        # the last token of an answer was handed out and never computed
        right = findable(length(before) + len(answer), size, vllm_server)
        found = cached_tokens(now)
        observe(f"{cache_agent.id}: {now.key}", f"{found} of {length(now)} tokens")
        if found < right[-1] and room - length(now) < (others := between(vllm_recordings, before, now)):
            crowded.append(
                f"{now.key} finds {found} tokens; others may have taken {others} of {room} meanwhile"
            )
        elif found < right[-1] or found > length(now) - 1:
            wrong.append(f"{now.key} finds {found} tokens, {right[-1]} of the turns before fill blocks")
    only_if(wrong or len(crowded) < 2, "; ".join(crowded))

    assert not wrong, f"{'; '.join(wrong)}, blocks of {size}"


@check("cache.edited.exact", MUST, spec=DESIGN, needs=NEEDS)
def test_edited(
    cache_agent: Case,
    cache_config: Recording,
    cache_turn_first: Recording,
    cache_edited: Recording,
    vllm_recordings: Recordings,
) -> None:
    """With one token changed, the blocks before it are found and none after it."""
    size, found = block(cache_config), cached_tokens(cache_edited)
    if found < size:
        undisturbed(vllm_recordings, cache_config, cache_turn_first, cache_edited)

    assert found == size, (
        f"{cache_agent.id}: {found} tokens are found, the change is in the second block of {size}"
    )
