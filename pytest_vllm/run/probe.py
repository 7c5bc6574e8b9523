"""Finds out what a server is and can do, and how each fact is known."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_vllm.launch.access import access_of, fault_of
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.run.capabilities import PROBES, rows_of
from pytest_vllm.run.findings import Findings
from pytest_vllm.run.lag import Lag
from pytest_vllm.run.thought import with_thought
from pytest_vllm.wire.client import WireClient
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Undecided
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pytest_vllm.profile.model import Profile
    from pytest_vllm.wire.recording import Recording
    from pytest_vllm.wire.redact import Redactor

    First = Callable[[Server], Awaitable[object]]

SIMULATED = "x-pytest-vllm-sim"

#: How the metrics of a server begin that drafts tokens; others have none of them.
DRAFTED = "vllm:spec_decode"
#: Parsers of models whose conversations vLLM renders without a chat template.
HARMONY = ("openai", "openai_gptoss")
#: Seconds within which a server has ended whose engine has died.
DYING = 10.0
#: Bytes of a model's name, or of a version, that is taken for one.
LONGEST_NAME = 4096
#: The smallest default of --max-num-seqs of any back end since 0.10 (the CPU's; GPUs take 256 or 1024).
SMALLEST_DEFAULT_SEQS = 128


async def probe(
    url: str,
    profile: Profile,
    *,
    api_key: str | None = None,
    redactor: Redactor | None = None,
    first: First | None = None,
    described: Callable[[Recording], None] | None = None,
    ended: Callable[[], BootError | None] = lambda: None,
) -> Server:
    """Probe the server at this URL.

    Args:
        url: base URL; a trailing slash or `/v1` is taken off.
        profile: what the server was started from, or is said to be.
        api_key: the key to send.
        redactor: hides secrets in what errors quote.
        first: sends what is to come before everything that makes the server generate.
        described: takes the answer of `/openapi.json`.
        ended: how the server has ended; None while it lives, or when nobody can tell.

    Raises BootError when nothing answers there, when it wants another key, or when it is not a vLLM.
    """
    url = url.rstrip("/").removesuffix("/v1").rstrip("/")
    args = serve_args(profile.server.args)
    draft = Server(
        url=url,
        model="",
        args=args,
        profile=profile.name,
        launcher=profile.server.launcher,
        api_key=api_key,
        access=access_of(profile),
    )
    known = args if _we_started_it(profile) else None
    async with WireClient(draft, redactor) as client, Lag() as lag:
        ask = Findings(client, draft, known, PROBES, lag)
        models, version, metrics = await asyncio.gather(
            ask.get("/v1/models"), ask.get("/version"), ask.get("/metrics")
        )
        _reachable(draft, models)
        _identified(url, models, version, metrics)
        server = _named(_described(draft, models, version, known), profile, models)
        # behind a proxy that hides it, the version is the one that the profile is about
        told = profile.server.vllm_version or profile.expect.version or ""
        server = replace(server, version=server.version or told)
        if first:
            await first(server)
        ask.server = server
        found = await ask.all()
        if ask.broken and (death := await _death(ended)):
            raise death
        if ask.hung and not draft.kind.starts:
            raise _hanging(ask.hung, await ask.get("/health"), url)
        if described:
            described(await ask.get("/openapi.json"))
        drafts = bool(args.get("speculative-config")) or DRAFTED in metrics.text
        server = replace(server, version=server.version or ask.version)
        server = replace(
            server, capabilities=found, named_by_id=ask.named_by_id, logits=ask.logits, drafts=drafts
        )
        return await with_thought(server, ask)


async def _death(ended: Callable[[], BootError | None]) -> BootError | None:
    """How the server has ended; None when it goes on. Whose engine is dead takes a while to end itself."""
    deadline = time.monotonic() + DYING

    def watched() -> BootError | None:
        while (death := ended()) is None and time.monotonic() < deadline:
            time.sleep(0.2)
        return death

    return await asyncio.to_thread(watched)


def serve_args(args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by vLLM's own spelling: no dashes in front, hyphens within."""
    return {name.lstrip("-").replace("_", "-"): value for name, value in args.items()}


def _we_started_it(profile: Profile) -> bool:
    """Whether the profile's arguments are what the server runs with."""
    server = profile.server
    # what a scripted server is served with is made for it, whatever command starts it
    ours = server.command is None or server.scripted
    return server.kind.simulated or (server.kind.starts and ours)


def _reachable(draft: Server, models: Recording) -> None:
    where = f"GET {draft.url}/v1/models"
    if models.failure in (Failure.PROXY, Failure.TLS):
        raise fault_of(models.failure, models.error, draft.url)
    if models.status is None:
        raise BootError(
            f"nothing answers at {draft.url}"
            if models.failure is Failure.NO_CONNECTION
            else f"the server at {draft.url} does not answer",
            evidence=(f"{where}: {models.error}",),
            try_=(
                "check host and port",
                "curl the URL from this machine",
                "see whether the server still runs",
            ),
        )
    if models.status in (401, 403) and not draft.api_key:
        raise BootError(
            f"the server at {draft.url} wants an API key",
            evidence=(f"{where}: {models.status} {_quote(models)}",),
            means="requests without a key are refused, so nothing can be verified",
            try_=(
                "export VLLM_API_KEY=…",
                'in the profile: [server] api-key = { from-env = "VLLM_API_KEY" }',
            ),
        )
    if models.status in (401, 403) and not draft.kind.starts:
        raise BootError(
            f"the server at {draft.url} refuses the API key",
            evidence=(f"{where} with the key: {models.status} {_quote(models)}",),
            try_=("check the key in the environment variable that holds it (VLLM_API_KEY unless named)",),
        )


