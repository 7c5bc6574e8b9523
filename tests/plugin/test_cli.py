"""The companion command as a person types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.cli import main
from pytest_vllm.facts import versions

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = (
    "checks",
    "clients",
    "compare",
    "defects",
    "diagnose",
    "history",
    "import",
    "load-worker",
    "preflight",
    "profiles",
    "reach",
    "reap",
    "replay",
    "schema",
    "show",
    "sim",
    "version",
    "waive",
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project as the current folder."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def own_profile(project: Path, text: str, name: str = "mine") -> None:
    """A profile of the project."""
    folder = project / "vllm-profiles"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.toml").write_text(text, "utf-8")


def test_no_arguments_print_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Every command is listed with one line that is not cut short."""
    assert main([]) == 0

    shown = capsys.readouterr().out
    assert shown.startswith("Usage: pytest-vllm [OPTIONS] COMMAND [ARGS]...")
    listed = shown.partition("Commands:\n")[2].split("\n")
    assert sorted(line.split()[0] for line in listed if line) == list(COMMANDS)
    assert not any(line.endswith("...") for line in listed)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` explains a command and runs nothing; `sim` passes it on."""
    if command == "sim":
        return
    assert main([command, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: pytest-vllm {command}")


def test_profiles_of_an_empty_project(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The built-in ones, one line each."""
    assert main(["profiles"]) == 0

    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "launcher", "model", "hardware", "description"]
    assert {row.split()[0] for row in rows} >= {"sim", "cpu-smollm2", "cpu-smollm2-process", "spark-fp8"}
    spark = next(row for row in rows if row.startswith("spark-fp8"))
    assert spark.split()[:4] == ["spark-fp8", "docker", "Qwen/Qwen3-32B-FP8", "gb10"]


def test_profiles_of_a_project(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its own are listed with where each comes from."""
    own_profile(project, 'extends = "sim"\ndescription = "my own"')

    assert main(["profiles", "--json"]) == 0

    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["mine"] == {
        "name": "mine",
        "launcher": "sim",
        "model": "sim-model",
        "hardware": "sim",
        "origin": "vllm-profiles",
        "description": "my own",
    }
    assert rows["sim"]["origin"] == "built in"


def test_a_broken_profile_hides_no_other(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The list is printed, the fault is too, and the exit status says so."""
    own_profile(project, "[server.args]\nmax-modle-len = 1\n")

    assert main(["profiles"]) == 4

    out, err = capsys.readouterr()
    assert "spark-fp8" in out
    assert err == (
        "pytest-vllm: vllm-profiles/mine.toml:2: unknown vllm flag 'max-modle-len' in [server.args]; "
        "did you mean 'max-model-len'?\n"
    )


def test_show(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole profile, then what hardware and model allow."""
    assert main(["show", "spark-fp8"]) == 0

    shown = capsys.readouterr().out
    assert shown.startswith("# spark-fp8 (built in)\n")
    assert "max-num-batched-tokens = 16384\n" in shown
    assert 'HF_TOKEN = { from-env = "HF_TOKEN" }\n' in shown
    assert "# decode ceiling  8.3 tok/s with 1 stream\n" in shown


def test_show_as_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same for programs, figures in base units."""
    assert main(["show", "cpu-smollm2", "--json"]) == 0

    shown = json.loads(capsys.readouterr().out)
    assert (shown["name"], shown["origin"], shown["notes"]) == ("cpu-smollm2", "built in", [])
    assert shown["profile"]["server"]["args"]["max-num-seqs"] == 16
    assert shown["derived"]["kv-cache-tokens"] == 46_592


def test_show_tells_what_became_of_flags(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A flag that the image's vLLM no longer has is a note here; preflight refuses it."""
    own_profile(
        project,
        '[server]\nimage = "vllm/vllm-openai:v0.20.0"\n'
        "args = { disable-log-requests = true, enable-reasoning = true, kv-offloading-size = 4 }\n",
    )

    assert main(["show", "mine"]) == 0

    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("# note")]
    assert notes == [
        (
            "# note: --disable-log-requests is gone since vLLM 0.17.0; write --enable-log-requests "
            "(inverted; request logging is off by default since 0.10.1)"
        ),
        "# note: --enable-reasoning is gone since vLLM 0.10.0; write --reasoning-parser",
    ]


def test_checks(capsys: pytest.CaptureFixture[str]) -> None:
    """Every bundled check, as a table, as JSON and as the catalogue's page."""
    assert main(["checks", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) >= 80
    row = next(row for row in rows if row["id"] == "profile.version.expected")
    assert {key: row[key] for key in ("level", "family", "tier", "area", "needs", "file", "fact")} == {
        "level": "MUST",
        "family": "environment",
        "tier": "smoke",
        "area": "profile",
        "needs": ["version"],
        "file": "suites/profile/test_expectations.py",
        "fact": "The server runs the vLLM version that the profile names.",
    }

    assert main(["checks", "--area", "profile"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["id", "level", "tier", "needs", "fact"]
    assert [line.split()[0] for line in lines] == [row["id"] for row in rows if row["area"] == "profile"]

    assert main(["checks", "--markdown"]) == 0
    page = capsys.readouterr().out
    assert page.startswith(f"# The bundled checks\n\n{len(rows)} checks.")
    assert all(f"| `{row['id']}` |" in page for row in rows)


def test_defects(capsys: pytest.CaptureFixture[str]) -> None:
    """Names, areas and summaries of the simulator's faults."""
    assert main(["defects", "--json"]) == 0

    rows = json.loads(capsys.readouterr().out)
    assert rows
    assert all(row["name"] and row["area"] and row["summary"] for row in rows)


def test_schema(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON that says what it is."""
    assert main(["schema"]) == 0

    assert json.loads(capsys.readouterr().out)["title"] == "A pytest-vllm profile"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Ours, the libraries', and how far the facts reach."""
    assert main(["version"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "pytest-vllm",
        "pytest",
        "openai",
        "docker",
        "python",
        "facts",
    ]
    assert lines[-1] == f"facts of vLLM {versions()[0]} to {versions()[-1]}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["profils"],
            f"unknown command 'profils'; did you mean 'profiles'? (one of {', '.join(COMMANDS)})",
        ),
        (["show"], "missing argument NAME (see pytest-vllm show --help)"),
        (
            ["profiles", "--jsn"],
            (
                "unknown option '--jsn'; did you mean '--json'? (one of --help, --json, --rootdir) "
                "(see pytest-vllm profiles --help)"
            ),
        ),
        (["--hlep"], "unknown option '--hlep'; did you mean '--help'? (one of --help)"),
        (["show", "sim", "too"], "unexpected argument 'too' (see pytest-vllm show --help)"),
        (["show", "sim", "--rootdir"], "--rootdir needs a value (see pytest-vllm show --help)"),
        (
            ["show", "sim", "--json=1"],
            "--json takes no value, and was given '1' (see pytest-vllm show --help)",
        ),
        (["replay"], "missing argument FOLDER (see pytest-vllm replay --help)"),
        (["preflight", "sim", "--sarif", "/dev/null/x.sarif"], "/dev/null: File exists"),
        (["profiles", "--rootdir", "no-such"], "no folder no-such"),
        (
            ["replay", "no-such"],
            "no run folder no-such: runs are kept in .vllm/runs unless --vllm-report says otherwise",
        ),
        (["show", "no/such.toml"], "no profile file no/such.toml: {cwd}/no/such.toml does not exist"),
    ],
)
def test_usage_errors(
    arguments: list[str], message: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, the nearest right word, exit status 4."""
    assert main(arguments) == 4

    out, err = capsys.readouterr()
    assert (out, err) == ("", f"pytest-vllm: {message.format(cwd=project)}\n")


def test_unknown_names_have_near_ones(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of profiles and of areas."""
    assert main(["show", "spark-fp9"]) == 4
    assert capsys.readouterr().err.startswith(
        "pytest-vllm: unknown profile 'spark-fp9'; did you mean 'spark-fp8'? (one of "
    )
    assert main(["checks", "--area", "profil"]) == 4
    assert capsys.readouterr().err.startswith(
        "pytest-vllm: unknown area 'profil'; did you mean 'profile'? (one of "
    )


def test_a_reader_that_leaves_early() -> None:
    """`pytest-vllm checks | head -1` ends without a word."""
    command = f"{sys.executable} -m pytest_vllm.cli checks | head -1"

    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, env=os.environ
    )

    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_help_loads_nothing_heavy() -> None:
    """`--help` is there at once: no pytest, no pydantic, no HTTP client."""
    code = (
        "import sys\nfrom pytest_vllm.cli import main\nmain(['--help'])\n"
        "heavy = {'pytest', 'pydantic', 'httpx', 'docker', 'openai', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stderr.strip() == "[]"


def test_sim_and_replay_become_other_programs(project: Path) -> None:
    """What follows the command is theirs."""
    command = [sys.executable, "-m", "pytest_vllm.cli"]

    sim = subprocess.run(
        [*command, "sim", "serve", "--no-such-flag"], capture_output=True, text=True, check=False
    )
    assert sim.returncode == 2
    assert "--no-such-flag" in sim.stderr

    (project / "run").mkdir()
    replay = subprocess.run(
        [*command, "replay", "run", "--version"], capture_output=True, text=True, check=False
    )
    assert replay.stdout.startswith("pytest ")
    assert replay.returncode == 0


def test_reap_of_nothing(project: Path) -> None:
    """With no run of anybody's dead, there is nothing to say but that."""
    command = [sys.executable, "-m", "pytest_vllm.cli", "reap", "--dry-run"]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout == "nothing is left of dead runs\n" or done.stdout.startswith("would remove ")
