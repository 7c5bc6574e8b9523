"""What a text is, by its content: a kind that is read, or the kind that it looks like and the next step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import supervisord, systemd
from pytest_vllm.profile.importers.looks import BY_SUFFIX, BY_TEXT, NEARER, OTHERS
from pytest_vllm.profile.importers.origin import ImportProblem
from pytest_vllm.profile.importers.yamlkinds import kind_of_yaml
from pytest_vllm.profile.importers.yamlnodes import documents

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.origin import Origin

#: Kinds that have a reader of their own, and that others name too.
READ = (
    *("dockerfile", "supervisord", "makefile", "cloud-init", "markdown", "powershell"),
    *("skypilot", "dstack", "workflow", "llama-swap", "python", "just", "taskfile", "procfile"),
)
_FENCE = re.compile(r"^[ \t]*```", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} \S", re.MULTILINE)
_STARTS = re.compile(
    r"\b(?:docker|podman|nerdctl)[ \\]|\bapi_server\b"
    r"|\bvllm(?:\.\w+|\[[\w,-]+\]|(?:@|==)[\w.]+)*['\"]? +serve\b"
)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
#: Kinds that what stands in a comment does not make.
_TEMPLATES = ("template", "jinja")
#: A line that Terraform's `templatefile` acts on.
_DIRECTIVE = re.compile(r"^[ \t]*%\{~? *(?:if|for|else|endif|endfor)\b[^}\n]*\}[ \t]*$", re.MULTILINE)
#: Endings of scripts for a shell, those of batch systems included.
_SCRIPTS = ("sh", "bash", "zsh", "sbatch", "slurm")
#: A file of variables, lists of a shell included, that scripts read.
_SETTINGS = re.compile(r"\A(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*(?:export +)?[A-Za-z_]\w*=")
_SHELL = re.compile(r"#!.*\b(?:ba|da|z)?sh\b")


def kind_of(origin: Origin, forms: str) -> str:
    """A key of KINDS. Raises ImportProblem with the kind that it looks like.

    Args:
        origin: the text.
        forms: what can be read, for people.
    """
    text = origin.text
    if not text.strip():
        raise origin.problem(0, "the file is empty", f"name {forms}")
    if kind := _by_name(origin):
        return kind
    if _is_guide(origin):
        return "markdown"
    return _by_text(origin) or _by_keys(origin, _suffix(origin), forms)


def _by_name(origin: Origin) -> str:
    """The kind of a file whose name says it. Raises ImportProblem for one that is not read."""
    named = origin.shown.rpartition("/")[2].lower()
    whole = next((kind for name, kind in BY_SUFFIX.items() if "." in name and named.endswith(name)), "")
    kind = whole or BY_SUFFIX.get(_suffix(origin), "")
    if re.match(r"\.env(?:[.-]|$)", named):
        kind = "envfile"
    if re.match(r"(?:docker|container)file\.", named) and "{{" not in origin.text:
        kind = "dockerfile"
    if kind == "template" and "{{" not in origin.text:
        kind = "blanks"
    if kind == "hcl" and BY_TEXT["nomad"].search(origin.text):
        kind = "nomad"
    if kind in ("", "ini"):  # supervisord's own end in .conf, as many others do
        shell = _SHELL.match(origin.text)
        kind = "supervisord" if supervisord.SECTION.search(origin.text) and not shell else kind
    if kind == "ini" and not BY_TEXT["ini"].search(origin.text) and _SETTINGS.search(origin.text):
        kind = "envfile"
    return _unless_read(origin, kind) if kind else ""


def _by_text(origin: Origin) -> str:
    """The kind of a file that its first lines give away. Raises ImportProblem for one that is not read."""
    text = origin.text
    if _DIRECTIVE.search(text):
        raise _refused(origin, "blanks")
    if _SHELL.match(text):
        return "shell"
    plain = _COMMENT.sub("", text)
    if _suffix(origin) in _SCRIPTS and not any(BY_TEXT[one].search(plain) for one in _TEMPLATES):
        return "shell"  # what it writes is not what it is
    if systemd.SECTION.search(text):
        return "systemd"
    name = next(
        (name for name, one in BY_TEXT.items() if one.search(plain if name in _TEMPLATES else text)), ""
    )
    if name == "jinja" and (kind := _whole(origin)):
        return kind
    if name:
        return _unless_read(origin, name)
    return ""


def _whole(origin: Origin) -> str:
    """The kind of YAML that is read as it stands: a template in it is but a text, such as a chat template."""
    try:
        kind = kind_of_yaml(origin) if documents(origin) else ""
    except ImportProblem:
        return ""
    return "" if kind in OTHERS and kind not in READ else kind


def _by_keys(origin: Origin, suffix: str, forms: str) -> str:
    """The kind of a text that neither its name nor its beginning gives away."""
    text = origin.text
    kind = kind_of_yaml(origin) or ("shell" if _STARTS.search(text) else "")
    if kind in OTHERS and kind not in READ:
        raise _refused(origin, kind)
    if not kind and (suffix in ("yaml", "yml") or re.search(r"^[\w-]+:(?:\s|$)", text, re.MULTILINE)):
        kind = "config"
    if not kind:
        raise origin.problem(0, "nothing here starts vLLM", f"name {forms}")
    return kind


def _suffix(origin: Origin) -> str:
    name = origin.shown.rpartition("/")[2].lower()
    return name.rpartition(".")[2] if "." in name and origin.shown != "the text" else name


def _unless_read(origin: Origin, kind: str) -> str:
    """A kind that is read. Raises ImportProblem for one that is not."""
    if kind in READ:
        return kind
    kind = next((exact for holds, exact in NEARER.get(kind, ()) if holds.search(origin.text)), kind)
    raise _refused(origin, kind)


def _refused(origin: Origin, kind: str) -> Exception:
    what, fix = OTHERS[kind]
    return origin.problem(0, f"it looks like {what}", fix)


def _is_guide(origin: Origin) -> bool:
    """Prose with commands in it. A lone fence around commands is what people paste."""
    if _suffix(origin) in ("md", "markdown", "rst", "mdx"):
        return True
    if _suffix(origin) in ("yaml", "yml", "json"):
        return False
    parts = re.split(r"^[ \t]*```[^\n]*$", origin.text, flags=re.MULTILINE)
    return bool(_FENCE.search(origin.text)) and any(_HEADING.search(one) for one in parts[::2])
