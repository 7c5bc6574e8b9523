"""Real servers of unusual settings, none of which may be accused: a gate on each, as rows of a table.

    python -m tests.real.healthy                        every set of flags on vLLM 0.32.0
    python -m tests.real.healthy --vllm 0.29.0 small offline-cache
    python -m tests.real.healthy --loads small          with the loads, which take four minutes more
    python -m tests.real.healthy --keep FOLDER thinks   the runs are left in FOLDER/thinks
    python -m tests.real.healthy --template FILE --flag 'tool-call-parser = "llama3_json"'
                                                        another chat template, with flags that go with it

Each set is a profile of its own, for the image that `python -m tests.real.image --vllm VERSION` makes.
Prints the answer, and the reasons of MUST checks that failed or were undecided; exit status 1 when a server
was accused: any answer but GO and UNDECIDED.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.launch.signals import ending_signals
from tests.real.gate import GateRun, run_gate_within
from tools.conformance.__main__ import areas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MODEL = "/models/SmolLM2-135M-Instruct"
#: Tokens that the model was never asked to read, and the marks of reasoning that take their place.
MARKS = {"<issue_start>": "<think>", "<issue_closed>": "</think>"}
#: Where the image keeps the tokenizers of Mistral's models.
COMMON = "/usr/local/lib/python3.11/dist-packages/mistral_common/data"
PROFILE = """
hardware = "cpu"
model = "smollm2-135m"

[server]
launcher = "docker"
image = "pytest-vllm/cpu:{version}"
model = "{model}"
shm = "1g"
{volumes}

[server.env]
VLLM_CPU_KVCACHE_SPACE = "2"
HF_HUB_OFFLINE = "1"
VLLM_NO_USAGE_STATS = "1"
DO_NOT_TRACK = "1"
{env}

[server.args]
enforce-eager = true
{args}

