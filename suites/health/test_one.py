"""One deployment answers: one version, one model, one process, from the first answer to the last."""

from collections import defaultdict
from itertools import groupby, pairwise
from operator import itemgetter

from pytest_vllm import MUST, Metrics, Recording, Recordings, check, need, observe, only_if

ROUTES = "vllm:serving/openai_compatible_server/"
#: Exchanges whose answers are recorded after this run has started the server anew.
ANEW = "restart."
START, TOKENS = "process_start_time_seconds", "vllm:generation_tokens_total"


def answered(recordings: Recordings, path: str) -> list[Recording]:
    """What was answered with 200 to a GET of a path, in order of sending."""
    found = [r for r in recordings.of("") if r.status == 200 and not r.key.startswith(ANEW)]
    asked = [r for r in found if (r.request.method, r.request.path) == ("GET", path)]
    return sorted(asked, key=lambda r: r.sent)


@check("health.one-version", MUST, spec=ROUTES, exchanges=("health.version", "*"), needs=["version"])
def test_one_version(vllm_recordings: Recordings) -> None:
    """Every answer of `/version` names the same version."""
    told: dict[str, list[str]] = defaultdict(list)
    for recording in answered(vllm_recordings, "/version"):
        told[str(recording.ok)].append(recording.key)
    need(told, "no version was answered")
    observe("asked", sum(map(len, told.values())))

    assert len(told) == 1, "several versions answer at one URL: " + "; ".join(
        f"{version} to {', '.join(keys[:3])}" for version, keys in told.items()
    )


@check("health.one-model", MUST, spec="openai:models/list", exchanges=("health.models", "*"))
def test_one_model(vllm_recordings: Recordings) -> None:
    """A name stands for the same model in every list: of one root and length."""
    told: dict[str, dict[str, str]] = defaultdict(dict)
    for recording in answered(vllm_recordings, "/v1/models"):
        for entry in recording.ok["data"]:
            what = f"root {entry.get('root')!r}, max_model_len {entry.get('max_model_len')}"
            told[str(entry["id"])].setdefault(what, recording.key)
    need(told, "no models were listed")
    several = [
        f"{name} is of {' and of '.join(f'{what} ({key})' for what, key in found.items())}"
        for name, found in told.items()
        if len(found) > 1
    ]

    assert not several, f"several models answer at one URL: {'; '.join(several)}"


@check("health.one-process", MUST, spec=ROUTES, exchanges=("metrics.", "*"), needs=["metrics"])
def test_one_process(vllm_recordings: Recordings) -> None:
    """The server does not start anew while it is tested."""
    told = [
        (r.sent + late, r.key, text)
        for r in vllm_recordings.of("")
        if not r.key.startswith(ANEW)
        for late, text in ((0.0, r.metrics_before), (r.seconds, r.metrics_after))
        if text
    ]
    only_if(told, "nothing is asked of this server around which its metrics are scraped")
    scrapes = [(at, key, Metrics(text)) for at, key, text in told if not Metrics(text).fault]
    need(scrapes, "no scrape around an exchange could be read")
    seen = [(key, one.value(START), one.value(TOKENS)) for _, key, one in sorted(scrapes, key=itemgetter(0))]
    fell = [
        f"{tokens} tokens by {key} (started at {start}), {fewer} by {then} (started at {again})"
        for (key, start, tokens), (then, again, fewer) in pairwise(seen)
        if start != again or (start is None and tokens is not None and fewer is not None and fewer < tokens)
    ]
    started = [start for start, _ in groupby(start for _, start, _ in seen)]
    observe("scrapes", f"{len(seen)} of {len(set(started))} process(es)")
    turns = len(started) > len(set(started))
    need(not turns, f"{len(set(started))} servers answer by turns at one URL, so no counter can be followed")

    assert not fell, f"the server was started anew: {fell[0]}"
