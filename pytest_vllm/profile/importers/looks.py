"""Kinds of files that are not read: what they look like, what they are called, and what to do instead."""

from __future__ import annotations

import re

_LINE = "give the vllm serve or docker run line that it stands for"
_RENDER = "render it: helm template NAME CHART"
_RUNS = f"{_LINE}, or the container where it runs: --vllm-from=container:NAME"
_STARTS = "give the line that starts its vLLM"
_COPY = "copy the command that starts vLLM out of it"

#: Kind -> (what it looks like, the next step).
OTHERS = {
    "markdown": ("a guide in Markdown", f"{_COPY}: pytest-vllm import -"),
    "notebook": ("a Jupyter notebook", _COPY),
    "python": ("a Python program", "give the line that starts it, or the vllm serve line it stands for"),
    "javascript": ("a JavaScript program", _LINE),
    "nomad": ("a Nomad job", _RUNS),
    "hcl": ("HCL (Terraform or Packer)", _RUNS),
    "hcl-kubernetes": (
        "Terraform that makes objects of Kubernetes",
        "give what it makes: kubectl get deployment NAME -o yaml | pytest --vllm-from=-",
    ),
    "hcl-bake": ("a file of docker buildx bake, which builds images", "name the file that starts one"),
    "hcl-helm": (
        "Terraform that installs a Helm chart",
        "give what it installs: helm get manifest NAME | pytest --vllm-from=-",
    ),
    "nix-service": (
        "a Nix expression that makes a systemd unit",
        "give the unit, where it runs: systemctl cat NAME | pytest --vllm-from=-",
    ),
    "just": ("a justfile", "give what it runs: just --dry-run RECIPE 2>&1 | pytest --vllm-from=-"),
    "taskfile": ("a Taskfile", "give what it runs: task --dry NAME 2>&1 | pytest --vllm-from=-"),
    "powershell": ("a PowerShell or batch script", _COPY),
    "xml": ("HTML or XML", "name the file that starts vLLM"),
    "ini": ("an ini file", "give the command of it that starts vLLM"),
    "toml": ("TOML, as profiles are", "a profile is named by --vllm-profile=FILE"),
    "fly": ("a fly.toml", "give the vllm serve line that it stands for"),
    "pyproject": ("a pyproject.toml", "name the file that starts vLLM"),
    "helmfile": ("a helmfile", "render it: helmfile template | pytest --vllm-from=-"),
    "process-compose": ("a file of process-compose", _COPY),
    "envfile": ("an env file, or one of variables", "name the compose file or the script that reads it"),
    "log": ("a log of vLLM", "pytest-vllm diagnose FILE reads logs; name the file that starts vLLM"),
    "diff": ("a diff", "apply it, and name the file"),
    "key": ("a private key or certificate", "name the file that starts vLLM"),
    "inspect": ("the output of docker inspect", "name the container itself: --vllm-from=container:NAME"),
    "model-config": ("a model's own config.json", "name the file that starts vLLM"),
    "json": ("JSON of something else", "name the file that starts vLLM"),
    "ecs": ("a task definition of Amazon ECS", _COPY),
    "sagemaker": (
        "a model or endpoint of SageMaker",
        "give the vllm serve line that its variables stand for",
    ),
    "vertex": ("a model of Vertex AI", "give the line that its args stand for"),
    "terraform-json": ("Terraform's JSON", _LINE),
    "devcontainer": ("a devcontainer.json", _COPY),
    "pm2": ("a PM2 configuration", _COPY),
    "jenkins": ("a Jenkins pipeline", _COPY),
    "mise": ("a mise configuration", "give the line that it runs: mise tasks info NAME"),
    "launchd": ("a property list of launchd", _COPY),
    "service": (
        "a service of a compose file, without the services: that it stands under",
        "put it under services:, indented",
    ),
    "runpod": ("a RunPod pod or template", _LINE),
    "bento": ("a BentoML configuration", _LINE),
    "azure-ml": ("a deployment of Azure ML", _LINE),
    "procfile": ("a Procfile", _COPY),
    "nix": ("a Nix expression", _RUNS),
    "apptainer": ("a definition of an Apptainer or Singularity image", f"{_STARTS}: apptainer exec …"),
    "apptainer-compose": ("a file of singularity-compose", f"{_STARTS}: apptainer exec …"),
    "fish": ("a fish script", _COPY),
    "bicep": ("Bicep", _LINE),
    "jsonnet": ("Jsonnet or CUE", "render it, and pipe the result in: jsonnet FILE | pytest --vllm-from=-"),
    "program": (
        "source code of a program",
        "give the line that starts it, or the vllm serve line it stands for",
    ),
    "workflow": ("a CI workflow", _COPY),
    "skypilot": ("a SkyPilot task", "name the task whose run: starts vLLM"),
    "dstack": ("a dstack configuration", "name the one whose commands: start vLLM"),
    "chart": ("a Helm chart's Chart.yaml", f"{_RENDER} | pytest --vllm-from=-"),
    "values": (
        "the values of a Helm chart",
        f"{_RENDER} -f FILE | pytest --vllm-from=-",
    ),
    "template": (
        "a template that is not rendered",
        f"{_RENDER} | pytest --vllm-from=-",
    ),
    "blanks": (
        "a template with blanks in it",
        "fill it in, and pipe the result in: … | pytest --vllm-from=-",
    ),
    "jinja": (
        "a Jinja template that is not rendered",
        "render it with what fills it in (ansible, jinja2), and pipe the result in: … | pytest --vllm-from=-",
    ),
    "kustomization": ("a kustomization", "render it: kubectl kustomize . | pytest --vllm-from=-"),
    "ray-serve": ("a Ray Serve configuration", _LINE),
    "ray-cluster": ("a Ray cluster's configuration", _LINE),
    "litellm": ("a LiteLLM configuration", "it starts no vLLM: name the file that does"),
    "prometheus": ("a Prometheus configuration", "it starts no vLLM: name the file that does"),
    "llama-swap": ("a llama-swap configuration", "name the file that starts vLLM"),
    "modal": ("a Modal application", _LINE),
    "truss": ("a Truss (Baseten) configuration", "copy its start_command into a script"),
    "cloudformation": ("a CloudFormation template", _COPY),
    "openapi": ("an OpenAPI description", "name the file that starts vLLM"),
    "list": ("a YAML list of something else", "name the file that starts vLLM"),
}

