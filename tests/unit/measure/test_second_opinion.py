"""vLLM's own benchmark beside our driver: how it is called, how it is read, what a difference says."""

from __future__ import annotations

import io
import json
import os
import subprocess
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.launch.arguments import bench_of
from pytest_vllm.measure.measured import Measured
from pytest_vllm.measure.samples import Sample
from pytest_vllm.measure.secondopinion import SCRIPT, command, ours_of, read, workload
from pytest_vllm.measure.workload import Workload
from pytest_vllm.report.progress import Progress
from pytest_vllm.report.text import Style
from pytest_vllm.run import bench as measuring
from pytest_vllm.run.bench import second_opinion
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: As vLLM 0.32.0 saves it, shortened.
RESULT: dict[str, Any] = {
    "backend": "openai",
    "completed": 4,
    "output_throughput": 40.0,
    "median_ttft_ms": 100.0,
    "median_tpot_ms": 11.0,
    "median_itl_ms": 10.5,
    "mean_ttft_ms": 140.0,
}


def measured() -> Measured:
    """Four answers one after the other, 0.1 s to the first of eleven tokens, 0.01 s between two."""
    deltas = [0.1 + 0.01 * n for n in range(11)]
    ones = tuple(
        Sample("x", float(at), float(at), None, [at + one for one in deltas], at + 0.25, tokens=11)
        for at in range(4)
    )
    return Measured("second-opinion.ours", Workload(), samples=ones, alone=("It is Paris.", "It is Paris."))


def test_both_opinions_by_the_same_definitions() -> None:
    found = read(0, json.dumps(RESULT), measured())

    assert found.theirs == pytest.approx({"ttft": 0.1, "tpot": 0.011, "itl": 0.0105, "aggregate-tok-s": 40.0})
    assert found.ours == pytest.approx({"ttft": 0.1, "tpot": 0.01, "itl": 0.01, "aggregate-tok-s": 44 / 3.25})
    assert (found.completed, found.answered) == (4, 4)


def test_a_delta_of_several_tokens_parts_itl_from_tpot() -> None:
    """Per token it is 5 ms, between two deltas 10 ms."""
    load = measured()
    twice = replace(load, samples=tuple(replace(one, tokens=21) for one in load.samples))

    assert ours_of(twice)["itl"] == pytest.approx(0.01)
    assert ours_of(twice)["tpot"] == pytest.approx(0.005)


def test_only_what_differs_by_more_than_15_percent_is_told_as_apart() -> None:
    found = read(0, json.dumps(RESULT), measured())

    assert found.apart() == ["aggregate-tok-s ours 13.54, its 40 (+195%)"]
    assert found.plain()["apart"] == found.apart()


def test_the_note_has_every_figure_and_of_how_many_it_is() -> None:
    """What differs comes first."""
    assert read(0, json.dumps(RESULT), measured()).text == (
        "differs from ours, which says nothing of the server: aggregate-tok-s ours 13.54, its 40 (+195%), "
        "ttft ours 100 ms, its 100 ms (+0%), tpot ours 10 ms, its 11 ms (+10%), "
        "itl ours 10 ms, its 10.5 ms (+5%); medians of 4 of our requests and 4 of its"
    )
    alike = read(0, json.dumps({**RESULT, "output_throughput": 13.5}), measured())
    assert alike.text.startswith("agrees with ours: ttft ours 100 ms, ")


@pytest.mark.parametrize(
    ("status", "text", "told"),
    [
        (2, "No module named 'vllm.benchmarks'", "status 2: No module named"),
        (None, "", "did not end within"),
        (0, "Traceback", "no result of vllm bench serve"),
        (0, '{"completed": 4}', "median_ttft_ms"),
        (
            0,
            json.dumps({**RESULT, "completed": 0, "median_ttft_ms": 0.0}),
            "none of its 48 requests was answered",
        ),
    ],
)
def test_what_is_no_result(status: int | None, text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read(status, text, measured())


@pytest.mark.parametrize(
    ("serve", "bench"),
    [
        (("vllm", "serve"), ("vllm", "bench", "serve")),
        (
            ("py", "-m", "vllm.entrypoints.openai.api_server"),
            ("py", "-m", "vllm.entrypoints.cli.main", "bench", "serve"),
        ),
        (("start.sh",), None),
    ],
)
def test_the_server_s_own_program_benchmarks(serve: tuple[str, ...], bench: tuple[str, ...] | None) -> None:
    assert bench_of(serve) == bench


def test_no_proxy_comes_between_it_and_the_server(tmp_path: Path) -> None:
    """What the person had left out stays left out."""
    fake = tmp_path / "bench"
    fake.write_text('#!/bin/sh\necho "$no_proxy $NO_PROXY"; exit 1\n')
    fake.chmod(0o755)
    words = command([str(fake)], "http://127.0.0.1:8000", "m", "m")
    for given, told in (({}, ",127.0.0.1"), ({"NO_PROXY": "a.b"}, "a.b,127.0.0.1")):
        env = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()} | given
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)

        assert done.stdout == f"{told} {told}\n"


