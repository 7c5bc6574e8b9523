"""The recipes of docs/ci.md: each is valid by the schema of its kind, and its commands gate."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.site.blocks import DOCS, ROOT, files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.site.conftest import Folder

RECIPES = files(DOCS / "ci.md")
SCHEMAS = {
    ".github/workflows/gate.yml": "github-workflows",
    ".github/workflows/gate-by-action.yml": "github-workflows",
    ".gitlab-ci.yml": "gitlab-ci",
    "compose.yaml": "compose-spec",
}
OURS = {
    ".github/workflows/ci.yml": "github-workflows",
    ".github/workflows/release.yml": "github-workflows",
    ".github/actions/gate/action.yml": "github-actions",
    ".github/ISSUE_TEMPLATE/wrong-answer.yml": "github-issue-forms",
    ".github/ISSUE_TEMPLATE/fault.yml": "github-issue-forms",
    ".github/ISSUE_TEMPLATE/check.yml": "github-issue-forms",
    ".github/ISSUE_TEMPLATE/config.yml": "github-issue-config",
    "CITATION.cff": "citation-file-format",
}
UNITS = [name for name in RECIPES if name.startswith("/etc/systemd/system/")]


def faults(text: str, schema: str, folder: Path) -> str:
    """What a file says against the schema of its kind; empty when it is valid."""
    path = folder / "file.yml"
    path.write_text(text, "utf-8")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_recipe_is_valid(name: str, tmp_path: Path) -> None:
    """By the schema that its system publishes."""
    assert faults(RECIPES[name], SCHEMAS[name], tmp_path) == ""


@pytest.mark.parametrize("name", OURS)
def test_a_file_of_ours_is_valid(name: str, tmp_path: Path) -> None:
    """Workflows, the action, the forms, the citation."""
    assert faults((ROOT / name).read_text("utf-8"), OURS[name], tmp_path) == ""


def test_every_file_of_github_is_held_to_a_schema() -> None:
    """A new one needs a row above."""
    there = {str(path.relative_to(ROOT)) for path in (ROOT / ".github").rglob("*.yml")}

    assert there == {name for name in OURS if name.startswith(".github/")}


@pytest.mark.parametrize(
    ("name", "broken"),
    [(".gitlab-ci.yml", ("when: always", "when: whenever")), ("compose.yaml", ("condition:", "state:"))],
)
def test_a_schema_can_refuse(name: str, broken: tuple[str, str], tmp_path: Path) -> None:
    """A word that the system does not know."""
    assert faults(RECIPES[name].replace(*broken), SCHEMAS[name], tmp_path) != ""


def commands() -> set[str]:
    """Every command of a CI job that starts the gate, as GitHub, GitLab and Jenkins have it."""
    workflow = yaml.safe_load(RECIPES[".github/workflows/gate.yml"])
    found = [step.get("run", "") for step in workflow["jobs"]["gate"]["steps"]]
    found += yaml.safe_load(RECIPES[".gitlab-ci.yml"])["gate"]["script"]
    found += re.findall(r"sh '([^']+)'", RECIPES["Jenkinsfile"])
    gates = [line for line in found if ".venv/bin/pytest " in line]
    assert len(gates) == 3
    return set(gates)


def test_the_jobs_start_one_command() -> None:
    """Else each would have to be run below."""
    assert len(commands()) == 1


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--vllm-defect=models.empty",), 1)])
def test_a_job_is_as_red_as_its_gate(project: Folder, options: tuple[str, ...], status: int) -> None:
    """GO is 0 and NO-GO is 1; the files that the job keeps are there in both."""
    (command,) = commands()

    done = project.run(command, "--vllm-check=models", *options)

    assert done.returncode == status, done.stdout
    assert (project.path / "vllm-report" / "junit.xml").exists()
    assert len(list((project.path / "vllm-report").glob("runs/*/report.md"))) == 1


def test_github_looks_where_the_reports_are(project: Folder) -> None:
    """The patterns of the conditions find what a run writes, and nothing before it."""
    steps = yaml.safe_load(RECIPES[".github/workflows/gate.yml"])["jobs"]["gate"]["steps"]
    (patterns,) = [set(re.findall(r"hashFiles\('([^']+)'\)", str(steps)))]
    assert len(patterns) == 2
    assert [list(project.path.glob(one)) for one in patterns] == [[], []]
    (command,) = commands()

    project.run(command, "--vllm-check=models.list")

    assert all(any(project.path.glob(f"{one.removesuffix('/**')}*")) for one in patterns)
    summary = project.path / "summary.md"
    (cat,) = [step["run"] for step in steps if "GITHUB_STEP_SUMMARY" in step.get("run", "")]
    assert project.run(cat, GITHUB_STEP_SUMMARY=str(summary)).returncode == 0
    assert "GO" in summary.read_text("utf-8").splitlines()[0]


def attached() -> dict[str, list[str]]:
    """Every recipe that asks a server that runs: the arguments of its gate."""
    service = yaml.safe_load(RECIPES["compose.yaml"])["services"]["gate"]
    pod = yaml.safe_load(RECIPES["vllm-gate.yaml"])["spec"]["template"]["spec"]
    unit = RECIPES["/etc/systemd/system/vllm-gate.service"]
    (start,) = re.findall(r"^ExecStart=\S+/pytest (.+)$", unit, re.MULTILINE)
    return {
        "compose": shlex.split(service["command"]),
        "kubernetes": pod["containers"][0]["args"],
        "systemd": shlex.split(start),
    }


@pytest.mark.parametrize("recipe", attached())
def test_a_recipe_asks_a_server_that_runs(recipe: str, project: Folder, server: str) -> None:
    """With its own arguments, but for the address and the folder of this machine."""
    words = attached()[recipe]
    (asked,) = [word for word in words if word.startswith("--vllm-url=")]
    (kept,) = [word for word in words if word.startswith("--vllm-report=")]
    here = [f"--vllm-url={server}" if word == asked else word for word in words]
    here = [f"--vllm-report={project.path / 'reports'}" if word == kept else word for word in here]

    done = project.run(shlex.join(["pytest", *here]), "--vllm-check=models")

    assert done.returncode == 0, done.stdout
    assert len(list((project.path / "reports").glob("runs/*/report.html"))) == 1


def test_the_services_wait_for_each_other() -> None:
    """The gate for a healthy server, the application for a gate that said GO; and no retry hides anything."""
    services = yaml.safe_load(RECIPES["compose.yaml"])["services"]

    assert services["gate"]["depends_on"] == {"vllm": {"condition": "service_healthy"}}
    assert services["app"]["depends_on"] == {"gate": {"condition": "service_completed_successfully"}}
    assert "healthcheck" in services["vllm"]
    assert "restart" not in services["gate"]


def test_the_compose_file_is_a_deployment(project: Folder) -> None:
    """The text says that the same file can be verified: it is imported."""
    project.write("compose.yaml", RECIPES["compose.yaml"])

    done = project.run("pytest-vllm import compose.yaml --service vllm --out chat.toml && cat chat.toml")

    assert done.returncode == 0, done.stdout
    assert 'reasoning-parser = "qwen3"' in done.stdout


def test_the_job_runs_once_and_without_rights() -> None:
    """The pod's template, by what Kubernetes needs of a Job that is a gate."""
    job = yaml.safe_load(RECIPES["vllm-gate.yaml"])
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert (job["apiVersion"], job["kind"], job["spec"]["backoffLimit"]) == ("batch/v1", "Job", 0)
    assert pod["restartPolicy"] == "Never"
    assert {mount["name"] for mount in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
    assert pod["securityContext"]["runAsUser"] == 10001
    assert "USER 10001" in (ROOT / "tools" / "image" / "Dockerfile").read_text("utf-8")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on this machine")
@pytest.mark.parametrize("known", [True, False])
def test_kubernetes_knows_every_field(known: bool, tmp_path: Path) -> None:
    """A field that its types do not have would be dropped."""
    path = tmp_path / "job.yaml"
    text = RECIPES["vllm-gate.yaml"]
    path.write_text(text if known else text.replace("backoffLimit", "backofLimit"), "utf-8")
    command = ["kubectl", "set", "image", "--local", "-f", str(path), "gate=other", "-o", "json"]
    read = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    read["spec"]["template"]["spec"]["containers"][0]["image"] = "pytest-vllm"
    assert _within(yaml.safe_load(path.read_text("utf-8")), read) is known


def _within(small: Any, large: Any) -> bool:
    if isinstance(small, dict):
        return isinstance(large, dict) and all(
            key in large and _within(value, large[key]) for key, value in small.items()
        )
    if isinstance(small, list):
        return len(small) == len(large) and all(map(_within, small, large))
    return bool(small == large)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd on this machine")
@pytest.mark.parametrize("known", [True, False])
def test_systemd_knows_every_line(known: bool, tmp_path: Path) -> None:
    """It reports a key or value that it does not know, and a program that is not there."""
    for name in UNITS:
        text = RECIPES[name].replace("/opt/pytest-vllm/bin/pytest", shutil.which("true") or "")
        (tmp_path / name.rpartition("/")[2]).write_text(
            text if known else text.replace("=yes", "=maybe"), "utf-8"
        )
    (tmp_path / "vllm.service").write_text(f"[Service]\nExecStart={shutil.which('true')}\n", "utf-8")
    files_ = [str(tmp_path / name.rpartition("/")[2]) for name in UNITS]

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files_],
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert len(UNITS) == 2
    assert (done.returncode == 0 and done.stderr == "") is known, done.stderr


def test_jenkins_can_read_its_file() -> None:
    """Brackets and quotes close: there is no Groovy here that would parse more."""
    text = RECIPES["Jenkinsfile"]
    bare = re.sub(r"'[^'\n]*'", "", text)
    open_: list[str] = []
    for letter in re.findall(r"[][(){}]", bare):
        if letter in "([{":
            open_.append(letter)
        else:
            assert open_.pop() + letter in ("()", "[]", "{}")

    assert open_ == []
    assert "'" not in bare
    assert "allowEmptyResults: true" in text
