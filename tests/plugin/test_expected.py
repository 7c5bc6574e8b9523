"""What the operator gave is an expectation: a key, a baseline, a run to judge again."""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.plugin.running import Gate

SELECT = ("--vllm-profile=sim", "--vllm-check=profile.model.served")
GUARDED = """
extends = "sim"

[server]
api-key = { from-env = "OUR_KEY" }
"""


class Open(BaseHTTPRequestHandler):
    """Lists a model for everybody, and knows nothing else."""

    def do_GET(self) -> None:
        listed = {"object": "list", "data": [{"id": "m", "object": "model", "max_model_len": 64}]}
        known = {
            "/health": b"",
            "/v1/models": json.dumps(listed).encode(),
            "/version": b'{"version": "0.32.0"}',
        }
        body = known.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("content-length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def open_server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Open) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("key", "exit_code"), [("sk-planted-0123456789", 1), ("", 0)])
def test_an_open_server_that_was_given_a_key_is_no_go(
    gate: Gate, open_server: str, key: str, exit_code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", key)

    run = gate(f"--vllm-url={open_server}", "--vllm-check=profile.capabilities", "-p", "no:cacheprovider")

    assert run.exit == exit_code, run.text
    assert ("missing: auth" in run.text) is bool(key)
    assert "planted" not in run.text


def test_a_guarded_server_meets_what_its_key_expects(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_KEY", "sk-ours-0123456789")

    run = gate(
        "--vllm-profile=ours", "--vllm-check=profile.capabilities", files={"vllm-profiles/ours.toml": GUARDED}
    )

    assert run.exit == 0, run.text


def test_a_baseline_of_another_profile_or_model_is_refused(gate: Gate, pytester: pytest.Pytester) -> None:
    saved = gate(*SELECT, "--vllm-save-baseline=good.json")
    path = pytester.path / "good.json"
    body = json.loads(path.read_text("utf-8"))
    model = body["profiles"]["sim"]["model"]
    body["profiles"]["sim"]["model"] = "org/other"
    path.write_text(json.dumps(body), "utf-8")
    other_model = gate(*SELECT, "--vllm-baseline=good.json")
    body["profiles"]["theirs"] = body["profiles"].pop("sim")
    path.write_text(json.dumps(body), "utf-8")
    other_profile = gate(*SELECT, "--vllm-baseline=good.json")

    assert (saved.exit, other_model.exit, other_profile.exit) == (0, 4, 4), other_model.text
    assert "org/other" in other_model.text
    assert model in other_model.text
    assert "good.json is of theirs, this run of sim" in other_profile.text
    assert "Traceback" not in other_model.text + other_profile.text


@pytest.mark.parametrize("live", ["--vllm-profile=sim", "--vllm-url=spark", "--vllm-from=compose.yaml"])
def test_a_replay_beside_a_server_is_refused(gate: Gate, live: str) -> None:
    run = gate("--vllm-replay=somewhere", live)

    assert run.exit == 4, run.text
    assert f"{live.partition('=')[0]} a server: leave one of them out" in run.text


SKIPS = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.skip(reason="flaky on Tuesdays"))
"""


def test_a_must_that_pytest_skips_is_undecided(gate: Gate) -> None:
    run = gate(*SELECT, files={"conftest.py": SKIPS})

    assert run.exit == 21, run.text
    assert "pytest skipped it" in run.text
    assert "flaky on Tuesdays" in run.text


def files_in(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, with its bytes."""
    return {os.path.relpath(path, folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_replay_leaves_the_run_that_it_reads_as_it_was(gate: Gate) -> None:
    first = gate(*SELECT)
    read = first.folders[-1]
    before = files_in(read)

    again = gate(f"--vllm-replay={read}", "--vllm-check=profile.model.served")

    assert (first.exit, again.exit) == (0, 0), again.text
    assert files_in(read) == before
    written = [folder for folder in again.folders if folder != read]
    report = json.loads((written[0] / "report.json").read_text("utf-8"))
    assert (report["answer"]["answer"], report["run"]["replayed"]) == ("GO", str(read))
    assert written[0].stat().st_mode & 0o777 == 0o700
    assert read.stat().st_mode & 0o777 == 0o700