#: Ending of a file's name, or the whole name -> its kind.
BY_SUFFIX = {
    "py": "python",
    "ipynb": "notebook",
    "dockerfile": "dockerfile",
    "containerfile": "dockerfile",
    "procfile": "procfile",
    "nix": "nix",
    "fish": "fish",
    "bicep": "bicep",
    "jsonnet": "jsonnet",
    "libsonnet": "jsonnet",
    "cue": "jsonnet",
    "go": "program",
    "rs": "program",
    "cs": "program",
    "kt": "program",
    "swift": "program",
    "cpp": "program",
    "java": "program",
    "rb": "program",
    "lua": "program",
    "php": "program",
    "tf": "hcl",
    "hcl": "hcl",
    "nomad": "nomad",
    "tfvars": "hcl",
    "makefile": "makefile",
    "mk": "makefile",
    "justfile": "just",
    "just": "just",
    "ps1": "powershell",
    "bat": "powershell",
    "cmd": "powershell",
    "ecosystem.config.js": "pm2",
    "jenkinsfile": "jenkins",
    "mise.toml": "mise",
    "plist": "launchd",
    "html": "xml",
    "xml": "xml",
    "js": "javascript",
    "ts": "javascript",
    "toml": "toml",
    "ini": "ini",
    "cfg": "ini",
    "conf": "ini",
    "env": "envfile",
    "log": "log",
    "tpl": "template",
    "j2": "jinja",
    "jinja": "jinja",
    "jinja2": "jinja",
    "diff": "diff",
    "patch": "diff",
    "pem": "key",
}

