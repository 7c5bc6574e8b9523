"""What a run will send, before anything is sent: requests, tokens, time. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_vllm.declare.capabilities import OWN, every_capability
from pytest_vllm.run.bench import REHEARSAL
from pytest_vllm.run.needs import unmet
from pytest_vllm.run.pace import expected_tokens
from pytest_vllm.run.plan import build, measures_for, plan_for
from pytest_vllm.wire.server import Capability, Server

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.profile.model import Profile
    from pytest_vllm.run.plan import Planned, Wanted, WantedMeasurement

#: What every vLLM that chats can do beside it, whatever a profile names.
ALWAYS = {
    *("completions", "responses", "messages", "stream", "structured-output", "tools.required", "logprobs"),
    *("tokenize", "metrics", "openapi", "version"),
}
#: What a token of text is counted as, in bytes, where no tokenizer is at hand.
BYTES = 4
#: Tokens a second of one request among several, where no earlier run of the profile says it.
RATE = 20.0
#: Tokens that a request of an exploration makes, about.
EXPLORED_TOKENS = 40
#: What a request costs beside its tokens, in seconds.
EACH = 0.02


@dataclass(frozen=True)
class Forecast:
    """What will be recorded and measured, as far as it can be known beforehand.

    Args:
        requests: exchanges that will be recorded.
        alone: those of them that have the server to themselves.
        prompt: tokens that they bring, about.
        output: tokens that they may generate, at most.
        unknown: exchanges whose request is made of earlier answers; they are counted as the others' average.
        measurements: loads that will be measured.
        concurrency: exchanges at once.
        seconds: what a load may take in all.
    """

    requests: int
    alone: int
    prompt: int
    output: int
    unknown: int
    measurements: int
    concurrency: int
    seconds: float

    def recording(self, earlier: Mapping[str, Any] | None) -> float:
        """Seconds of recording: as many tokens at the pace of an earlier run, or at 20 a second a request.

        Args:
            earlier: the detail of the recording phase of the profile's last run.
        """
        made = (earlier or {}).get("generated_tokens") or 0
        spent = ((earlier or {}).get("concurrent_seconds") or 0) + ((earlier or {}).get("alone_seconds") or 0)
        if earlier and made and spent:
            return float(spent) * self.requests / max(1, earlier.get("exchanges") or 1)
        return (self.output / RATE + self.requests * EACH) / max(1, self.concurrency)


def load_seconds(profile: Profile, tier: str, *, asked: bool) -> float:
    """What all loads together may take: a rehearsal that is given no time measures only what is asked for."""
    if profile.server.launcher == "sim":
        return profile.measure.rehearsal or (REHEARSAL if asked else 0.0)
    return profile.measure.soak if tier == "soak" else profile.measure.budget


def forecast(
    profile: Profile,
    wants: Mapping[str, Wanted],
    measures: Mapping[str, WantedMeasurement],
    concurrency: int,
    seconds: float,
) -> Forecast:
    """What the items of a profile will send to a server that can do what the profile expects of it."""
    server = expected_server(profile)
    plan = plan_for(wants, server)
    built = [request for planned in plan if (request := _built(planned, server)) is not None]
    sent = [request for request in built if not unmet(request, server)]
    unknown = len(plan) - len(built)
    requests = len(sent) + unknown
    share = requests / max(1, len(sent))
    prompt = sum(map(_size, filter(_generates, sent))) // BYTES
    return Forecast(
        requests,
        sum(planned.spec.alone for planned in plan),
        int(prompt * share),
        int(share * sum(map(expected_tokens, filter(_generates, sent)))),
        unknown,
        len(measures_for(measures, server)) if seconds else 0,
        concurrency,
        seconds,
    )


def explored_requests(seconds: float, concurrency: int) -> int:
    """About how many requests of an exploration a server answers in so many seconds, at `RATE`."""
    return round(seconds * concurrency / (EXPLORED_TOKENS / RATE + EACH))


def expected_server(profile: Profile) -> Server:
    """The server that a profile describes: it can do what the profile expects, and what comes with that.

    Where the profile expects nothing it can do everything.
    """
    expected = set(profile.expect.capabilities)
    known = every_capability()
    able = {*expected, *OWN, *(ALWAYS if "chat" in expected else ())} if expected else set(known)
    args = profile.server.args
    length, batch = args.get("max-model-len"), args.get("max-num-seqs")
    return Server(
        "http://127.0.0.1",
        profile.server.model or profile.name,
        version=profile.server.version or profile.expect.version or "",
        max_model_len=length if isinstance(length, int) else None,
        max_num_seqs=batch if isinstance(batch, int) else None,
        args=dict(args),
        capabilities={name: Capability(name, name in able, "expected") for name in known},
        profile=profile.name,
        launcher=profile.server.launcher,
        simulated=profile.server.launcher == "sim",
    )


def last_recording(phases: Sequence[Mapping[str, Any]], profile: str) -> dict[str, Any] | None:
    """The detail of a profile's recording phase, from the phases of a report; None where it has none."""
    for phase in phases:
        detail = phase.get("detail") or {}
        if phase.get("name") == "record" and detail.get("profile") == profile:
            return dict(detail)
    return None


def _built(planned: Planned, server: Server) -> Any:
    """The request of an exchange; None for one that is made of earlier answers, or not sent at all."""
    if planned.after:
        return None
    try:
        return build(planned, server, {})
    except Exception:  # noqa: BLE001 - a builder is a suite author's code; it may need a server
        return None


def _generates(request: Any) -> bool:
    """Whether a request asks for an answer and may get one."""
    fits = request.expect in (200, None) and request.path.startswith("/v1/")
    return fits and isinstance(request.json, dict)


def _size(request: Any) -> int:
    try:
        return len(json.dumps(request.json, ensure_ascii=False).encode())
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can carry
        return len(json.dumps(request.json))
