"""What the made-up model and its template do beside, as some do that people serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.sim.habits import HABITS, VARIABLE, has

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.sim.client import Answer, Client

CHAT, PLAIN = "/v1/chat/completions", ("sim-model", "--max-model-len", "4096")


def asked(client: Client, *roles: str, **more: Any) -> Answer:
    messages = [{"role": role, "content": "Say hello."} for role in roles]
    return client.ask("POST", CHAT, {"model": "sim-model", "messages": messages, "max_tokens": 200, **more})


@pytest.mark.parametrize(
    ("habit", "roles", "words"),
    [
        ("systemless", ("system", "user"), "System role not supported"),
        ("alternates", ("user", "user"), "must alternate"),
        ("alternates", ("assistant", "user"), "must alternate"),
    ],
)
def test_a_template_refuses(
    simulated: Callable[..., Client], habit: str, roles: tuple[str, ...], words: str
) -> None:
    client = simulated(*PLAIN, **{VARIABLE: habit})
    refused, taken = asked(client, *roles), asked(client, "user", "assistant", "user")

    assert (refused.status, taken.status) == (400, 200)
    assert words in refused.json["error"]["message"]
    assert asked(simulated(*PLAIN), *roles).status == 200


def test_a_template_that_begins_with_the_time(simulated: Callable[..., Client]) -> None:
    plain, dated = (asked(simulated(*PLAIN, **env), "user") for env in ({}, {VARIABLE: "dated"}))

    assert dated.json["usage"]["prompt_tokens"] > plain.json["usage"]["prompt_tokens"]


def test_a_model_that_never_ends_by_itself(simulated: Callable[..., Client]) -> None:
    ends, talks = (asked(simulated(*PLAIN, **env), "user") for env in ({}, {VARIABLE: "talks-on"}))

    assert ends.json["choices"][0]["finish_reason"] == "stop"
    assert talks.json["choices"][0]["finish_reason"] == "length"
    assert talks.json["usage"]["completion_tokens"] == 200


def test_a_model_that_thinks_whatever_it_was_asked(simulated: Callable[..., Client]) -> None:
    client = simulated(*PLAIN, "--reasoning-parser", "qwen3", **{VARIABLE: "thinks"})
    answer = asked(client, "user", chat_template_kwargs={"enable_thinking": False})

    assert answer.json["choices"][0]["message"]["reasoning"]


def test_an_unknown_habit_is_named() -> None:
    with pytest.raises(KeyError, match="dreams"):
        has({VARIABLE: "dreams"}, "dated")
    assert all(has({VARIABLE: ",".join(HABITS)}, habit) for habit in HABITS)


def test_two_servers_alike_give_ids_of_their_own(simulated: Callable[..., Client]) -> None:
    one, other = (asked(simulated(*PLAIN, VLLM_SIM_REPLICA=name), "user") for name in ("-1", "-2"))

    assert one.json["id"] != other.json["id"]
    assert one.json["choices"] == other.json["choices"]
