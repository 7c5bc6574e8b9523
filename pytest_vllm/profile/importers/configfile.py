"""vLLM's own `--config` YAML: flags as keys."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts import canonical, flag_status
from pytest_vllm.profile.importers.draft import Draft
from pytest_vllm.profile.importers.vllmline import flag_of, takes_several, typed
from pytest_vllm.profile.importers.yamlnodes import NOTHING, Node, documents

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.origin import Origin

_NONE = "it looks like {} of another program: none of its keys is a flag of vLLM"
_STARTS = re.compile(r"\bvllm +serve\b|\bapi_server\b|\bdocker run\b")
#: Flags whose names configurations of all kinds have too.
_SHARED = frozenset({"model", "config", "host", "port", "seed", "tokenizer", "device", "dtype", "revision"})
#: Keys that other commands of vLLM write beside the flags.
_POSITIONS = ("model", "model_tag", "model-tag")


def read_config(origin: Origin) -> Draft:
    """The server of a `--config` file. Raises ImportProblem for a key that no version of vLLM has."""
    (document, *_) = documents(origin) or [NOTHING]
    known = [key for key, _ in document.pairs if key in _POSITIONS or flag_of(canonical(key))]
    _of_another(origin, known, len(document.pairs))
    draft = Draft(origin, "process", "shell")
    for key, node in document.pairs:
        if key in _POSITIONS:
            draft.set("model", node.text, node.line)
            continue
        flag = flag_of(canonical(key))
        if flag is None:
            similar = flag_status(key).similar
            hint = f"did you mean {similar[0]}?" if similar else "no version of vLLM has it"
            raise origin.problem(node.line, f"unknown vllm flag {key!r}", hint)
        draft.set_arg(flag.name, _value(flag.name, key, node), node.line)
    if not draft.server.get("model"):
        draft.note(0, "no model is named: vLLM serves its default model, or the one on its command line")
    return draft


def _of_another(origin: Origin, known: list[str], keys: int) -> None:
    """Refuse YAML whose keys are for the most part no flags: it is another program's."""
    flags = [key for key in known if key not in _SHARED]
    if known and len(flags) * 2 >= keys - (len(known) - len(flags)):
        return
    form = "JSON" if origin.text.lstrip().startswith("{") else "YAML"
    starts = [at for at, line in enumerate(origin.text.splitlines(), 1) if _STARTS.search(line)]
    only = f"of its {keys} keys only {', '.join(known[:4])} may be vLLM's"
    few = f"it looks like {form} of another program: {only}"
    fix = "name the file that starts it"
    if starts:
        fix = f"copy the command that starts vLLM out of it (line {starts[0]}) into a script"
    raise origin.problem(
        0, few if known else _NONE.format(form), fix if known or starts else "name the file that starts vLLM"
    )


def _value(name: str, key: str, node: Node) -> Any:
    if isinstance(node.value, dict):
        return node.plain
    if isinstance(node.value, list):
        return node.plain if not takes_several(name) else typed(name, [str(one.text) for one in node.value])
    value = typed(name, [node.text])
    return not value if key.replace("_", "-").startswith("no-") and isinstance(value, bool) else value
