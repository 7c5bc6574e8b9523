"""What a server in production does not offer."""

import re

from pytest_vllm import (
    INFO,
    MUST,
    SHOULD,
    Case,
    Profile,
    Recording,
    Recordings,
    Server,
    check,
    only_if,
)

from .exchanges import FOREIGN
from .test_key import control, statuses

DOCS = "vllm:usage/security/"
DEVELOPMENT = "fault:vllm-project/vllm/pull/29922"
TEMPLATE = "fault:advisories/GHSA-6fvq-23cw-5628"

FETCH = "fault:vllm-project/vllm/issues/57157"
#: What HTTP clients say of an address at which nothing listens.
TRIED = re.compile(
    r"cannot connect|connection refused|connect call failed|connection ?error|max retries", re.IGNORECASE
)


def reachable(found: dict[str, int]) -> list[str]:
    """The routes that exist and are open."""
    return [path for path, status in found.items() if status not in (401, 403, 404)]


@check("security.no-development-routes", MUST, spec=DEVELOPMENT, exchanges=("security.route",))
def test_development(vllm_profile: Profile, vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Routes that put the server to sleep, reset it or run code in it are absent."""
    only_if("sleep" not in vllm_profile.expect.capabilities, "the profile expects sleep mode and its routes")
    control(vllm_recordings)
    found = reachable(statuses(vllm_recordings, "development", vllm_server))

    assert not found, f"open to anybody: {', '.join(found)}; unset VLLM_SERVER_DEV_MODE"


@check("security.no-profiler-routes", MUST, spec=DOCS, exchanges=("security.route",))
def test_profiler(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Routes that start a profiler are absent."""
    control(vllm_recordings)
    found = reachable(statuses(vllm_recordings, "profiler", vllm_server))

    assert not found, f"open to anybody: {', '.join(found)}; start without a profiler"


@check("security.no-lora-routes", SHOULD, spec=DOCS)
def test_lora(vllm_profile: Profile, security_lora_route: Recording) -> None:
    """Adapters cannot be loaded from any path at run time."""
    only_if("lora" not in vllm_profile.expect.capabilities, "the profile expects adapters")
    security_lora_route.answered()
    status = security_lora_route.status

    assert status != 405, "/v1/load_lora_adapter is there; unset VLLM_ALLOW_RUNTIME_LORA_UPDATING"


@check("security.untrusted-field", MUST, spec=TEMPLATE)
def test_untrusted(vllm_server: Server, untrusted_field: Case, security_untrusted: Recording) -> None:
    """A client cannot bring its own template, embeddings or media settings."""
    only_if(vllm_server.at_least(untrusted_field["from"]), f"it is refused from {untrusted_field['from']} on")
    only_if(not vllm_server.args.get(untrusted_field["unless"]), f"--{untrusted_field['unless']} is set")
    security_untrusted.answered()
    status = security_untrusted.status or 0

    assert 400 <= status < 500, f"answered with {status}: {security_untrusted.text[:120]}"


@check("security.no-inner-fetch", MUST, spec=FETCH, needs=("chat",))
def test_no_inner_fetch(security_media_url: Recording) -> None:
    """A picture's address cannot make the server ask its own host."""
    security_media_url.answered()
    tried = TRIED.search(security_media_url.text)

    assert not tried, f"it tried: {tried and tried[0]!r}; set --allowed-media-domains"


@check("security.cross-origin.no-credentials", MUST, spec=DOCS)
def test_no_credentials(security_cross_origin: Recording) -> None:
    """A web page of another site may not use a visitor's credentials."""
    security_cross_origin.answered()
    origin = security_cross_origin.header("access-control-allow-origin")
    credentials = security_cross_origin.header("access-control-allow-credentials")

    assert not (origin in (FOREIGN, "*") and credentials == "true"), (
        f"allowed: origin {origin!r} with credentials"
    )


@check("security.cross-origin.closed", SHOULD, spec=DOCS)
def test_cross_origin(security_cross_origin: Recording) -> None:
    """A web page of any other site may not read the server's answers."""
    security_cross_origin.answered()
    origin = security_cross_origin.header("access-control-allow-origin")

    assert origin not in (FOREIGN, "*"), f"allowed: origin {origin!r}; set --allowed-origins"


@check("security.cross-origin.refused", MUST, spec=DOCS, needs=["completions"])
def test_refused(security_cross_origin: Recording, security_cross_origin_refused: Recording) -> None:
    """A web page that may read answers may read why a request of it is refused."""
    security_cross_origin.answered()
    security_cross_origin_refused.answered()
    name = "access-control-allow-origin"
    allowed, refused = (one.header(name) for one in (security_cross_origin, security_cross_origin_refused))
    only_if(allowed in (FOREIGN, "*"), f"the page may not read answers: {allowed!r}")
    status = security_cross_origin_refused.status
    only_if(status == 400, f"not refused: {status}")

    assert refused == allowed, f"{name}: {refused!r} with status {status}, {allowed!r} with an answer"


@check("security.server-header", INFO, spec="rfc9110:section-10.2.4")
def test_server_header(security_cross_origin: Recording) -> None:
    """The header `Server` reports no version."""
    security_cross_origin.answered()
    value = security_cross_origin.header("server")

    assert not re.search(r"\d", value), f"Server: {value}"
