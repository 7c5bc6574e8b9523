"""Python programs: names from a module beside them, and secrets that they write down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import imported

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """import argparse, os, subprocess
from settings import MODEL
TOKEN_KEY = API_KEY = "abcdefsecret1"
p = argparse.ArgumentParser()
p.add_argument("--api-key", default="abcdefsecret2")
def up(model, key, token="abcdefsecret3"):
    cmd = ["vllm", "serve", model, "--api-key", key]
    if os.path.exists("/x"):
        cmd += ["--ssl-keyfile-password", "abcdefsecret4"]
        token = "abcdefsecret5"
    subprocess.run(cmd, env={**os.environ, "HF_TOKEN": token, "K": API_KEY})
up(MODEL, p.parse_args().api_key)
"""


def test_a_module_beside_it(tmp_path: Path) -> None:
    """Constants of another file are read where they lie."""
    (tmp_path / "settings.py").write_text('MODEL = "org/a"\n')
    (tmp_path / "serve.py").write_text(PROGRAM)
    found = imported(tmp_path / "serve.py", environ={})
    assert found.profile.server.model == "org/a"
    assert any("MODEL is 'org/a', from settings.py" in note for note in found.notes)


def test_secrets(tmp_path: Path) -> None:
    """None is in the profile, none is said."""
    (tmp_path / "settings.py").write_text('MODEL = "org/a"\n')
    (tmp_path / "serve.py").write_text(PROGRAM)
    found = imported(tmp_path / "serve.py", environ={})
    assert "abcdefsecret" not in f"{found.profile.model_dump()} {found.notes}"
    assert any("K is left out of its environment: it holds a secret" in note for note in found.notes)
