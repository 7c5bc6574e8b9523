"""What a container starts: vLLM's server, or another program out of an image that has vLLM in it."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_vllm.facts import canonical
from pytest_vllm.profile.importers.runoptions import SHORT, SWITCHES, VALUED
from pytest_vllm.profile.importers.vllmline import flag_of, program_length

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Programs that start another one: what they start counts.
_WRAPPERS = frozenset(
    {"exec", "sudo", "nohup", "env", "time", "command", "tini", "dumb-init", "-E", "--", "-g", "-s"}
)
_NAMES = """
bash sh dash zsh ash fish cat cp ls echo env true sleep tail top htop watch nvidia-smi rocm-smi amd-smi hl-smi
xpu-smi npu-smi ray uv uvx pip pip3 conda git curl wget jupyter jupyter-lab torchrun accelerate deepspeed
pytest make nsys ncu sglang lmdeploy trtllm-serve tritonserver ollama llama-server text-generation-launcher
"""
#: Programs that are no server of vLLM and no name of a model.
_OTHERS = frozenset(_NAMES.split())
#: A server of vLLM's within the script of a shell.
_SERVES = re.compile(r"\bvllm\s+serve\b|\bapi_server\b|\bvllm\s+\"\$@\"")
#: vLLM's own server that speaks no API of OpenAI's.
DEMONSTRATION = "vllm.entrypoints.api_server"


def other_program(words: Sequence[str]) -> str:
    """What a container is told to start, where that is not vLLM's server; empty otherwise.

    Args:
        words: entry point and command; without an entry point, what the image's own is given.
    """
    if wraps(words) or program_length(words) or any(_SERVES.search(one) for one in words if " " in one):
        return ""
    rest = list(words)
    while rest and (PurePosixPath(rest[0]).name in _WRAPPERS or re.fullmatch(r"[A-Z_]\w*=.*", rest[0])):
        rest = rest[1:]
    name = PurePosixPath(rest[0]).name if rest else ""
    python = re.fullmatch(r"python[\d.]*", name) is not None
    if DEMONSTRATION in rest:
        return f"{DEMONSTRATION}, which speaks no API of OpenAI's"
    if name == "vllm" and len(rest) > 1 and rest[0] != "vllm/vllm":
        return " ".join(rest[:2])
    if python and any(one.endswith("api_server.py") for one in rest):
        return ""
    known = name in _OTHERS or python or name.endswith((".sh", ".py"))
    shown = rest[: 3 if rest[1:2] == ["-m"] else 2]
    return " ".join(shown) if known and (name == rest[0] or rest[0].startswith(("/", "."))) else ""


def serves(word: str) -> bool:
    """Whether a word, or the script that it is, starts vLLM's server."""
    return "api_server" in word or "vllm serve" in word or (" " in word and _SERVES.search(word) is not None)


def wraps(words: Sequence[str]) -> bool:
    """Whether a script of the image's is given a model and vLLM's flags, and so starts vLLM in the end."""
    flags = [canonical(word.partition("=")[0]) for word in words if word.startswith("--")]
    given = [one for one in flags if one not in ("model", "host", "port")]
    script = bool(words) and words[0].endswith((".sh", ".py"))
    return script and "model" in flags and bool(given) and all(flag_of(one) for one in flags)


def starter(program: Sequence[str]) -> str:
    """The script of somebody's own before vLLM's command, and its arguments; empty where there is none."""
    first = program[0] if program else ""
    own = first.endswith((".sh", ".bash")) or first.startswith(("./", "../"))
    within = next((at for at, word in enumerate(program) if at and PurePosixPath(word).name == "vllm"), 0)
    known = PurePosixPath(first).name in ("vllm", "nvidia_entrypoint.sh") or not within
    return " ".join(program[:within]) if own and not known else ""


def container_of(words: Sequence[str]) -> tuple[str, list[str]]:
    """Image, and entry point with command, of a `docker run` line as it is written."""
    at = 1 + next((place for place, word in enumerate(words) if word in ("run", "create")), len(words))
    entrypoint: list[str] = []
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        word, at = words[at], at + 1
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("--"):
            name, equals, value = _short(word[1:])
        if name in VALUED and not equals:
            value, at = (words[at] if at < len(words) else ""), at + 1
        if name == "entrypoint":
            entrypoint = value.split()
    at += words[at : at + 1] == ["--"]
    image = words[at] if at < len(words) else ""
    return image, [*entrypoint, *words[at + 1 :]]


def _short(letters: str) -> tuple[str, str, str]:
    """`itv` as the option that ends it: name, a sign where its value is in the same word, and that value."""
    for place, letter in enumerate(letters):
        name = SHORT.get(letter, letter)
        if name not in SWITCHES:
            rest = letters[place + 1 :]
            return name, rest[:1], rest.removeprefix("=")
    return "", "", ""
