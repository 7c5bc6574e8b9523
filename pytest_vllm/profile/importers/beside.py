"""Arguments of vLLM that stand beside a container, where an operator looks for them and no kubelet does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.facts import canonical
from pytest_vllm.profile.importers.vllmline import flag_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.podspecs import Place
    from pytest_vllm.profile.importers.yamlnodes import Node

_SHARED = "host port config seed device log-level api-key version help timeout workers root-path"
_POD = "import its pod: kubectl get pod NAME -o yaml | pytest --vllm-from=-"
#: Kinds of Kubernetes itself, which pass nothing on.
_CORE = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod")
#: Flags that other programs have too.
SHARED = frozenset(_SHARED.split())
#: Keys whose words go to another program than the server.
_ELSEWHERE = (
    "initContainers",
    "ephemeralContainers",
    "lifecycle",
    "readinessProbe",
    "livenessProbe",
    "startupProbe",
)


def beside(origin: Origin, chosen: Place, path: str, node: Node) -> None:
    """Refuse an object part of which holds arguments of vLLM that no container of it has.

    Args:
        origin: what messages name.
        chosen: the container that is read.
        path: of the part, in the object.
        node: the part, which nobody has read.

    Raises:
        ImportProblem: with the first of the arguments; to leave them out would be another server.
    """
    flags = list(_flags(node)) if not set(path.split(".")) & set(_ELSEWHERE) else []
    settings = _settings(node) if not chosen.owner.get("kind").text.startswith(_CORE) else []
    if len(settings) > 1:
        kind = chosen.document.get("kind").text
        what = (
            f"{path} holds settings of vLLM ({', '.join(settings)}), which the operator of {kind} passes on"
        )
        raise origin.problem(node.line, what, _POD)
    flag = next(
        (one for one in flags if one.text.startswith("--model")), flags[0] if len(flags) > 1 else None
    )
    if flag is None:
        return
    kind = chosen.document.get("kind").text
    what = f"{path} holds arguments of vLLM ({flag.text}), which the operator of {kind} puts together"
    raise origin.problem(flag.line, what, _POD)


def _settings(node: Node) -> list[str]:
    """Keys of a table, all of which are flags of vLLM's, some of them of no other program."""
    keys = [key for key, one in node.pairs if not one.pairs]
    own = [key for key in keys if canonical(key) not in SHARED and flag_of(canonical(key))]
    return own if all(flag_of(canonical(key)) for key in keys) else []


def _flags(node: Node) -> Iterator[Node]:
    """The words of lists in it that are flags of vLLM's, and of few others."""
    if isinstance(node.value, list):
        for one in node.value:
            name = canonical(one.text.partition("=")[0])
            if one.text.startswith("--") and name not in SHARED and flag_of(name):
                yield one
            yield from _flags(one)
    for key, one in node.pairs:
        if key not in _ELSEWHERE:
            yield from _flags(one)
