"""What a text is, by its content: a kind that is read, or the kind that it looks like and the next step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import systemd
from pytest_vllm.profile.importers.looks import BY_SUFFIX, BY_TEXT, OTHERS
from pytest_vllm.profile.importers.yamlkinds import kind_of_yaml

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.origin import Origin

_FENCE = re.compile(r"^[ \t]*```", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} \S", re.MULTILINE)
_STARTS = re.compile(r"\b(?:docker|podman|nerdctl)[ \\]|\bvllm(?:\.\w+)* +serve\b|\bapi_server\b")
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
    if _is_guide(origin):
        raise _refused(origin, "markdown")
    if (suffix := _suffix(origin)) in BY_SUFFIX:
        raise _refused(origin, BY_SUFFIX[suffix])
    if _SHELL.match(text):
        return "shell"
    if systemd.SECTION.search(text):
        return "systemd"
    for name, pattern in BY_TEXT.items():
        if pattern.search(text):
            raise _refused(origin, name)
    if suffix in ("sh", "bash"):  # what it writes for other programs is not what it is
        return "shell"
    return _by_keys(origin, suffix, forms)


def _by_keys(origin: Origin, suffix: str, forms: str) -> str:
    """The kind of a text that neither its name nor its beginning gives away."""
    text = origin.text
    kind = kind_of_yaml(origin) or ("shell" if _STARTS.search(text) else "")
    if kind in OTHERS:
        raise _refused(origin, kind)
    if not kind and (suffix in ("yaml", "yml") or re.search(r"^[\w-]+:(?:\s|$)", text, re.MULTILINE)):
        kind = "config"
    if not kind:
        raise origin.problem(0, "nothing here starts vLLM", f"name {forms}")
    return kind


def _suffix(origin: Origin) -> str:
    name = origin.shown.rpartition("/")[2].lower()
    return name.rpartition(".")[2] if "." in name and origin.shown != "the text" else name


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
