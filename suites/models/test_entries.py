"""What vLLM tells about a model beside OpenAI's fields."""

from __future__ import annotations

from pytest_vllm import MUST, SHOULD, Recording, check

SPEC = "vllm:serving/openai_compatible_server/"


@check("models.entry.context-length", MUST, spec=SPEC)
def test_context_length(models_list: Recording) -> None:
    """Every base model reports its context length in tokens."""
    bases = [entry for entry in models_list.ok["data"] if not entry.get("parent")]
    lengths = {entry["id"]: entry.get("max_model_len") for entry in bases}

    assert all(isinstance(n, int) and n > 0 for n in lengths.values()), f"max_model_len: {lengths}"


@check("models.entry.context-length-agrees", MUST, spec=SPEC, needs=["chat", "tokenize"])
def test_context_length_agrees(models_list: Recording, tokenize_chat: Recording) -> None:
    """`/v1/models` and `/tokenize` report the same context length."""
    asked = tokenize_chat.request.json["model"]
    listed = {entry["id"]: entry.get("max_model_len") for entry in models_list.ok["data"]}
    told = tokenize_chat.ok["max_model_len"]

    assert listed.get(asked) == told, f"/v1/models says {listed.get(asked)}, /tokenize says {told}"


@check("models.entry.served-name", MUST, spec=SPEC, needs=["chat", "tokenize"])
def test_served_name(models_list: Recording, tokenize_chat: Recording) -> None:
    """A model that is served is listed."""
    asked = tokenize_chat.request.json["model"]
    names = [entry["id"] for entry in models_list.ok["data"]]

    assert tokenize_chat.status != 200 or asked in names, f"{asked!r} is served but not among {names}"


@check("models.entry.root", SHOULD, spec=SPEC)
def test_root(models_list: Recording) -> None:
    """Every entry names where its weights come from."""
    roots = {entry["id"]: entry.get("root") for entry in models_list.ok["data"]}

    assert all(isinstance(root, str) and root for root in roots.values()), f"root: {roots}"


@check("models.entry.parent", MUST, spec=SPEC)
def test_parent(models_list: Recording) -> None:
    """A parent is the name of another entry."""
    data = models_list.ok["data"]
    names = {entry["id"] for entry in data}
    parents = {entry["id"]: entry["parent"] for entry in data if entry.get("parent")}
    lost = {name: parent for name, parent in parents.items() if parent not in names - {name}}

    assert not lost, f"parents that are not listed: {lost}"
