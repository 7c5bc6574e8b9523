"""What a script without a command of vLLM's does instead: the sentence that says which file to name."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.program import DEMONSTRATION, container_of, other_program
from pytest_vllm.profile.importers.shellprefix import is_run
from pytest_vllm.profile.importers.shellvalue import LEFT_EMPTY

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.shellrun import Run

_IMAGES = "buildx?|pull|push|tag|save|load|import|images?|rmi|inspect|login|prune"
_LINE = "give the vllm serve line that it runs"
_BY_FILE = (
    r".* compose |.*docker-compose|.*\bhelm\b.* (?:install|upgrade|template)\b"
    r"|.*\b(?:kubectl|oc)\b(?!.*\bcreate (?:secret|namespace|ns|configmap)\b).*"
    r" (?:apply|create|replace|run|patch|scale|rollout)\b"
)
#: Programs that start it on other machines, each with what they do so by.
_CLOUDS = (
    r"vastai create|runpodctl (?:create|start)|modal (?:deploy|run|serve)|sky (?:launch|serve|jobs)"
    r"|dstack (?:apply|run)|gcloud (?:run|ai|compute|container)\b.*|az (?:ml|container|vm|aks)\b.*"
    r"|aws (?:ecs|sagemaker|cloudformation|ec2|eks)\b.*|(?:terraform|tofu) apply|nomad (?:job )?run|pulumi up"
)
_RUNNERS = (
    r"ansible-playbook|make|gmake|just|task|mise run|invoke|npm run (?!build|lint|test)|uv run (?:just|task)"
)
#: Programs that install, fetch or move what others start: whatever they name, they start nothing.
_HANDLES = re.compile(
    r"`(?:(?:sudo|env) (?:-\S+ )*)?(?:apt(?:-get)?|dnf|yum|zypper|apk|pacman|brew|snap"
    r"|pip3?|uv pip|npm (?:ci|install)|ln|cp|mv|rm|mkdir|chmod|chown|install|touch|cat|curl|wget|git|tar"
    r"|unzip|module|usermod|adduser|which)\b"
)
#: What a command looks like, whether the script (or the command itself) has to name vLLM, what it does
#: instead, and the next step; the first that fits counts.
_INSTEAD: tuple[tuple[str, str, str, str], ...] = (
    (
        rf".*{re.escape(DEMONSTRATION)}\b",
        "command",
        "starts vLLM's demonstration, which speaks no API of OpenAI's",
        "serve the model with vllm serve",
    ),
    (
        r"`(?:(?:ba|da|z)?sh +(?!-)|source +|\. +|\.{0,2}/)\S*\.(?:sh|bash)\b",
        "command",
        "runs a script that is not there",
        "import that script",
    ),
    (
        _BY_FILE,
        "",
        "starts what another file describes",
        "import that file",
    ),
    (
        r".*\b(?:systemctl|supervisorctl)\b.* (?:(?:re)?start|enable)\b",
        "script",
        "starts what a unit or a configuration says",
        "import that file",
    ),
    (
        r".*\b(?:singularity|apptainer|enroot|shifter|charliecloud|udocker)\b",
        "script",
        "starts what an image holds",
        "give the vllm serve line that it stands for",
    ),
    (
        r"`systemd-run\b",
        "script",
        "makes a unit of it, which is no child of the script",
        "give the unit, where it runs: systemctl cat NAME | pytest --vllm-from=-",
    ),
    (
        r"`(?:start-stop-daemon|daemonize|daemon|forever)\b",
        "script",
        "leaves it running on its own",
        _LINE,
    ),
    (
        rf"`(?:{_CLOUDS})\b",
        "script",
        "starts it on other machines",
        "import the file that it names, or what runs there",
    ),
    (
        rf"`(?:{_RUNNERS})\b",
        "script",
        "starts what another file describes",
        "import that file",
    ),
    (
        r"`(?:screen -\w*dm|tmux new)",
        "script",
        "runs what is put together before, which is not followed",
        _LINE,
    ),
    (
        r"`(?:ssh\b|(?:docker|podman)(?: container)? (?:exec|start|restart|attach|service)\b)",
        "command",
        "starts vLLM elsewhere",
        "import what runs there",
    ),
    (
        r"`ssh\b",
        "script",
        "runs what another machine is told",
        "import what runs there",
    ),
)
#: What is said where nothing starts anything.
_PREPARES = (
    (
        rf"`\w+(?: image| builder)? (?:{_IMAGES})\b",
        "command",
        "makes or moves an image, and starts no server",
        "give the docker run line, or the file, that starts it",
    ),
)
#: vLLM's command as it stands in a line of a script, words of an array in quotes included.
_MENTIONS = re.compile(
    r"\bvllm[\"']? +[\"']?serve\b(?<!\"vllm serve(?=\"))(?<!'vllm serve(?='))|openai\.api_server\b"
)
#: Commands that try, measure or end what others start.
_ASIDE = re.compile(r"test|lint|bench|check|clean|destroy|stop|delete|down\b", re.IGNORECASE)
_RUN = re.compile(r"\s*(?:sudo +)?(?:docker|podman|nerdctl) +(?:container +)?run\b")
_ONLY_NAMES = re.compile(r"^\s*#|\b(?:echo|printf|p?grep|pkill|log\w*|info|warn|error)\b")


def none_but_others(origin: Origin, run: Run) -> None:
    """Refuse a script that starts no vLLM, where what it does instead says which file to name."""
    written = origin.text.splitlines()
    telling = sorted(run.others, key=lambda one: _far(written, *one))
    for rows, (line, text) in product((_INSTEAD, _PREPARES), telling):
        for pattern, names, does, fix in rows:
            named = "vllm" in {"script": origin.text, "command": text}.get(names, "vllm")
            if named and re.match(pattern, text) and not _HANDLES.match(text):
                raise origin.problem(line, f"{text} {does}", fix)
    for start in run.starts:
        if is_run(start.texts) and (other := other_program(container_of(start.texts)[1])):
            image = container_of(start.texts)[0]
            unset = next((said for value, _ in start.words for said in value.remarks if said.fatal), None)
            if not image and (unset or start.said):
                why = unset or start.said[0]
                raise origin.problem(why.line, why.text.removesuffix(LEFT_EMPTY))
            fix = "name the file that starts vLLM, or the script that is run there"
            raise origin.problem(
                start.line, f"the container of {image} starts {other}, not vLLM's server", fix
            )
    followed = {one.script.line(one.node) for one in run.starts}
    for at, one in enumerate(written, 1):
        ran = at not in followed and _RUN.match(one) and _names_vllm(written, at)
        if (ran or _MENTIONS.search(one)) and not _ONLY_NAMES.search(one):
            what = f"`{one.strip()[:60]}` is not reached by what can be followed of this script"
            raise origin.problem(at, what, _LINE)


def _far(lines: list[str], first: int, text: str) -> tuple[bool, bool, bool]:
    """How little a command tells of what is served: it tries or ends things, or names no file of it."""
    at = lines[first - 1] if 0 < first <= len(lines) else ""
    return (
        _ASIDE.search(text) is not None,
        re.search(r"vllm[\w.-]*\.(?:ya?ml|json|sh)\b", at, re.IGNORECASE) is None,
        not _names_vllm(lines, first),
    )


def _names_vllm(lines: list[str], first: int) -> bool:
    """Whether a command names vLLM, in any of its lines."""
    for line in lines[max(first, 1) - 1 :]:
        if "vllm" in line.lower():
            return True
        if not line.endswith("\\"):
            return False
    return False
