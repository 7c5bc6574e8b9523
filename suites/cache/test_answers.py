"""A cached prefix changes the time that an answer takes, not the answer."""

from pytest_vllm import MUST, Recording, Recordings, check, near_tie, need, observe

from .scrapes import entries, text

SPEC = "fault:vllm-project/vllm/issues/40896"
NEEDS = ("completions", "logprobs", "prefix-cache")


def repeats(first: Recording, second: Recording) -> bool:
    """Whether two answers are alike, or part where two tokens were about equally likely."""
    one, other = text(first), text(second)
    return one == other or near_tie(entries(first), one, other) or near_tie(entries(second), one, other)


@check("cache.repeat.same-answer", MUST, spec=SPEC, needs=NEEDS)
def test_same(cache_cold: Recording, cache_warm: Recording, cache_again: Recording) -> None:
    """A greedy answer from the cache is the one that was computed."""
    need(repeats(cache_warm, cache_again), "this server gives another greedy answer each time")
    cold, warm = text(cache_cold), text(cache_warm)
    observe("cold and warm answers", "alike" if cold == warm else "part at a near-tie")

    assert repeats(cache_cold, cache_warm), f"cold {cold}, warm {warm}"


@check(
    "cache.beside.same-answer",
    MUST,
    spec="fault:vllm-project/vllm/issues/22808",
    needs=NEEDS,
    exchanges=("cache.beside",),
)
def test_beside(vllm_recordings: Recordings, cache_warm: Recording, cache_again: Recording) -> None:
    """Several requests at once that share a cached prefix get the answer of one alone."""
    need(repeats(cache_warm, cache_again), "this server gives another greedy answer each time")
    answered = [r for r in vllm_recordings.of("cache.beside[") if r.status == 200]
    need(answered, "no request was answered")
    wrong = [f"{r.key}: {text(r)}" for r in answered if not repeats(cache_warm, r)]

    assert not wrong, f"alone {text(cache_warm)}; {'; '.join(wrong)}"


@check("cache.stopped.same-answer", MUST, spec="fault:vllm-project/vllm/issues/5543", needs=NEEDS)
def test_stopped(cache_warm: Recording, cache_again: Recording, cache_after_stop: Recording) -> None:
    """A cached prompt has its answer again once a stop string ended one of it."""
    need(repeats(cache_warm, cache_again), "this server gives another greedy answer each time")
    before, after = text(cache_again), text(cache_after_stop)

    assert repeats(cache_again, cache_after_stop), f"before {before}, after {after}"


@check("cache.steps.same-answer", MUST, spec="fault:vllm-project/vllm/issues/26042", needs=NEEDS)
def test_steps(cache_steps_warm: Recording, cache_steps_cold: Recording) -> None:
    """A prompt read in several steps is answered as with its beginning cached."""
    warm, cold = text(cache_steps_warm), text(cache_steps_cold)

    assert repeats(cache_steps_warm, cache_steps_cold), f"in several steps {cold}, from the cache {warm}"