#: Kind -> (what its text holds, what it is more exactly); the first that fits counts.
NEARER = {
    "hcl": (
        (re.compile(r'^[ \t]*resource +"kubernetes_', re.MULTILINE), "hcl-kubernetes"),
        (re.compile(r'^[ \t]*resource +"helm_release"', re.MULTILINE), "hcl-helm"),
        (re.compile(r'^target +"[^"\n]*" *\{', re.MULTILINE), "hcl-bake"),
    ),
    "nix": ((re.compile(r"\bserviceConfig\b"), "nix-service"),),
    "toml": (
        (
            re.compile(
                r"\A(?=[\s\S]*^app *=)[\s\S]*^\[{1,2}(?:build|vm|processes|http_service)\]", re.MULTILINE
            ),
            "fly",
        ),
        (re.compile(r"^\[(?:build-system|project|tool\.[^\]]+)\]", re.MULTILINE), "pyproject"),
    ),
}

_MULTI = re.MULTILINE
#: Kind -> what its text holds; the first that fits counts.
BY_TEXT = {
    "cloud-init": re.compile(r"\A#cloud-config\b"),
    "apptainer": re.compile(r"\A(?:[ \t]*(?:#[^\n]*)?\n)*Bootstrap *: *\S", re.IGNORECASE),
    "key": re.compile(r"\A\s*-----BEGIN [A-Z ]+-----"),
    "xml": re.compile(r"\A\s*<(?:\?xml|!doctype|html)\b", re.IGNORECASE),
    "python": re.compile(
        r"\A#!.*\bpython|^(?:from [\w.]+ import |import [\w.]+(?: as \w+)?\s*$"
        r"|def \w+\(|class \w+[(:]|if __name__ ==)",
        _MULTI,
    ),
    "dockerfile": re.compile(r"\A(?:[ \t]*(?:(?:#|ARG )[^\n]*)?\n)*[ \t]*FROM +\S+", re.IGNORECASE),
    "diff": re.compile(r"\A(?:diff --git |--- \S[^\n]*\n\+\+\+ )"),
    "nomad": re.compile(
        r'^[ \t]*job +"[^"\n]*" *\{[^}]{0,999}?\b(?:group|task|datacenters|type|namespace)\b', _MULTI
    ),
    "hcl": re.compile(
        r"^[ \t]*(?:resource|data|module|variable|provider|job|group|task|source|locals|terraform)"
        r'(?: +"[^"\n]*")* *\{\s*$',
        _MULTI,
    ),
    "workflow": re.compile(r"^jobs:[ \t]*$(?=[\s\S]*^[ \t]+(?:runs-on|uses):)", _MULTI),
    "powershell": re.compile(
        r"\A\s*(?:@echo off|param\()|^[ \t]*(?:Write-Host|Set-Location)\b|^[ \t]*\$env:\w+ *="
        r"|\S[ \t]+[`^][ \t]*\n[ \t]+-",  # lines that go on as those of PowerShell and cmd do
        _MULTI | re.IGNORECASE,
    ),
    "devcontainer": re.compile(
        r'\A\s*(?:\{|//)[\s\S]*"(?:post(?:Start|Create|Attach)Command|runArgs|remoteUser)"\s*:'
    ),
    "template": re.compile(
        r"\{\{-?\s*(?:\.Values|\.Release|\.Chart|include\b|if\b|range\b|with\b|define\b|template\b)"
    ),
    "jinja": re.compile(r"\{%-?\s*\w+"),
    "makefile": re.compile(r"^\.PHONY\s*:|^[A-Za-z][\w.-]*:[^\n=]*\n\t\S", _MULTI),
    "just": re.compile(
        r"^(?:set [\w-]+|[A-Za-z_][\w-]*) *:= *\S(?=[\s\S]*^@?[A-Za-z_][\w-]*[^\n:]*:[^\n=]*\n[ \t]+\S)",
        _MULTI,
    ),
    "log": re.compile(
        r"\A(?:\S+ +\| )?(?:\([^)\n]*\) )?(?:INFO|WARNING|ERROR|DEBUG) \d\d-\d\d \d\d:\d\d:\d\d"
    ),
    "toml": re.compile(r"^\[(?:server(?:\.\w+)?|project|tool\.[^\]]+|limits|expect)\]\s*$", _MULTI),
    "ini": re.compile(r"\A(?:[ \t]*(?:[#;][^\n]*)?\n)*\[[^\]\n]+\]\s*(?:[#;].*)?\n"),
}
