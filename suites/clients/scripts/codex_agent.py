"""Codex CLI without a person: one task over the Responses interface, its home in a temporary folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from agents import WISH, at_work, done, serve

if TYPE_CHECKING:
    from stepping import Task


def settings(task: Task) -> str:
    """Its configuration; JSON's strings are TOML's. The key comes by the environment, not from here."""
    return f"""\
model = {json.dumps(task.model)}
model_provider = "vllm"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
web_search = "disabled"

[model_providers.vllm]
name = "vLLM"
base_url = {json.dumps(task.v1)}
env_key = "CLIENT_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false
"""


def work(task: Task, program: str) -> None:
    """The task, as `codex exec` does it."""
    home = Path.cwd() / "codex"
    home.mkdir()
    (home / "config.toml").write_text(settings(task), "utf-8")
    last = home / "last.txt"
    words = [program, "exec", "--skip-git-repo-check", "--json", "-o", str(last), WISH.format("codex")]
    folder, _, _ = at_work("codex", words, {"CODEX_HOME": str(home), "CLIENT_KEY": task.key})
    done(task, "codex", folder, last.read_text("utf-8") if last.is_file() else "")


if __name__ == "__main__":
    serve("codex", work)