[boot]
timeout = "10m"
stalled = "4m"
"""
#: What a set is given that names no type of its own: a CPU without AVX-512 emulates bfloat16.
WHOLE = 'dtype = "float32"'
#: Answers that accuse nobody.
HARMLESS = ("GO", "UNDECIDED")
#: A server of one sequence, on a machine with other work, takes its time.
LONGEST_S = 2700.0


@dataclass(frozen=True)
class Flags:
    """How a server is started.

    Args:
        args: lines of `[server.args]`.
        env: `[server.env]`, values as TOML.
        template: a chat template, beside this file or anywhere, which the server reads as /template.jinja.
        marks: whether the tokenizer knows `<think>` and `</think>`, as that of a model that reasons.
        copies: files of the image, and where they stand for the server.
    """

    args: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    template: str = ""
    marks: bool = False
    copies: Mapping[str, str] = field(default_factory=dict)

    def profile(self, version: str, folder: Path) -> str:
        """The profile that boots it; what it mounts lies in this folder, or beside this file."""
        env = (f"{name} = {value}" for name, value in self.env.items())
        args = self.args if any(one.startswith("dtype") for one in self.args) else (WHOLE, *self.args)
        mounted = {Path(__file__).parent / self.template: "/template.jinja"} if self.template else {}
        mounted |= {marked(folder, version): f"{MODEL}/tokenizer.json"} if self.marks else {}
        mounted |= {copied(folder, version, one): other for one, other in self.copies.items()}
        volumes = f"volumes = {[f'{path}:{inside}:ro' for path, inside in mounted.items()]}"
        return PROFILE.format(
            model=MODEL, version=version, args="\n".join(args), env="\n".join(env), volumes=volumes
        )


SETS = {
    "embeddings": Flags(["max-model-len = 2048", 'runner = "pooling"', 'convert = "embed"']),
    "small": Flags(["max-model-len = 512", "max-num-seqs = 1"]),
    "uncached": Flags(["max-model-len = 2048", "max-num-seqs = 4", "no-enable-prefix-caching = true"]),
    "names": Flags(
        [
            "max-model-len = 4096",
            "max-num-seqs = 256",
            'root-path = "/llm"',
            "disable-log-stats = true",
            'served-model-name = ["house/first", "second", "third"]',
        ],
        env={"VLLM_API_KEY": '{ from-env = "HEALTHY_KEY" }'},
    ),
    "order": Flags(
        [
            "max-model-len = 4096",
            "max-num-seqs = 8",
            'scheduling-policy = "priority"',
            "enable-log-requests = true",
            'uvicorn-log-level = "warning"',
        ]
    ),
    "ids": Flags(
        [
            "max-model-len = 8192",
            "return-tokens-as-token-ids = true",
            "max-logprobs = 5",
            "enable-prompt-tokens-details = true",
            "enable-force-include-usage = true",
        ]
    ),
    "drawing": Flags(
        [
            "max-model-len = 1024",
            'generation-config = "vllm"',
            "override-generation-config = { temperature = 0.9, top_p = 0.8, repetition_penalty = 1.1 }",
            "seed = 7",
        ]
    ),
    "batches": Flags(
        ["max-model-len = 4096", "max-num-batched-tokens = 256", "max-num-seqs = 2", "block-size = 32"],
    ),
    "logits": Flags(["max-model-len = 2048", "max-num-seqs = 8", 'logprobs-mode = "raw_logits"']),
    "house": Flags(
        [
            "max-model-len = 2048",
            "max-num-seqs = 4",
            "disable-fastapi-docs = true",
            "enable-server-load-tracking = true",
            "num-gpu-blocks-override = 40",
        ],
        env={"VLLM_ENABLE_RESPONSES_API_STORE": '"1"'},
    ),
    # sums in another order: what is compared with itself may differ at near ties, and only there
    "halves": Flags(['dtype = "bfloat16"', "max-model-len = 4096", "max-num-seqs = 32"]),
    "pieces": Flags(
        [
            "max-model-len = 4096",
            "stream-interval = 5",
            "max-logprobs = 1",
            'fingerprint-mode = "none"',
            "enable-request-id-headers = true",
        ]
    ),
    # what it adds to answers, streams, metrics and its log
    "reports": Flags(
        [
            "max-model-len = 4096",
            "max-num-seqs = 8",
            "max-num-active-seqs = 2",
            "sse-keep-alive-interval = 1",
            "enable-per-request-metrics = true",
            'show-hidden-metrics-for-version = "0.31"',
            "custom-histogram-buckets = { time_to_first_token = [0.5, 5.0], request_latency = [1.0, 60.0] }",
            "kv-cache-metrics = true",
            "enable-tokenizer-info-endpoint = true",
            "enable-log-requests = true",
            "enable-log-outputs = true",
            "renderer-num-workers = 2",
        ]
    ),
    # it refuses what it has no room for, with 503
    "sheds": Flags(
        [
            "max-model-len = 4096",
            "max-num-seqs = 4",
            "max-num-queued-reqs = 6",
            "max-num-queued-tokens = 4096",
            'disable-access-log-for-endpoints = "/health,/metrics,/ping"',
            "h11-max-header-count = 64",
        ]
    ),
    # no parsers: the template of this model knows neither tools nor reasoning
    "grammars": Flags(
        [
            "max-model-len = 4096",
            "max-num-seqs = 8",
            'structured-outputs-config = { backend = "guidance", disable_any_whitespace = true }',
            "trust-request-chat-template = true",
            'response-role = "helper"',
            "enable-prompt-tokens-details = true",
            "enable-scale-out = true",
        ],
        env={"VLLM_HTTP_TIMEOUT_KEEP_ALIVE": '"1"'},
    ),
    # a small model under a template that knows tools and reasoning: weak, and rightly served
    "thinks": Flags(
        [
            "max-model-len = 4096",
            "enable-auto-tool-choice = true",
            'tool-call-parser = "hermes"',
            'reasoning-parser = "qwen3"',
            'chat-template = "/template.jinja"',
            "default-chat-template-kwargs = { enable_thinking = false }",
            "enable-prompt-tokens-details = true",
        ],
        template="thinking.jinja",
        marks=True,
    ),
    # Mistral's own tokenizer, which knows no chat template; with drawn weights all that is written is noise
    "mistral": Flags(
        [
            "max-model-len = 4096",
            'tokenizer = "/tokenizer"',
            'tokenizer-mode = "mistral"',
            'load-format = "dummy"',
            "hf-overrides = { vocab_size = 131072 }",
            "max-num-seqs = 64",
            "enable-auto-tool-choice = true",
            'tool-call-parser = "mistral"',
        ],
        copies={f"{COMMON}/tekken_240911.json": "/tokenizer/tekken.json"},
    ),
    # two processes take requests, whose metrics are summed, and ids come as embeddings too
    "servers": Flags(
        [
            "max-model-len = 4096",
            "api-server-count = 2",
            "max-logprobs = -1",
            "stream-interval = 2",
            "enable-prompt-embeds = true",
            "async-scheduling = false",
            'generation-config = "auto"',
            "no-enable-chunked-prefill = true",
            "max-num-batched-tokens = 4096",
        ],
        env={"VLLM_LOGGING_LEVEL": '"DEBUG"'},
    ),
    # another back end of structured output, which refuses more, and differently
    "outlines": Flags(
        ["max-model-len = 4096", "max-num-seqs = 8", 'structured-outputs-config = { backend = "outlines" }']
    ),
    # two engines behind one address
    "ranks": Flags(["max-model-len = 2048", "max-num-seqs = 8", "data-parallel-size = 2"]),
    "drafts": Flags(
        [
            "max-model-len = 2048",
            'speculative-config = { method = "ngram", num_speculative_tokens = 3, prompt_lookup_max = 4 }',
        ]
    ),
}


def templated(path: Path, flags: Sequence[str]) -> Flags:
    """A server with the chat template of another model, and lines of `[server.args]`."""
    usual = ["max-model-len = 4096", "max-num-seqs = 16", 'chat-template = "/template.jinja"']
    return Flags([*usual, *flags], template=str(path.resolve()), marks=True)


def marked(folder: Path, version: str) -> Path:
    """The model's tokenizer with two marks of reasoning, in place of two that it has no use for."""
    path = copied(folder, version, f"{MODEL}/tokenizer.json")
    text = path.read_text("utf-8")
    for unused, mark in MARKS.items():
        text = text.replace(unused, mark)
    tokenizer = json.loads(text)
    for token in tokenizer["added_tokens"]:
        token["special"] = token["special"] and token["content"] not in MARKS.values()
    path.write_text(json.dumps(tokenizer), "utf-8")
    return path


