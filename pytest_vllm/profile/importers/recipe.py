"""Recipes of the vLLM project: one model, several variants, each with its own arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.account import Account
from pytest_vllm.profile.importers.draft import Draft
from pytest_vllm.profile.importers.shellwords import Word
from pytest_vllm.profile.importers.vllmline import read_arguments
from pytest_vllm.profile.importers.yamlnodes import documents
from pytest_vllm.profile.words import unknown

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.origin import ImportProblem, Origin
    from pytest_vllm.profile.importers.yamlnodes import Node

#: Parts that describe a recipe to people.
_PROSE = ("meta", "guide", "compatible_strategies", "kv_offload_support")
_OF_A_MODEL = ("architecture", "parameter_count", "active_parameters", "context_length", "install")


def read_recipe(origin: Origin, service: str | None) -> Draft:
    """A variant of a recipe, `default` unless told otherwise; what it leaves out is noted.

    Raises ImportProblem for a variant that is not there.
    """
    (document, *_) = documents(origin)
    model, variants = document.get("model"), document.get("variants")
    names = [name for name, _ in variants.pairs]
    chosen = service or ("default" if "default" in names else names[0] if names else "")
    if chosen not in names:
        raise origin.problem(variants.line, unknown("variant", chosen, names))
    variant, account = variants.get(chosen), Account()
    if omni := document.get("omni"):
        raise _of_omni(origin, omni.line)
    image = variant.get("docker_image") or model.get("docker_image")
    draft = Draft(origin, "docker" if image.text else "process", "shell")
    if image.text:
        draft.set("image", image.text, image.line)
    name = variant.get("model_id") or model.get("model_id")
    draft.set("model", name.text, name.line)
    account.read(image, name, model.get("model_id"))
    for table, args, env in ((model, "base_args", "base_env"), (variant, "extra_args", "extra_env")):
        words = [Word(part, one.line) for one in table.get(args).items for part in _words(one.text)]
        if "--omni" in (word.text for word in words):
            raise _of_omni(origin, words[0].line)
        read_arguments(draft, words)
        for variable, value in table.get(env).pairs:
            draft.set_env(variable, value.text, value.line)
        account.read(table.get(args), table.get(env))
    _features(draft, document, account)
    account.read(*(document.get(key) for key in _PROSE), *(model.get(key) for key in _OF_A_MODEL))
    account.read(*(variant.get(key) for key in ("precision", "vram_minimum_gb", "description", "label")))
    for path, node in account.left(document):
        draft.lost(node.line, path)
    others = ", ".join(one for one in names if one != chosen)
    if others and not service:
        draft.note(variants.line, f"the variant {chosen} is taken; others by --vllm-service=NAME: {others}")
    return draft


def _features(draft: Draft, document: Node, account: Account) -> None:
    """What a recipe's page adds to its command unless it is taken out: features that are not opted into."""
    optional = {one.text for one in document.get("opt_in_features").items}
    account.read(document.get("opt_in_features"))
    for name, feature in document.get("features").pairs:
        account.read(feature.get("description"))
        if name in optional:
            draft.note(feature.line, f"the feature {name} is off unless somebody wants it: it is left out")
            account.read(feature)
            continue
        read_arguments(
            draft, [Word(part, one.line) for one in feature.get("args").items for part in _words(one.text)]
        )
        for variable, value in feature.get("env").pairs:
            draft.set_env(variable, value.text, value.line)
        account.read(feature.get("args"), feature.get("env"))
    if strategies := document.get("compatible_strategies"):
        draft.note(strategies.line, "its page chooses how many GPUs share the model: no flag says it here")


def _of_omni(origin: Origin, line: int) -> ImportProblem:
    fix = "name a recipe of vLLM's own server"
    return origin.problem(line, "it starts vLLM-Omni, which is another server and is not read", fix)


def _words(text: str) -> list[str]:
    """An argument; some recipes write a flag and its value as one, which their page splits."""
    return text.split(None, 1) if text.startswith("--") else [text]
