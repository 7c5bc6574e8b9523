"""Routes and methods that do not exist."""

from pytest_vllm import SHOULD, Recordings, check, listed, need

from .bodies import error_of

AREA = ("errors.bad",)


@check("errors.routes.envelope", SHOULD, spec="openai:error-codes", exchanges=AREA)
def test_envelope(vllm_recordings: Recordings) -> None:
    """Unknown routes and wrong methods are refused in the API's own shape."""
    keys = ("errors.bad[route-unknown]", "errors.bad[chat-by-get]")
    refused = [r for key in keys for r in vllm_recordings.of(key) if (r.status or 0) >= 400]
    need(refused, "nothing was refused")
    wrong = [f"{r.key}: {r.text[:60]!r}" for r in refused if "message" not in error_of(r)]

    assert not wrong, listed(wrong)


@check("errors.routes.allow", SHOULD, spec="rfc9110:section-15.5.6", exchanges=AREA)
def test_allow(vllm_recordings: Recordings) -> None:
    """A refused method is answered with the methods that the route has."""
    keys = ("errors.bad[chat-by-get]", "errors.bad[chat-by-delete]", "errors.bad[health-by-post]")
    refused = [r for key in keys for r in vllm_recordings.of(key) if r.status == 405]
    need(refused, "no method was refused with 405")
    wrong = [f"{r.key}: no Allow header" for r in refused if not r.header("allow")]

    assert not wrong, listed(wrong)
