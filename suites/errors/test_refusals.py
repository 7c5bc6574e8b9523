"""Bad requests are refused, odd ones survived."""

from pytest_vllm import (
    INFO,
    MUST,
    SHOULD,
    Case,
    Recording,
    Recordings,
    Server,
    check,
    listed,
    need,
    observe,
    only_if,
)

SPEC = "vllm:serving/openai_compatible_server/"
AREA = ("errors.bad", "errors.odd", "errors.hostile")
AFTER = ("errors.after-",)


@check("errors.answered", MUST, spec="rfc9110:section-3.4", exchanges=AREA)
def test_answered(vllm_recordings: Recordings) -> None:
    """Every request, however wrong, gets an HTTP response."""
    sent = [recording for prefix in AREA for recording in vllm_recordings.of(prefix)]
    silent = [f"{r.key} ({r.error})" for r in sent if r.status is None]

    assert not silent, f"no response to {listed(silent)}"


@check("errors.refused", MUST, spec=SPEC, needs=["chat"])
def test_refused(vllm_server: Server, bad_request: Case, errors_bad: Recording) -> None:
    """A request that breaks a rule is refused as the client's mistake."""
    passed = not vllm_server.api_only or bad_request["path"].startswith("/v1/")
    only_if(passed, "a proxy passes on the API alone")
    errors_bad.answered()
    only_if(not vllm_server.kept(errors_bad), "something in front keeps that route from clients")

    assert errors_bad.status in bad_request["status"], (
        f"answered with {errors_bad.status}, not {bad_request['status']}: {errors_bad.text[:200]}"
    )


@check("errors.survived", MUST, spec=SPEC, needs=["chat"])
def test_survived(odd_request: Case, errors_odd: Recording) -> None:
    """An odd request is served or refused, but breaks nothing in the server."""
    errors_odd.answered()
    status = errors_odd.status or 0
    allowed = odd_request.get("status") or [200, *range(400, 500)]

    assert status in allowed, f"answered with {status}: {errors_odd.text[:200]}"


@check("errors.hostile", MUST, spec="fault:vllm-project/vllm/pull/30346", needs=["chat"])
def test_hostile(vllm_server: Server, hostile_request: Case, errors_hostile: Recording) -> None:
    """A request that ended the engine of older versions is refused or served."""
    known = vllm_server.version and vllm_server.at_least(hostile_request["from"])
    only_if(known, f"it may end the engine of versions before {hostile_request['from']}, so it was not sent")
    errors_hostile.answered()

    assert errors_hostile.status in hostile_request["status"], (
        f"answered with {errors_hostile.status}, not {hostile_request['status']}: {errors_hostile.text[:200]}"
    )


@check("errors.alive", MUST, spec=SPEC, exchanges=AFTER, needs=["chat"])
def test_alive(vllm_recordings: Recordings) -> None:
    """The server still generates after each bad, odd or hostile request."""
    sent = [r for r in vllm_recordings.of("errors.after-") if r.request.method]
    need(sent, "no bad request was answered")
    dead = [f"{r.key}: {r.status or r.error}" for r in sent if r.status != 200]

    assert not dead, f"one token was asked for afterwards and did not come: {listed(dead)}"


@check("errors.alive.generates", MUST, spec=SPEC, exchanges=AFTER, needs=["chat"])
def test_alive_generates(vllm_recordings: Recordings) -> None:
    """What is generated after a bad request has the token that was asked for."""
    answers = [r for r in vllm_recordings.of("errors.after-") if r.status == 200]
    need(answers, "no request was answered after a bad one")
    counts = {r.key: r.ok["usage"]["completion_tokens"] for r in answers}
    wrong = [f"{key}: {count} tokens" for key, count in counts.items() if count != 1]

    assert not wrong, listed(wrong)


@check("errors.quick", SHOULD, spec=SPEC, exchanges=("errors.bad",))
def test_quick(vllm_recordings: Recordings) -> None:
    """A refusal takes less than five seconds."""
    slow = [f"{r.key}: {r.seconds:.1f} s" for r in vllm_recordings.of("errors.bad") if r.seconds >= 5]

    assert not slow, listed(slow)


@check("errors.fan-out", MUST, spec="fault:advisories/GHSA-3mwp-wvh9-7528", needs=["chat"])
def test_fan_out(errors_fan_out: Recording) -> None:
    """More choices than the server's limit are refused."""
    errors_fan_out.answered()

    assert errors_fan_out.status == 400, f"answered with {errors_fan_out.status}: {errors_fan_out.text[:200]}"


@check("errors.unknown-field", INFO, spec="fault:vllm-project/vllm/issues/53975", needs=["chat"])
def test_unknown_field(errors_unknown_field: Recording) -> None:
    """It is known whether unknown request fields are refused or silently ignored."""
    errors_unknown_field.answered()
    observe("unknown request fields", "ignored" if errors_unknown_field.status == 200 else "refused")

    assert errors_unknown_field.status in (200, 400, 422), f"answered with {errors_unknown_field.status}"
