"""What the repository offers to others: the action, the pre-commit hook, the image."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.site.blocks import DOCS, ROOT, files
from tests.site.conftest import PROFILE

if TYPE_CHECKING:
    from tests.site.conftest import Folder

ACTION = yaml.safe_load((ROOT / ".github" / "actions" / "gate" / "action.yml").read_text("utf-8"))
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
REFUSED = """\
[server]
image = "vllm/vllm-openai:v0.32.0"
model = "x/y"
args = { disable-log-requests = true }
"""
FORM = re.compile(r"\$\{\{ inputs\.(\w+) \}\}")


def act(project: Folder, **inputs: str) -> tuple[int, dict[str, str], str]:
    """Run the action's steps as a runner does: exit status of the gate, its outputs, the summary."""
    values = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | inputs
    runner = project.path / "runner"
    (runner / "pytest-vllm").mkdir(parents=True)
    (runner / "pytest-vllm" / "bin").symlink_to(project.path / ".venv" / "bin")
    written = {name: str(runner / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    status = 0
    for step in ACTION["runs"]["steps"]:
        if "run" not in step or step["name"] == "Install":
            continue
        env = {name: FORM.sub(lambda found: values[found[1]], text) for name, text in step["env"].items()}
        done = project.run(step["run"], "--vllm-check=models", RUNNER_TEMP=str(runner), **env, **written)
        assert status == 0 or done.returncode == 0, done.stdout
        status = status or done.returncode
    output = dict(line.split("=", 1) for line in (runner / "GITHUB_OUTPUT").read_text("utf-8").splitlines())
    summary = runner / "GITHUB_STEP_SUMMARY"
    return status, output, summary.read_text("utf-8") if summary.exists() else ""


@pytest.mark.parametrize(
    ("options", "status", "answer"),
    [("", 0, "GO  chat"), ("--vllm-defect=models.empty\n--vllm-strict", 1, "NO-GO  chat")],
)
def test_the_action_gates(project: Folder, options: str, status: int, answer: str) -> None:
    """Its status is the gate's, and the summary is written in both."""
    done, output, summary = act(project, profile="chat", options=options)

    assert (done, output["status"]) == (status, str(status))
    assert output["answer"].startswith(answer)
    assert answer.split(maxsplit=1)[0] in summary.splitlines()[0]


def test_the_action_runs_without_a_report(project: Folder) -> None:
    """A profile that is not there is status 4; nothing is summed up."""
    done, output, summary = act(project, profile="chatt")

    assert (done, output["status"], summary) == (4, "4", "")


def test_an_input_is_never_part_of_a_script() -> None:
    """A profile's name with a quote in it would run."""
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_the_action_takes_what_the_page_gives() -> None:
    """The inputs of docs/ci.md are inputs."""
    job = yaml.safe_load(files(DOCS / "ci.md")[".github/workflows/gate-by-action.yml"])["jobs"]["gate"]
    (step,) = [one for one in job["steps"] if "gate@" in one.get("uses", "")]
    path = step["uses"].partition("@")[0].split("/", 2)[2]

    assert (ROOT / path / "action.yml").exists()
    assert set(step["with"]) <= set(ACTION["inputs"])


def hooked(project: Folder, profiles: dict[str, str]) -> Any:
    """Run the hook as pre-commit does: its entry, and the files whose names it asks for."""
    for name, text in profiles.items():
        project.write(name, text)
    given = [name for name in profiles if re.search(HOOK["files"], name)]
    return project.run(f"{HOOK['entry']} {' '.join(given)}")


def test_the_hook_passes_good_profiles(project: Folder) -> None:
    """All of them, at once; what lies elsewhere is not its business."""
    done = hooked(project, {"vllm-profiles/a.toml": PROFILE, "vllm-profiles/b.toml": PROFILE, "c.toml": "["})

    assert done.returncode == 0, done.stdout
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["a", "b"]


@pytest.mark.parametrize(
    ("bad", "status"),
    [
        (PROFILE.replace("launcher", "launcer"), 4),
        (REFUSED, 1),
    ],
)
@pytest.mark.parametrize("place", ["vllm-profiles/a.toml", "deep/vllm-profiles/z.toml"])
def test_the_hook_stops_a_bad_profile(project: Folder, bad: str, status: int, place: str) -> None:
    """Wherever it stands in the list, and the good one is still reported."""
    done = hooked(project, dict(sorted({place: bad, "vllm-profiles/m.toml": PROFILE}.items())))

    assert done.returncode == status, done.stdout
    assert "m: " in done.stdout


def test_the_page_names_the_hook() -> None:
    """docs/installing.md and the file of hooks agree."""
    (repo,) = yaml.safe_load(files(DOCS / "installing.md")[".pre-commit-config.yaml"])["repos"]

    assert [hook["id"] for hook in repo["hooks"]] == [HOOK["id"]]
    assert HOOK["entry"].split()[0] in PROJECT["scripts"]


def test_the_image_has_no_rights() -> None:
    """The last user is a number that is not root's, which Kubernetes can verify, and it starts pytest."""
    lines = (ROOT / "tools" / "image" / "Dockerfile").read_text("utf-8").splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]

    assert [int(part) > 0 for part in users[-1].split(":")] == [True, True]
    assert any(line.startswith('ENTRYPOINT ["pytest"') for line in lines)
    assert not any(line.startswith(("ADD", "ARG HTTP")) for line in lines)
