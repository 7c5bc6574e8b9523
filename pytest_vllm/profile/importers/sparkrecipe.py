"""Recipes of spark-vllm-docker (version 1) and of sparkrun (version 2): a command, its values, its container.

Sources: the recipes' README and run-recipe.py of spark-vllm-docker, RECIPES.md of sparkrun.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import container
from pytest_vllm.profile.importers.account import Account
from pytest_vllm.profile.importers.draft import Draft
from pytest_vllm.profile.importers.shellwords import Word
from pytest_vllm.profile.importers.variables import Variables
from pytest_vllm.profile.importers.vllmline import read_arguments
from pytest_vllm.profile.importers.yamlnodes import documents
from pytest_vllm.profile.secrets import secret_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.yamlnodes import Node

#: What says nothing of the server.
_PROSE = ("recipe_version", "name", "description", "metadata", "runtime", "runtime_version", "benchmark")
#: What either launcher reads, and a profile has no place for.
_KNOWN = ("mods", "build_args", "pre_exec", "post_exec", "post_commands", "executor_config", "builder")
#: Options of the containers that either launcher starts, unless a recipe says otherwise.
_CONTAINER = {"privileged": "true", "gpus": "all", "ipc": "host", "network": "host"}
_LISTS = ("devices", "cap_add", "ulimit", "security_opt")
#: Where either launcher brings the cache of models in.
_CACHE = {True: "/root/.cache/huggingface", False: "/cache/huggingface"}
#: Short names of sparkrun's that no prefix of vLLM's flags is.
_FLAGS = {"tensor_parallel": "tensor-parallel-size", "pipeline_parallel": "pipeline-parallel-size"}
_FLAGS |= {"data_parallel": "data-parallel-size"}
_BACKEND = re.compile(r"[ \t]*--distributed-executor-backend[ =]+\S+")
_FORMATTED = re.compile(r"\{\{|\}\}|\{(\w+)\}|[{}]")
_NAMED = re.compile(r"\{(\w+)\}")
#: How often values that hold names of others are filled in.
_ROUNDS = 5


def read_spark_recipe(origin: Origin, service: str | None) -> Draft:
    """The server that a recipe starts in its container.

    Raises ImportProblem for another program's recipe, and for a name that nothing fills in.
    """
    (document, *_) = documents(origin)
    account, command = Account(), document.get("command")
    _for_vllm(origin, document)
    image = document.get("container")
    if not image.text:
        fix = "write the image as container: in the recipe"
        raise origin.problem(0, "the recipe names no container: its launcher chooses one", fix)
    draft = Draft(origin, "docker", "docker-run")
    draft.wanted = service or ""
    draft.set("image", image.text, image.line)
    machines = _machines(document)
    _contained(draft, document, account)
    for key, node in document.get("env").pairs:
        draft.set_env(key, node.text, node.line)
    if not _first_version(document) and "HF_HOME" not in draft.env:
        draft.set_env("HF_HOME", _CACHE[False], 0)
    account.read(*(document.get(key) for key in (*_PROSE, "env", "container", "command", "defaults")))
    account.read(document.get("model"))
    if command.text:
        _script(draft, document, machines)
    else:
        _of_defaults(draft, document)
    if revision := document.get("model_revision"):
        draft.note(revision.line, f"its launcher downloads the revision {revision.text}; no flag says it")
        account.read(revision)
    account.read(*(document.get(key) for key in ("cluster_only", "solo_only", "min_nodes", "max_nodes")))
    if machines > 1:
        draft.deployment["machines"] = machines
        draft.note(0, f"{machines} machines serve it together; the profile has the first one's command")
    left = list(account.left(document))
    foreign = [path for path, _ in left if "." not in path and path not in _KNOWN]
    if foreign:
        what = f"neither launcher reads {', '.join(foreign)}: where another one starts it, GPUs, rights,"
        draft.note(left[0][1].line, f"{what} network and volumes may be others")
    for path, node in left:
        draft.lost(node.line, path)
    return draft


def _for_vllm(origin: Origin, document: Node) -> None:
    runtime = document.get("runtime")
    if runtime.text and "vllm" not in runtime.text:
        what = f"a recipe for {runtime.text}, not for vLLM"
        raise origin.problem(runtime.line, what, "name the file that starts vLLM")


def _machines(document: Node) -> int:
    """How many machines serve it together: each of these has one GPU."""
    asked = [document.get("min_nodes").text, *(document.get("defaults", key).text for key in _FLAGS)]
    counts = [int(one) for one in asked if one.isdigit()]
    alone = document.get("cluster_only").text.lower() not in ("true", "yes")
    return max([*counts, 1 if alone else 2])


def _contained(draft: Draft, document: Node, account: Account) -> None:
    """What the launcher gives the container, with what the recipe says of it."""
    given = document.get("executor_config")
    said = _CONTAINER | {key: one.text for key, one in given.pairs if key in _CONTAINER}
    if said["privileged"] == "true":
        draft.set("privileged", value=True, line=given.line)
    if said["gpus"]:
        container.read_gpus(draft, said["gpus"], given.line)
    container.read_ipc(draft, said["ipc"], given.line)
    if said["network"] == "host":
        draft.deployment["network"] = "host"
    draft.volumes.append(f"~/.cache/huggingface:{_CACHE[_first_version(document)]}")
    if shm := given.get("shm_size"):
        container.read_shm(draft, shm.text, shm.line)
    if restart := given.get("restart_policy"):
        draft.deployment["restart"] = restart.text
    if user := given.get("user"):
        draft.set("user", user.text, user.line)
    for key in _LISTS:
        for one in given.get(key).items:
            _listed(draft, key, one)
    account.read(*(given.get(key) for key in (*_CONTAINER, *_LISTS, "shm_size", "restart_policy", "user")))
    what = "GPUs, the host's network and the cache of models are what its launcher gives a container"
    draft.note(0, what)


def _listed(draft: Draft, key: str, one: Node) -> None:
    if key == "devices":
        container.read_device(draft, one.text, one.line)
    elif key == "cap_add":
        container.add(draft, "cap-add", one.text, one.line)
    elif key == "ulimit":
        container.read_ulimit(draft, one.text, one.line)
    else:
        draft.deployment["security-opt"] = [*draft.deployment.get("security-opt", []), one.text]


def _script(draft: Draft, document: Node, machines: int) -> None:
    command, defaults = document.get("command"), document.get("defaults")
    values = {key: _written(one) for key, one in defaults.pairs}
    text = command.text
    if _first_version(document):
        text = _formatted(draft.origin, text, values, command.line)
        if machines == 1 and (found := _BACKEND.search(text)):
            text = text.replace(found[0], "")
            draft.note(command.line, f"{found[0].strip()} is taken out by its launcher on one machine")
    else:
        text = _substituted(text, {"model": document.get("model").text} | values)
    text = re.sub(r"\\[ \t]+\n", "\\\n", text).rstrip().removesuffix("\\")
    words = [Word(one, command.line) for one in ("bash", "-c", text)]
    names = Variables(draft.origin, draft.note, kind="plain")
    container.read_start(draft, [], words, names)
    for key, one in defaults.pairs:
        if f"{{{key}}}" not in command.text:
            draft.note(one.line, f"no effect on the server: {key}, which the command does not use")


def _first_version(document: Node) -> bool:
    version = document.get("recipe_version").text
    return version == "1" or (not version and bool(document.get("build_args") or document.get("mods")))


def _written(node: Node) -> str:
    """A value as Python writes it."""
    return node.text if isinstance(node.plain, str) else str(node.plain)


def _formatted(origin: Origin, text: str, values: Mapping[str, str], line: int) -> str:
    """The command as `str.format` fills it in."""

    def filled(found: re.Match[str]) -> str:
        if found[0] in ("{{", "}}"):
            return found[0][0]
        if found[1] is None or found[1] not in values:
            what = f"{found[0]} is not filled in: " + (
                "defaults: does not have it"
                if found[1]
                else "a brace that stands for itself is written twice"
            )
            raise origin.problem(line, what, "write it into defaults:, or the command")
        return values[found[1]]

    return _FORMATTED.sub(filled, text)


def _substituted(text: str, values: Mapping[str, str]) -> str:
    """The command with the names that are known filled in, those in their values too."""
    for _ in range(_ROUNDS):
        text = _NAMED.sub(lambda one: values.get(one[1], one[0]), text)
    return text


def _of_defaults(draft: Draft, document: Node) -> None:
    """A recipe without a command: its launcher makes one of the defaults."""
    model = document.get("model")
    draft.set("command", ["vllm", "serve"], model.line)
    draft.set("model", model.text, model.line)
    for key, one in document.get("defaults").pairs:
        flag = _FLAGS.get(key, key.replace("_", "-"))
        if one.text == "false":
            draft.note(one.line, f"{key}: false gives no flag")
            continue
        words = [Word(f"--{flag}", one.line)]
        if one.text != "true" and not secret_name(key):
            words.append(Word(one.text, one.line))
        elif one.text != "true":
            draft.set_arg(flag, one.text, one.line)
            continue
        read_arguments(draft, words)
