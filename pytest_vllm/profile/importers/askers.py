"""Who asks the server in the same file, and asks for what it does not have: a port, a model's name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.yamlnodes import Node

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.podspecs import Place

#: Where vLLM listens unless told otherwise.
_PORT = 8000
_URL = r"\bhttps?://(?:{})(?::(\d+))?(?=[/\s\"']|$)"
_ITSELF = r"localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]"
#: Variables that name what a request asks for, and those that name other things of a model.
_MODEL, _OTHER = (
    re.compile(r"MODEL", re.IGNORECASE),
    re.compile(r"TOKENI|EMBED|RERANK|PATH|DIR", re.IGNORECASE),
)
_NEVER = "it never answers there"
#: Variables by which clients of this kind are told what to ask for, where they ask one server alone.
_ASKED_FOR = re.compile(
    r"(?:OPENAI_(?:API_)?|LLM_|VLLM_|CHAT_|DEFAULT_)?MODEL(?:_NAME|_ID)?|DEFAULT_MODELS|OPENAI_CHAT_MODEL"
)
#: Prefixes by which clients choose a provider, which the server never sees.
_PROVIDER = re.compile(r"^(?:openai|hosted_vllm|vllm|openai/vllm)/")
_KEY = re.compile(r"(?:OPENAI|LLM|VLLM|CHAT)_(?:API_)?KEY|API_KEY|OPENAI_API_KEYS")
#: What people write where a server asks for no key.
_NO_KEY = re.compile(
    r"empty|none|null|dummy|not[-_ ]?needed|no[-_ ]?key|sk-?x+|x+|na|n/a|fake|unused|", re.IGNORECASE
)
_ANY_URL = re.compile(r"\bhttps?://([\w.-]+)")


def listens(draft: Draft) -> int | None:
    """The port on which the server listens; None where a file, a script or an operator says it."""
    port = draft.args.get("port", _PORT)
    known = draft.port_known and "config" not in draft.args and not draft.server.get("entrypoint")
    return port if known and isinstance(port, int) else None


def of_services(draft: Draft, name: str, services: Mapping[str, Node]) -> None:
    """Note what the health check of a compose service, and its neighbours, ask for in vain.

    Args:
        draft: the server, its arguments read.
        name: the service that it is.
        services: all of the file.
    """
    port, own = listens(draft), services[name]
    test = " ".join(one.text for one in own.get("healthcheck", "test").items)
    if port is not None and draft.deployment.get("network") != "host":
        for line, asked in _asked(own.get("healthcheck", "test"), test, _ITSELF):
            _port(draft, line, "the healthcheck", asked, port)
    hosts = {name, draft.deployment.get("name") or name}
    names = "|".join(re.escape(one) for one in sorted(hosts))
    for other, node in services.items():
        texts = list(_texts(node)) if other != name else []
        found = [one for line, text in texts for one in _asked(Node(text, text, line), text, names)]
        for line, asked in found:
            _port(draft, line, other, asked, port)
        if found:
            _model(draft, other, node)
            asked_of = {one for _, text in texts for one in _ANY_URL.findall(text)} - {
                "localhost",
                "127.0.0.1",
            }
            _said(draft, other, node, alone=asked_of <= hosts)


def of_pod(draft: Draft, place: Place, documents: Sequence[Node]) -> None:
    """Note what the probes of a container, and the Services of its pod, ask for in vain.

    Args:
        draft: the server, its arguments read.
        place: the container.
        documents: all objects of the file.
    """
    port = listens(draft)
    if port is None or len(place.pod.get("containers").items) > 1 or place.pod.get("initContainers"):
        return  # a neighbour, or one that stays, may be who is asked
    ports = place.node.get("ports").items
    named = {one.get("name").text: one.get("containerPort").text for one in ports if one.get("name").text}
    for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
        for kind in ("httpGet", "tcpSocket"):
            asked = place.node.get(probe, kind, "port")
            _port(draft, asked.line, f"the {probe}", named.get(asked.text, asked.text), port)
    labels = dict(_labels(place))
    for document in documents:
        chosen = document.get("spec", "selector").pairs if document.get("kind").text == "Service" else []
        if chosen and all(labels.get(key) == one.text for key, one in chosen):
            targets = [
                one.get("targetPort") or one.get("port") for one in document.get("spec", "ports").items
            ]
            inside = [named.get(one.text, one.text) for one in targets]
            if inside and not {"", str(port)} & set(inside):
                name = f"the Service {document.get('metadata', 'name').text}"
                _port(draft, targets[0].line, name, inside[0], port)


def _labels(place: Place) -> Iterator[tuple[str, str]]:
    for table in place.above:
        for key, one in table.get("metadata", "labels").pairs:
            yield key, one.text


def _port(draft: Draft, line: int, who: str, asked: str, port: int | None) -> None:
    if asked.isdigit() and port is not None and int(asked) != port:
        draft.note(line, f"{who} asks port {asked}, and the server listens on {port}: {_NEVER}")


def _asked(node: Node, text: str, names: str) -> Iterator[tuple[int, str]]:
    """The ports that a text asks of a host by one of its names, each with its line."""
    for found in re.finditer(_URL.format(names), text):
        yield node.line, found[1] or "80"


def _texts(node: Node) -> Iterator[tuple[int, str]]:
    """Every text in a service, with its line."""
    if isinstance(node.value, str):
        yield node.line, node.value
    for one in [one for _, one in node.pairs] or (node.items if isinstance(node.value, list) else []):
        yield from _texts(one)


def _model(draft: Draft, who: str, node: Node) -> None:
    """A neighbour that names the model by its repository, where the server answers to another name."""
    model, given = draft.server.get("model", ""), draft.server.get("served-model-name")
    served = given or draft.args.get("served-model-name") or []
    served = [served] if isinstance(served, str) else served
    if not model or not served or model in served:
        return
    for name, value, line in _entries(node):
        if value == model and _MODEL.search(name) and not _OTHER.search(name):
            shown = " and ".join(map(str, served))
            what = f"{who} asks for the model {model} ({name}), and the server answers to {shown} alone"
            draft.note(line, f"{what}: such requests end in 404")


def _entries(node: Node) -> Iterator[tuple[str, str, int]]:
    """Name, value and line of each variable of a service."""
    table = node.get("environment")
    for one in table.items:
        yield *one.text.partition("=")[::2], one.line
    for key, one in table.pairs:
        yield key, one.text, one.line


def _said(draft: Draft, who: str, node: Node, *, alone: bool) -> None:
    """A neighbour that asks this server for a name that it does not have, or without its key."""
    given = draft.server.get("served-model-name") or draft.args.get("served-model-name")
    served = [given] if isinstance(given, str) else list(given or [draft.server.get("model", "")])
    adapters = draft.args.get("lora-modules") or []
    adapters = [adapters] if isinstance(adapters, str | dict) else adapters
    known = {*served, *(str(_adapter(one)) for one in adapters)}
    for name, value, line in _entries(node):
        if "$" in value:
            continue
        if _KEY.fullmatch(name) and "api-key" in draft.server and _NO_KEY.fullmatch(value.strip()):
            what = f"{who} sends {value or 'nothing'!r} as its key ({name}), and the server asks for one"
            draft.note(line, f"{what}: such requests end in 401")
        asked = {_PROVIDER.sub("", one.strip()) for one in value.split(",") if one.strip()}
        if alone and _ASKED_FOR.fullmatch(name) and asked and not asked & known and all(served):
            what = f"{who} asks for the model {value} ({name})"
            if draft.server.get("model") not in asked:  # that one is said already
                draft.note(
                    line,
                    f"{what}, and the server answers to {' and '.join(served)}: such requests end in 404",
                )


def _adapter(one: object) -> object:
    return one.get("name") if isinstance(one, dict) else str(one).partition("=")[0]
