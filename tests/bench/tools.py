"""Benchmarking programs of others, each put into a throw-away environment: how it is called, what it reports.

Their figures are read from the files that they write themselves. A tool that cannot be installed, cannot run,
or writes no figures raises NoFigures with the reason, which becomes its row.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.bench.truth import Pair, pinned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

#: Seconds for one run of a tool, its start included; and for its installation.
LONGEST, INSTALLING = 300.0, 1800.0
_MS = 1e-3
#: What the model of the calibrator is called.
MODEL = "calibrator"


class NoFigures(Exception):  # noqa: N818 - what the row says, not a fault of ours
    """A tool gave nothing; the text says why, in a line."""


@dataclass(frozen=True)
class Load:
    """What a tool is to do: so many streams at once, one request each, and where things lie.

    Args:
        url: the server.
        streams: requests, all at the same time.
        words: of every answer.
        folder: for what it writes; has `tokenizer/` and `prompts.jsonl`.
    """

    url: str
    streams: int
    words: int
    folder: Path


@dataclass(frozen=True)
class Told:
    """What a tool reports of a run, its own figures in seconds.

    Args:
        ttft: time to the first token.
        itl: between tokens.
        means: whether `itl` is of each request's mean, which hides what happens inside a stream.
        cpu: processor seconds of all its processes, start and end included.
    """

    ttft: Pair
    itl: Pair
    means: bool
    cpu: float = 0.0


@dataclass(frozen=True)
class Tool:
    """A program of others.

    Args:
        name: as it is asked for, and as the package index calls it.
        words: its command after the Python that has it.
        read: its figures, from the folder that it wrote to. Raises ValueError, KeyError, OSError.
    """

    name: str
    words: Callable[[Load], list[str]]
    read: Callable[[Path], Told]

    def run(self, python: Path, load: Load) -> Told:
        """Run it on the second core. Raises NoFigures."""
        _furnish(load.folder)
        command = [*pinned(1), str(python), *self.words(load)]
        before = _children()
        status, output = _ended(command, load.folder)
        cpu = _children() - before
        if status != 0:
            raise NoFigures(f"{_how(status)}: {_last(output)}")
        try:
            told = self.read(load.folder)
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise NoFigures(f"no figures in what it wrote ({error!r}): {_last(output)}") from error
        return Told(told.ttft, told.itl, told.means, cpu)


def install(name: str, folder: Path, python: str = sys.executable) -> Path:
    """An environment with a package in it; its Python. Raises NoFigures with pip's reason."""
    venv = folder / "venv"
    steps = (
        [python, "-m", "venv", str(venv)],
        [str(venv / "bin/python"), "-m", "pip", "install", "--quiet", "--no-cache-dir", name],
    )
    for step in steps:
        try:
            done = subprocess.run(step, capture_output=True, text=True, timeout=INSTALLING, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoFigures(f"not installed: {error}") from error
        if done.returncode:
            raise NoFigures(f"not installed: {_refusal(done.stderr, step[0])}")
    return venv / "bin/python"


def _refusal(text: str, python: str) -> str:
    """Why pip did not install: the Python that it would take, or its last line."""
    wanted = re.findall(r"Requires-Python (\S+)", text)
    if wanted and "No matching distribution" in text:
        asked = subprocess.run([python, "--version"], capture_output=True, text=True, check=False)
        return f"it needs Python {wanted[-1]}, this is {asked.stdout.split()[-1]} (--tool-python)"
    return _last(text)


def _ended(command: list[str], folder: Path) -> tuple[int | None, str]:
    """Exit status, None when it took too long, and all that it said; its whole group is gone afterwards."""
    home = str(folder)
    env = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    env |= {"HOME": home, "XDG_CACHE_HOME": home, "TMPDIR": home, "HF_HUB_DISABLE_TELEMETRY": "1"}
    env |= {"DO_NOT_TRACK": "1", "NO_COLOR": "1", "COLUMNS": "200"}
    with (folder / "log").open("w+", encoding="utf-8", errors="replace") as log:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status: int | None = child.wait(LONGEST)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _kill(child)
        log.seek(0)
        return status, log.read()


def _kill(child: subprocess.Popen[bytes]) -> None:
    for _ in range(2):
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    child.wait()


def _how(status: int | None) -> str:
    return f"ended with status {status}" if status is not None else f"did not end within {LONGEST:g} s"


def _last(text: str) -> str:
    """The last line that says something, without frames."""
    lines = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[│╭╮╰╯─|]", " ", line).strip() for line in text.splitlines()]
    told = [" ".join(line.split()) for line in lines if re.search(r"[A-Za-z]{3}", line)]
    return told[-1][:160] if told else "it said nothing"


def _children() -> float:
    """Processor seconds of every child that has ended and was waited for, and of theirs."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _furnish(folder: Path) -> None:
    """A prompt of one word, and a tokenizer that knows it: no tool has to fetch one."""
    (folder / "prompts.jsonl").write_text(f"{json.dumps({'prompt': 'word', 'text': 'word'})}\n" * 2000)
    place = folder / "tokenizer"
    place.mkdir(exist_ok=True)
    unknown = {"id": 0, "content": "[UNK]", "special": True}
    unknown |= dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0, "word": 1, "x": 2}, "unk_token": "[UNK]"}
    tokenizer: dict[str, Any] = dict.fromkeys(
        ("truncation", "padding", "normalizer", "post_processor", "decoder")
    )
    tokenizer |= {"version": "1.0", "added_tokens": [unknown], "pre_tokenizer": {"type": "Whitespace"}}
    (place / "tokenizer.json").write_text(json.dumps({**tokenizer, "model": model}))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", "eos_token": "[UNK]"}
    config |= {"chat_template": "{% for one in messages %}{{ one.content }}{% endfor %}"}
    (place / "tokenizer_config.json").write_text(json.dumps(config))


def _guidellm(load: Load) -> list[str]:
    words = ["-m", "guidellm", "run", "--disable-console-interactive"]
    words += ["--backend", f"kind=openai_http,target={load.url},model={MODEL},request_format=/v1/completions"]
    words += ["--profile", f"kind=concurrent,streams={load.streams}"]
    words += ["--constraint", f"kind=max_requests,count={load.streams}"]
    words += ["--tokenizer", f"kind=huggingface_auto,model={load.folder / 'tokenizer'}"]
    words += ["--data", f"kind=json_file,path={load.folder / 'prompts.jsonl'}"]
    return [*words, "--output", f"kind=json,path={load.folder / 'found.json'}"]


def _of_guidellm(folder: Path) -> Told:
    metrics = json.loads((folder / "found.json").read_text("utf-8"))["benchmarks"][0]["metrics"]

    def pair(name: str) -> Pair:
        told = metrics[name]["successful"]["percentiles"]
        return Pair(told["p50"] * _MS, told["p99"] * _MS)

    return Told(pair("time_to_first_token_ms"), pair("inter_token_latency_ms"), means=True)


def _aiperf(load: Load) -> list[str]:
    words = ["-m", "aiperf", "profile", "--model", MODEL, "--url", load.url, "--streaming", "--ui", "none"]
    words += ["--endpoint-type", "chat", "--tokenizer", str(load.folder / "tokenizer")]
    words += ["--concurrency", str(load.streams), "--request-count", str(load.streams)]
    words += ["--input-file", str(load.folder / "prompts.jsonl"), "--custom-dataset-type", "single_turn"]
    words += ["--no-gpu-telemetry", "--no-server-metrics", "--use-server-token-count"]
    return [*words, "--artifact-dir", str(load.folder / "found")]


def _of_aiperf(folder: Path) -> Told:
    (path,) = (folder / "found").rglob("profile_export_aiperf.json")
    found = json.loads(path.read_text("utf-8"))

    def pair(name: str) -> Pair:
        return Pair(found[name]["p50"] * _MS, found[name]["p99"] * _MS)

    return Told(pair("time_to_first_token"), pair("inter_chunk_latency"), means=False)


def _vllm(load: Load) -> list[str]:
    words = [
        "-m",
        "vllm.entrypoints.cli.main",
        "bench",
        "serve",
        "--backend",
        "openai",
        "--base-url",
        load.url,
    ]
    words += [
        "--endpoint",
        "/v1/completions",
        "--model",
        MODEL,
        "--tokenizer",
        str(load.folder / "tokenizer"),
    ]
    words += ["--dataset-name", "random", "--random-input-len", "8", "--random-output-len", str(load.words)]
    words += ["--disable-tqdm", "--ready-check-timeout-sec", "0"]
    words += ["--num-prompts", str(load.streams), "--max-concurrency", str(load.streams)]
    words += ["--metric-percentiles", "50,99", "--percentile-metrics", "ttft,itl", "--save-result"]
    return [*words, "--result-dir", str(load.folder), "--result-filename", "found.json"]


def _of_vllm(folder: Path) -> Told:
    found = json.loads((folder / "found.json").read_text("utf-8"))

    def pair(name: str) -> Pair:
        return Pair(found[f"p50_{name}_ms"] * _MS, found[f"p99_{name}_ms"] * _MS)

    return Told(pair("ttft"), pair("itl"), means=False)


#: Those that `--with` installs; the name is the package's.
INSTALLED: Mapping[str, Tool] = {
    "guidellm": Tool("guidellm", _guidellm, _of_guidellm),
    "aiperf": Tool("aiperf", _aiperf, _of_aiperf),
}
#: The one that comes with a vLLM.
VLLM = Tool("vllm bench serve", _vllm, _of_vllm)
