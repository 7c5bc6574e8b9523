"""The routes that probes ask."""

import re

from pytest_vllm import (
    MUST,
    SHOULD,
    Recording,
    Recordings,
    Server,
    check,
    need,
    observe,
    only_if,
    unexpected,
)

#: What clients are made from such a description for.
CLIENTS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/embeddings",
    "/tokenize",
)
SPEC = "vllm:serving/openai_compatible_server/"


@check("health.answered", MUST, spec=SPEC, exchanges=("health.",))
def test_answered(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """The health routes of the version and `/v1/models` are answered with 200."""
    passed = "/v1/" if vllm_server.api_only else "/"
    found = [r for r in vllm_recordings.of("health.") if r.request.path.startswith(passed)]
    shown = [r for r in found if not vllm_server.kept(r)]
    wrong = unexpected(r for r in shown if "/completions" not in r.request.path)

    assert not wrong, "; ".join(wrong)


@check("health.quick", MUST, spec=SPEC)
def test_quick(vllm_server: Server, health_health: Recording) -> None:
    """`/health` answers within five seconds."""
    only_if(not vllm_server.api_only, "a proxy passes on the API alone")
    only_if(not vllm_server.kept(health_health), "something in front keeps it from clients")
    need(health_health.status == 200, f"answered with {health_health.status}")

    assert health_health.seconds < 5, f"took {health_health.seconds:.1f} s"


@check("health.version.readable", MUST, spec=SPEC, needs=["version"])
def test_version(health_version: Recording) -> None:
    """`/version` reports a version that starts with two numbers."""
    version = str(health_version.ok.get("version"))
    observe("version", version)

    assert re.match(r"v?\d+\.\d+", version), f"version is {version!r}"


@check("health.models.listed", MUST, spec="openai:models/list")
def test_models(health_models: Recording) -> None:
    """`/v1/models` lists a model."""
    listed = health_models.ok.get("data")

    assert isinstance(listed, list), f"data is {listed!r:.60}"
    assert listed, "no model is listed"


@check("health.keep-alive", MUST, spec="fault:vllm-project/vllm/issues/18472", exchanges=("health.",))
def test_keep_alive(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """The server keeps a connection open for the next request, as proxies expect."""
    only_if(vllm_server.launcher != "attach", "what lies between may close connections")
    found = [r for r in vllm_recordings.of("health.") if r.status == 200]
    need(found, "no request was answered")
    wrong = [r.key for r in found if r.header("connection").lower() == "close"]

    assert not wrong, f"the connection is closed after {', '.join(wrong[:3])}"


@check("health.head", SHOULD, spec="rfc9110:section-9.3.2")
def test_head(health_head: Recording) -> None:
    """`HEAD /health` is answered like `GET`, or refused as a method."""
    health_head.answered()

    assert health_head.status in (200, 405), f"answered with {health_head.status}"


@check("health.described", MUST, spec=SPEC, needs=["openapi"], exchanges=["health.described", "*"])
def test_described(vllm_recordings: Recordings, health_described: Recording) -> None:
    """Routes that answer clients stand in the server's description of its routes."""
    health_described.answered()
    only_if(health_described.status == 200, f"answered with {health_described.status}")
    paths = health_described.ok.get("paths")
    need(isinstance(paths, dict) and paths, "it describes no route")
    served = {
        one.request.path
        for one in vllm_recordings.of("")
        if one.status == 200 and one.request.method == "POST" and one.request.path in CLIENTS
    }
    only_if(served, "none of them answered")
    lost = sorted(path for path in served if not any(known.endswith(path) for known in paths))

    assert not lost, f"answered and not described: {', '.join(lost)}"


@check("health.own", MUST, spec=SPEC)
def test_own(vllm_server: Server, health_health: Recording) -> None:
    """`/health` is answered by the server, not by a page of something else."""
    only_if(not vllm_server.api_only, "a proxy passes on the API alone")
    only_if(not vllm_server.kept(health_health), "something in front keeps it from clients")
    need(health_health.status == 200, f"answered with {health_health.status}")

    assert not health_health.text.lstrip().startswith("<"), f"a page: {health_health.text[:80]!r}"
