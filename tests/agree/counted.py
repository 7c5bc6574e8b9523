"""What an exchange did to `/metrics`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.wire.metrics import Metrics
from pytest_vllm.wire.recording import Undecided

if TYPE_CHECKING:
    from pytest_vllm.wire.metrics import Sample
    from pytest_vllm.wire.recording import Recording

#: Not vLLM's and not of requests.
ELSEWHERE = re.compile(r"^(python_|process_)")
#: Counts of requests are equal whatever the model says; counts of tokens follow the answer's usage.
REQUESTS = re.compile(
    r"^(vllm:request_\w+_total|vllm:(e2e_request|request_\w+|time_to_first)\w*_count|http_requests_total)$"
)
TOKENS = {"vllm:prompt_tokens_total": "prompt_tokens", "vllm:generation_tokens_total": "completion_tokens"}
#: Labels that name this server, or what the model did.
FOLDED = {"model_name": "…", "engine": "0"}


def counted(recording: Recording) -> dict[str, str]:
    """Families of a scrape; for an exchange with scrapes around it which samples grew, and by how much."""
    parts: dict[str, str] = {}
    if recording.request.path == "/metrics" and recording.status == 200:
        parts |= families(recording.text)
    if recording.metrics_before is not None and recording.metrics_after is not None:
        parts |= grown(Metrics(recording.metrics_before), Metrics(recording.metrics_after), usage(recording))
    return parts


def families(text: str) -> dict[str, str]:
    """Family -> type, label names and help of each, of vLLM and its HTTP server."""
    metrics = Metrics(text)
    labels: dict[str, set[str]] = {}
    for sample in metrics.samples:
        labels.setdefault(sample.name, set()).update(sample.labels)
    found = {}
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        if not ELSEWHERE.match(name):
            suffix = {"histogram": "_bucket", "summary": "_count"}.get(kind, "")
            names = ",".join(sorted(labels.get(name + suffix, ())))
            found[f"family {name}"] = f"{kind} {{{names}}} {helps.get(name, '')}"
    return found


def grown(before: Metrics, after: Metrics, counts: dict[str, int]) -> dict[str, str]:
    """Sample -> by how much it grew, where that is the server's doing and no matter of time."""
    more: dict[tuple[str, str], float] = {}
    for scrape, sign in ((after, 1), (before, -1)):
        for sample in scrape.samples:
            key = (sample.name, _named(sample))
            more[key] = more.get(key, 0.0) + sign * sample.value
    found = {}
    for (name, place), count in more.items():
        if count and REQUESTS.match(name):
            found[f"grown {place}"] = f"{count:g}"
        elif count and name in TOKENS and counts:
            same = count == counts.get(TOKENS[name])
            found[f"grown {place}"] = "as usage says" if same else "otherwise than usage says"
    return found


def usage(recording: Recording) -> dict[str, int]:
    """Tokens that an answer counted, by the names of chat; empty when it tells none."""
    try:
        bodies: list[Any] = recording.deltas if recording.request.streams else [recording.ok]
    except Undecided:
        return {}
    told = [body["usage"] for body in bodies if isinstance(body, dict) and body.get("usage")]
    return dict(told[-1]) if told else {}


def _named(sample: Sample) -> str:
    labels = {name: FOLDED.get(name, value) for name, value in sorted(sample.labels.items())}
    if labels.get("finished_reason") in {"stop", "length"}:
        labels["finished_reason"] = "stop or length"
    inside = ",".join(f"{name}={value}" for name, value in labels.items())
    return f"{sample.name}{{{inside}}}"