def _hanging(trials: list[Recording], health: Recording, url: str) -> BootError:
    """A server that takes requests and answers none is not worth an hour of time limits."""
    shown = [f"{one.request.method} {one.request.path}: {one.error}" for one in trials[:3]]
    streams = all(one.request.streams for one in trials)
    what = "no stream of a few tokens ended" if streams else "no trial request got an answer to be read"
    return BootError(
        f"the server at {url} hangs: {what}",
        evidence=(f"GET /health: {health.status or health.error}", *shown),
        means="whole answers come, streams do not end"
        if streams
        else "it takes requests and lists its models, but its engine gives no token",
        try_=(
            "send one request by hand: curl the URL with max_tokens 1",
            "look into its log for the last line of the engine, then restart it",
            "if it only is slow to begin, as one that compiles at its first request, warm it up first",
        ),
    )


def _identified(url: str, models: Recording, version: Recording, metrics: Recording) -> None:
    """Any one sign will do: a faulty vLLM is to be verified, not turned away."""
    signs = (
        version_in(version),
        "vllm:" in metrics.text if metrics.status == 200 else "",
        any(row.get("owned_by") == "vllm" for row in rows_of(models)),
        any(answer.header(SIMULATED) for answer in (models, version, metrics)),
    )
    if any(signs):
        return
    owners = {str(row["owned_by"]) for row in rows_of(models) if row.get("owned_by")}
    served_by = models.header("server")
    raise BootError(
        f"what answers at {url} is not a vLLM",
        evidence=(
            f"GET /v1/models: {models.status} {models.header('content-type')} {_quote(models)}".rstrip(),
            f"GET /version: {version.status or version.error} {_quote(version)}".rstrip(),
            *((f"models owned by {', '.join(sorted(owners))}",) if owners else ()),
            *((f"server header: {served_by}",) if served_by else ()),
        ),
        means="a vLLM names itself in /version, in /metrics (vllm:…) or as the owner of its models",
        try_=("check the port and the path in front of it", "give the base URL, without /v1"),
    )


def _described(
    draft: Server, models: Recording, version: Recording, known: Mapping[str, Any] | None
) -> Server:
    limit = _whole(draft.args.get("max-num-seqs"))
    if limit is None and known is not None:
        limit = SMALLEST_DEFAULT_SEQS
    if queued := _whole(draft.args.get("max-num-queued-reqs")):
        limit = min(limit or queued, queued)
    return replace(
        draft,
        version=version_in(version),
        max_num_seqs=limit,
        simulated=draft.kind.simulated or any(answer.header(SIMULATED) for answer in (models, version)),
        models=tuple(str(row["id"]) for row in rows_of(models) if _is_name(row.get("id"))),
    )


def _named(server: Server, profile: Profile, models: Recording) -> Server:
    """The model that requests name, and its length. LoRA adapters are not base models."""
    base = [row for row in rows_of(models) if _is_name(row.get("id")) and not row.get("parent")]
    listed = [str(row["id"]) for row in base]
    told = profile.server.served_model_name or _first(server.args.get("served-model-name"))
    own = profile.server.model
    name = told or (own if own in listed else None) or next(iter(listed), own)
    if not name:
        raise BootError(
            f"the server at {server.url} does not say which model it serves",
            evidence=(f"GET /v1/models: {models.status} {_quote(models)}",),
            try_=("name it in the profile: [server] served-model-name",),
        )
    if name not in server.models and listed and not server.kind.starts:
        raise BootError(
            f"the server at {server.url} does not serve {name}",
            evidence=(f"GET /v1/models lists: {', '.join(server.models)}",),
            means="the profile describes another deployment than the one that runs there",
            try_=(
                f'in the profile: [server] served-model-name = "{listed[0]}"',
                "or give the URL of the other one",
            ),
        )
    lengths = [row.get("max_model_len") for row in [*(r for r in base if r["id"] == name), *base]]
    length = next((n for n in lengths if isinstance(n, int) and not isinstance(n, bool) and n > 0), None)
    parsers = (server.args.get(key) for key in ("tool-call-parser", "reasoning-parser"))
    harmony = any(one in HARMONY for one in parsers) or any(
        word in f"{own} {models.text}".lower() for word in ("gpt-oss", "gpt_oss")
    )
    return replace(server, model=name, max_model_len=length, templated=not harmony)


def _is_name(name: Any) -> bool:
    """Whether this is a name that requests and reports can carry: text in UTF-8 of some length."""
    try:
        return isinstance(name, str) and 0 < len(name.encode()) <= LONGEST_NAME
    except UnicodeEncodeError:  # a lone surrogate
        return False


def version_in(recording: Recording) -> str:
    """The version that an answer of `/version` reports; empty when it reports none."""
    try:
        version = recording.ok["version"]
    except (Undecided, LookupError, TypeError):
        return ""
    return version if _is_name(version) else ""


def _first(value: Any) -> str | None:
    if isinstance(value, list | tuple):
        value = next(iter(value), None)
    return str(value) if value else None


def _whole(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isdigit() else None


def _quote(recording: Recording) -> str:
    words = " ".join(recording.text.split())
    return words if len(words) <= 160 else f"{words[:159]}…"
