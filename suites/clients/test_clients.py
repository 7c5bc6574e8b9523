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
    if outcome.elsewhere:
        observe("wanted to reach besides, and was not let", ", ".join(outcome.elsewhere))

    only_if(expected or outcome.ran, f"{client.id} was not run: {outcome.why_not}")
    assert outcome.ran, f"the profile expects {client.id}, and it could not be run: {outcome.why_not}"
    if outcome.late:
        undecided(f"{name}: {outcome.ended}")
    assert not outcome.ended, f"{name}: {outcome.ended}; its exchanges: {outcome.log}"
    assert not outcome.failed, f"{name} {outcome.verdict}; its exchanges: {outcome.log}"
    need(outcome.passed, f"{name} {outcome.verdict}")