def copied(folder: Path, version: str, name: str) -> Path:
    """A file of the image of this version."""
    command = ["docker", "run", "--rm", "--entrypoint", "cat", f"pytest-vllm/cpu:{version}", name]
    path = folder / Path(name).name
    path.write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
    return path


def judged(flags: Flags, version: str, *, loads: bool, keep: Path | None = None) -> tuple[GateRun, float]:
    """The gate on a server that is started so, and its seconds; its runs are left in the folder to keep."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pytest-vllm-healthy-") as folder:
        (Path(folder) / "healthy.toml").write_text(flags.profile(version, Path(folder)), "utf-8")
        asked = () if loads else areas()
        key = {"HEALTHY_KEY": "a-key-of-the-house"}
        with redirect_stdout(io.StringIO()):
            run = run_gate_within(LONGEST_S, Path(folder), "--vllm-profile=healthy.toml", *asked, **key)
        if keep is not None:
            shutil.copytree(run.folder, keep, dirs_exist_ok=True)
    return run, time.monotonic() - began


def main(argv: Sequence[str] | None = None) -> int:
    """Print a row for each set; 1 when a server was accused."""
    parser = argparse.ArgumentParser(prog="python -m tests.real.healthy", description=__doc__)
    parser.add_argument("--vllm", default="0.32.0", help="version, of an image that was made")
    parser.add_argument("--loads", action="store_true", help="measure speeds too")
    parser.add_argument("--keep", type=Path, help="a folder for the runs, one folder for each set")
    parser.add_argument("--template", type=Path, help="a chat template, for a set of its own")
    parser.add_argument("--flag", action="append", default=[], help="a line of [server.args] for that set")
    parser.add_argument("flags", nargs="*", choices=[*SETS, []], default=[])
    asked = parser.parse_args(argv)
    sets = dict(SETS)
    if asked.template:
        sets = {asked.template.stem: templated(asked.template, asked.flag)}
    accused = 0
    print("| vLLM | flags | answer | MUST failed | undecided | s |\n| --- | --- | --- | --- | --- | --- |")
    for name in asked.flags or sets:
        keep = asked.keep and asked.keep / name
        with ending_signals():
            run, seconds = judged(sets[name], asked.vllm, loads=asked.loads, keep=keep)
        answer = run.answer if run.report else f"exit status {run.exit}"
        accused += answer not in HARMLESS
        failed, open_ = (run.reasons(verdict) if run.report else {} for verdict in ("fail", "undecided"))
        row = f"| {asked.vllm} | {name} | {answer} | {len(failed)} | {len(open_)} | {seconds:.0f} |"
        print(row, flush=True)
        for check, reason in {**failed, **open_}.items():
            print(f"    {check}: {reason[:300]}", file=sys.stderr)
        if answer not in ("GO", "UNDECIDED", "NO-GO"):
            print(run.text[-3000:], file=sys.stderr)
    return bool(accused)


if __name__ == "__main__":
    sys.exit(main())
