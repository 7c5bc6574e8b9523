"""No answer of the run gives the key away."""

from __future__ import annotations

import json

from pytest_vllm import MUST, Recordings, check, listed, observe, only_if

#: What stands for a secret in everything that is kept of a run.
HIDDEN = "***"


@check(
    "security.every.key-unsaid",
    MUST,
    spec="vllm:usage/security/",
    needs=["auth"],
    exchanges=["errors.bad[", "messages.refusal[", "*"],
)
def test_key_unsaid(vllm_recordings: Recordings) -> None:
    """No refusal, and no header of an answer, holds a credential."""
    found = [one for one in vllm_recordings.of("") if one.status is not None]
    refused = [one for one in found if (one.status or 0) >= 400]
    only_if(refused, "nothing was refused")
    observe("refusals", len(refused))
    wrong = [
        f"{one.key}: {one.text[max(0, one.text.find(HIDDEN) - 60) :][:100]!r}"
        for one in refused
        if HIDDEN in one.text and HIDDEN not in json.dumps(one.request.json) + (one.request.content or "")
    ]
    wrong += [
        f"{one.key}: {name}"
        for one in found
        for name, value in one.headers
        if HIDDEN in value and name.lower() != "set-cookie"
    ]

    assert not wrong, listed(wrong)