def test_both_loads_have_answers_of_different_lengths() -> None:
    """In waves, as alike ones come, the first token takes twice as long to one of the clients alone."""
    asked = command(["vllm"], "http://127.0.0.1:8000", "m", "m")
    (kind,) = workload().kinds

    assert float(asked[asked.index("--random-range-ratio") + 1]) == kind.varied > 0


def test_the_result_is_all_that_is_printed(tmp_path: Path) -> None:
    fake = tmp_path / "bench"
    fake.write_text('#!/bin/sh\necho noise\nwhile [ "$1" != --result-dir ]; do shift; done\n')
    with fake.open("a") as script:
        script.write('printf \'{"completed": 1}\' >"$2/$4"\n')
    fake.chmod(0o755)
    words = command([str(fake)], "http://127.0.0.1:8000", "m", "m")

    assert SCRIPT in words
    assert json.loads(subprocess.run(words, capture_output=True, check=True).stdout) == {"completed": 1}


@dataclass
class Bench:
    """A server beside which a benchmark runs that says what it was given."""

    status: int
    printed: str
    asked: list[tuple[list[str], dict[str, str]]] = field(default_factory=list)

    def bench(self) -> tuple[tuple[str, ...], str]:
        return ("vllm", "bench", "serve"), "http://127.0.0.1:8000"

    def inside(self, words: Sequence[str], patience: float, env: Mapping[str, str]) -> tuple[int, str]:
        assert patience > 60
        self.asked.append((list(words), dict(env)))
        return self.status, self.printed


def benched(
    bench: Bench, key: str | None, monkeypatch: pytest.MonkeyPatch, width: int = 100
) -> tuple[dict[str, Any], str]:
    """What the report gets, and what the terminal shows."""
    monkeypatch.setattr(measuring, "perform", lambda *_: measured())
    said = io.StringIO()
    server = Server("http://127.0.0.1:8000", "m", launcher="docker", api_key=key)
    state: Any = SimpleNamespace(
        server=server, profile=SimpleNamespace(server=SimpleNamespace(model="org/m"))
    )
    handle: Any = bench
    return second_opinion(state, handle, Progress(said, style=Style(width=width))), said.getvalue()


def test_the_key_travels_in_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as a word of the command, and not in what is told of a failure, wherever its output is cut."""
    key = "token-0123456789-abcdef"
    bench = Bench(1, f"{'x' * 20} Authorization: Bearer {key} {'y' * 390}")
    told, shown = benched(bench, key, monkeypatch)

    ((words, env),) = bench.asked
    assert env == {"OPENAI_API_KEY": key}
    assert not any(key in word for word in words)
    for text in (json.dumps(told), shown):
        assert "it ended with status 1" in text
        assert not any(key[at : at + 8] in text for at in range(len(key) - 7))


def test_a_key_of_the_person_s_own_is_not_sent_to_a_server_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(0, json.dumps(RESULT))
    benched(bench, None, monkeypatch)

    assert bench.asked[0][1] == {"OPENAI_API_KEY": ""}


def test_the_note_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow the terminal is."""
    told, shown = benched(Bench(0, json.dumps(RESULT)), None, monkeypatch, width=60)

    lines = shown.splitlines()
    assert max(map(len, lines)) <= 60
    assert " ".join(" ".join(lines).split()).endswith(read(0, json.dumps(RESULT), measured()).text)
    assert told["answered"] == 4


def test_a_launcher_that_cannot_is_told_once() -> None:
    said = io.StringIO()
    state: Any = SimpleNamespace(server=SimpleNamespace(launcher="attach"))
    handle: Any = SimpleNamespace()

    assert second_opinion(state, handle, Progress(said)) == {
        "not-run": "the launcher attach has none to run; docker, podman and process have"
    }
    assert "vllm bench serve: not run: the launcher attach" in " ".join(said.getvalue().split())
