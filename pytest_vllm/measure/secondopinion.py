"""vLLM's own `vllm bench serve` beside our driver: the same load by both, and where they differ.

It runs where the server runs, so that nothing is installed. What it says is kept apart from what we measure,
and says nothing of the server: two clients that differ are a note.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from pytest_vllm.measure.workload import Kind, Prompts, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.measure.measured import Measured

#: The load: streams at once, requests, tokens of prompt and answer.
STREAMS, REQUESTS, PROMPT, OUTPUT = 4, 48, 64, 64
#: Difference between two clients beyond which a note tells of it, as a share of ours.
APART = 0.15
#: Seconds for all of it, importing vLLM included.
PATIENCE = 480.0
#: By how much answers of both differ in length: all alike they would end together, and be asked in waves.
VARIED = 0.5
#: Runs the rest of its words with a folder for the result; prints the result, or how the output ended. The
#: client heeds a proxy of its environment, also for the server beside it.
SCRIPT = (
    'no_proxy="${no_proxy:-$NO_PROXY},127.0.0.1"; NO_PROXY=$no_proxy; export no_proxy NO_PROXY; '
    'd=$(mktemp -d); "$@" --result-dir "$d" --result-filename found.json >"$d/log" 2>&1; s=$?; '
    'if [ -f "$d/found.json" ]; then cat "$d/found.json"; else tail -n 12 "$d/log"; fi; rm -rf "$d"; exit $s'
)
#: Our word, its key in the result, what makes seconds of it.
FIGURES = (
    ("ttft", "median_ttft_ms", 1e-3),
    ("tpot", "median_tpot_ms", 1e-3),
    ("itl", "median_itl_ms", 1e-3),
    ("aggregate-tok-s", "output_throughput", 1.0),
)


@dataclass(frozen=True)
class Opinion:
    """What both clients say of one load, in seconds and tokens per second.

    Args:
        theirs: by our word for it.
        ours: the same.
        completed: requests that theirs finished, whose medians its figures are.
        answered: the same of ours.
    """

    theirs: Mapping[str, float]
    ours: Mapping[str, float]
    completed: int
    answered: int

    def apart(self) -> list[str]:
        """In words, the figures that differ by more than `APART`."""
        return [self._told(name) for name in self.ours if self._far(name)]

    @property
    def text(self) -> str:
        """Every figure of both, in a sentence: those that differ first."""
        names = sorted(self.ours, key=lambda name: not self._far(name))
        counts = f"medians of {self.answered} of our requests and {self.completed} of its"
        told = f"{', '.join(map(self._told, names))}; {counts}"
        if self.apart():
            return f"differs from ours, which says nothing of the server: {told}"
        return f"agrees with ours: {told}"

    def plain(self) -> dict[str, Any]:
        """As JSON values, for the report."""
        return {**asdict(self), "apart": self.apart()}

    def _far(self, name: str) -> bool:
        ours, theirs = self.ours[name], self.theirs[name]
        return bool(ours and theirs) and abs(theirs / ours - 1) > APART

    def _told(self, name: str) -> str:
        ours, theirs = self.ours[name], self.theirs[name]
        share = f" ({round(theirs / ours - 1, 2) + 0.0:+.0%})" if ours else ""
        if name == "aggregate-tok-s":
            return f"{name} ours {ours:.4g}, its {theirs:.4g}{share}"
        return f"{name} ours {ours * 1e3:.4g} ms, its {theirs * 1e3:.4g} ms{share}"


def workload() -> Workload:
    """The load as our driver performs it."""
    kind = Kind("second-opinion", Prompts(tokens=PROMPT), OUTPUT, varied=VARIED)
    return Workload(streams=STREAMS, requests=REQUESTS, kinds=(kind,), seconds=PATIENCE)


def command(program: Sequence[str], url: str, model: str, served: str) -> list[str]:
    """The same load as words for a shell where the server runs.

    Args:
        program: `vllm bench serve`, as it is called there.
        url: of the server, as it is reached there.
        model: its folder or name, for the tokenizer.
        served: the name that requests give.
    """
    load = {
        "--backend": "openai",
        "--base-url": url,
        "--endpoint": "/v1/completions",
        "--model": model,
        "--served-model-name": served,
        "--dataset-name": "random",
        "--random-input-len": PROMPT,
        "--random-output-len": OUTPUT,
        "--random-range-ratio": VARIED,
        "--num-prompts": REQUESTS,
        "--max-concurrency": STREAMS,
        "--num-warmups": 1,
        "--temperature": 0,
    }
    words = [str(word) for pair in load.items() for word in pair]
    return ["sh", "-c", SCRIPT, "sh", *program, *words, "--ignore-eos", "--disable-tqdm", "--save-result"]


def variables(key: str | None) -> dict[str, str]:
    """What it needs in its environment: the key, which no command line may show.

    Without a key it is told so, or it would send the server whatever key the person has there for OpenAI.
    """
    return {"OPENAI_API_KEY": key or ""}


def read(status: int | None, text: str, measured: Measured) -> Opinion:
    """Both opinions, from how it ended and the result that it saved.

    Raises ValueError when it failed, or saved no result with the figures.
    """
    if status != 0:
        how = f"it ended with status {status}" if status else f"it did not end within {PATIENCE:g} s"
        raise ValueError(f"{how}: {text[-400:]}")
    try:
        found = json.loads(text)
        theirs = {name: float(found[key]) * unit for name, key, unit in FIGURES}
        completed = int(found["completed"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"no result of vllm bench serve ({error!r}): {text[-400:]}") from error
    if not completed:
        raise ValueError(f"none of its {REQUESTS} requests was answered; its figures are of none")
    return Opinion(theirs, ours_of(measured), completed, sum(1 for one in measured.samples if one.good))


def ours_of(measured: Measured) -> dict[str, float]:
    """The same figures of our load, by their definitions. Raises ValueError when nothing was answered."""
    good = [one for one in measured.samples if one.good]
    firsts = [one.ttft for one in good if one.ttft is not None]
    each = [one.tpot for one in good if one.tpot is not None]
    gaps = [gap for one in good for gap in one.gaps]
    if measured.wrong or not firsts or not each or not gaps:
        raise ValueError(f"our own load gave nothing to compare with: {measured.wrong or measured.stopped}")
    seconds = max(one.end for one in good) - min(one.sent for one in good)
    return {
        "ttft": median(firsts),
        "tpot": median(each),
        "itl": median(gaps),
        "aggregate-tok-s": sum(one.tokens for one in good) / seconds,
    }
