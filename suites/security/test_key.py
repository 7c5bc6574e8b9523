"""A server with a key lets nobody in without it."""

from pytest_vllm import (
    MUST,
    SHOULD,
    Case,
    Recording,
    Recordings,
    Server,
    check,
    need,
    observe,
    only_if,
    unexpected,
)

from .exchanges import ROUTES, WRONG_KEY

DOCS = "vllm:usage/security/"
UNAUTHORIZED = "rfc9110:section-15.5.2"
OPEN = "fault:vllm-project/vllm/issues/58144"
AUTH = ("auth",)


def statuses(recordings: Recordings, kind: str, server: Server) -> dict[str, int]:
    """Path -> status of the routes of a kind that the version has."""
    known = [row for row in ROUTES if row["kind"] == kind and server.at_least(row.get("since", "0"))]
    found = {row["path"]: recordings.get(f"security.route[{row['id']}]") for row in known}
    return {path: recording.status for path, recording in found.items() if recording.status is not None}


def control(recordings: Recordings) -> None:
    """Raise Undecided where a route that does not exist looks as if it did."""
    status = recordings.get("security.route[no-such-route]").status
    need(
        status == 404,
        f"PUT to a route that does not exist is answered with {status}, so nothing is told apart",
    )


@check("security.answered", MUST, spec=DOCS, exchanges=("security.",))
def test_answered(vllm_recordings: Recordings) -> None:
    """The right key opens the server, and a foreign origin does not upset it."""
    wrong = unexpected(vllm_recordings.of("security."))

    assert not wrong, "; ".join(wrong)


@check("security.key.refused", MUST, spec=UNAUTHORIZED, needs=AUTH)
def test_refused(credential: Case, security_credential: Recording) -> None:
    """A missing, wrong or malformed credential is refused with 401."""
    security_credential.answered()
    allowed = (400, 401, 403, 404) if credential.id == "crafted-host" else (401, 403)

    assert security_credential.status in allowed, (
        f"{credential.id}: answered with {security_credential.status}: {security_credential.text[:80]}"
    )


@check("security.key.exact", MUST, spec=UNAUTHORIZED, needs=AUTH)
def test_exact(credential_nearly: Case, security_nearly: Recording, security_keyed_models: Recording) -> None:
    """A credential that is nearly the right one is refused."""
    security_nearly.answered()
    need(
        security_keyed_models.status == 200, f"the right one is answered with {security_keyed_models.status}"
    )
    status = security_nearly.status

    assert status in (400, 401, 403), f"{credential_nearly.id}: answered with {status}"


@check("security.key.scheme-case", MUST, spec="rfc9110:section-11.1", needs=AUTH)
def test_scheme_case(
    vllm_server: Server, security_scheme_case: Recording, security_keyed_models: Recording
) -> None:
    """The right key opens the server however its scheme is written."""
    only_if(vllm_server.at_least("0.11.1"), "before 0.11.1 the scheme has to begin with a capital")
    need(security_keyed_models.status == 200, f"`Bearer` is answered with {security_keyed_models.status}")
    security_scheme_case.answered()

    assert security_scheme_case.status == 200, f"`bearer` is answered with {security_scheme_case.status}"


@check("security.key.guards-chat", MUST, spec=UNAUTHORIZED, needs=("auth", "chat"))
def test_guards_chat(security_keyless_chat: Recording) -> None:
    """Nothing is generated without a key."""
    security_keyless_chat.answered()

    assert security_keyless_chat.status in (401, 403), (
        f"answered with {security_keyless_chat.status}: {security_keyless_chat.text[:80]}"
    )


@check("security.key.guards-api", MUST, spec=DOCS, needs=AUTH, exchanges=("security.route",))
def test_guards_api(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Every route that this version guards is closed without a key."""
    found = statuses(vllm_recordings, "guarded", vllm_server)
    need(found, "no route was answered")
    opened = [f"{path} ({status})" for path, status in found.items() if status not in (401, 403, 404)]

    assert not opened, f"open without a key: {', '.join(opened)}"


@check("security.key.guards-inference", SHOULD, spec=OPEN, needs=AUTH, exchanges=("security.route",))
def test_guards_inference(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """No route outside the guarded ones gives the model away without a key."""
    control(vllm_recordings)
    found = statuses(vllm_recordings, "inference", vllm_server)
    opened = [path for path, status in found.items() if status not in (401, 403, 404)]
    told = statuses(vllm_recordings, "information", vllm_server)
    observe(
        "information open without a key", ", ".join(p for p, s in told.items() if s not in (401, 403, 404))
    )

    assert not opened, f"open without a key: {', '.join(opened)}; close them in a proxy"


@check("security.key.not-echoed", MUST, spec=DOCS, needs=AUTH, exchanges=("security.credential",))
def test_not_echoed(vllm_recordings: Recordings) -> None:
    """A key that was sent is not repeated in the answer."""
    answered = [r for r in vllm_recordings.of("security.credential[") if r.status is not None]
    need(answered, "no request was answered")
    wrong = [r.key for r in answered if WRONG_KEY in f"{r.text} {r.headers}"]

    assert not wrong, f"repeated in the answer of {', '.join(wrong)}"


@check("security.key.error-object", SHOULD, spec="fault:QuantumNous/new-api/issues/5491", needs=AUTH)
def test_error_object(security_keyless_chat: Recording) -> None:
    """A refused key is answered with an error object, as clients read it."""
    need(security_keyless_chat.status in (401, 403), f"answered with {security_keyless_chat.status}")
    body = security_keyless_chat.json
    error = body.get("error") if isinstance(body, dict) else None

    assert isinstance(error, dict), f"the body is {security_keyless_chat.text[:80]!r}"
    assert "message" in error, f"the body is {security_keyless_chat.text[:80]!r}"


@check("security.key.challenge", SHOULD, spec="rfc9110:section-11.6.1", needs=AUTH)
def test_challenge(security_keyless_chat: Recording) -> None:
    """A 401 names the scheme that it wants in `WWW-Authenticate`."""
    need(security_keyless_chat.status == 401, f"answered with {security_keyless_chat.status}")

    assert security_keyless_chat.header("www-authenticate"), "there is no such header"
