"""Whether real clients get along with the server."""

from __future__ import annotations

from pytest_vllm import MUST, Case, Profile, Recording, check, need, observe, only_if, undecided

from .outcome import Outcome


@check("clients.works", MUST, spec="profile:expect", tier="gate")
def test_works(vllm_profile: Profile, client: Case, clients_run: Recording) -> None:
    """The client does every step that the server can be asked for."""
    outcome = Outcome.of(clients_run)
    expected = client.id in vllm_profile.expect.clients
    name = f"{client['title']} {outcome.version}".strip()
    observe("client", name)
    observe("verdict", outcome.verdict)
    observe("steps", f"{len(outcome.passed)} of {len(client['steps'])}")
    observe("exchanges", outcome.log)

    only_if(expected or not outcome.missing, f"{client.id} was not run: {outcome.missing}")
    only_if(expected or outcome.steps or outcome.ended, f"{client.id} was not run: {outcome.verdict}")
    assert not outcome.missing, f"the profile expects {client.id}, and it can't be run here: {outcome.missing}"
    if outcome.late:
        undecided(f"{name}: {outcome.ended}")
    assert not outcome.ended, f"{name}: {outcome.ended}; its exchanges: {outcome.log}"
    assert not outcome.failed, f"{name} {outcome.verdict}; its exchanges: {outcome.log}"
    assert outcome.steps or outcome.passed, f"the profile expects {client.id}: {outcome.verdict}"
    need(outcome.passed, f"{name}: {outcome.verdict}")
