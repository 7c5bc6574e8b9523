"""Who asks the server in the same file for what it does not have; words that are no text to YAML."""

from __future__ import annotations

import pytest

from pytest_vllm.profile.importers import ImportProblem, imported

COMPOSE = """services:
  llm:
    image: vllm/vllm-openai:v0.32.0
    command: {command}
    healthcheck: {{test: ["CMD", "curl", "-f", "http://localhost:{health}/health"]}}
  ui:
    image: ui
    environment:
      - BASE_URL=http://llm:{port}/v1
      - DEFAULT_MODEL=org/a
"""
POD = """apiVersion: v1
kind: Pod
metadata: {{name: llm, labels: {{app: llm}}}}
spec:
  containers:
    - image: vllm/vllm-openai:v0.32.0
      args: [--model=org/a{args}]
      ports: [{{name: http, containerPort: 8000}}]
      readinessProbe: {{httpGet: {{path: /health, port: {probe}}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: front}}
spec: {{selector: {{app: llm}}, ports: [{{port: 80, targetPort: {target}}}]}}
"""


def _compose(command: str = "--model org/a", health: int = 8000, port: int = 8000) -> list[str]:
    notes = imported(COMPOSE.format(command=command, health=health, port=port)).notes
    return [one for one in notes if " asks " in one]


def _pod(args: str = "", probe: str = "http", target: str = "http") -> list[str]:
    return [
        one for one in imported(POD.format(args=args, probe=probe, target=target)).notes if " asks " in one
    ]


def test_a_health_check_of_another_port() -> None:
    """The container never gets healthy."""
    assert _compose() == []
    assert "the healthcheck asks port 9000, and the server listens on 8000" in _compose(health=9000)[0]


def test_a_neighbour_of_another_port() -> None:
    """The port inside counts between containers, not the published one."""
    assert "ui asks port 80, and the server listens on 8000" in _compose(port=80)[0]
    assert _compose(command="--model org/a --port 9000", health=9000, port=9000) == []


def test_a_neighbour_that_names_another_model() -> None:
    """A served name takes the place of the repository's."""
    (said,) = _compose(command="--model org/a --served-model-name a b")
    assert "ui asks for the model org/a (DEFAULT_MODEL), and the server answers to a and b alone" in said
    assert _compose(command="--model org/a --served-model-name a org/a") == []


def test_probes_and_services() -> None:
    """By number and by name; a named port of the pod is as good as its number."""
    assert _pod() == []
    assert "the readinessProbe asks port 8080, and the server listens on 8000" in _pod(probe="8080")[0]
    assert "the Service front asks port 8081" in _pod(target="8081")[0]
    assert len(_pod(args=", --port=9000")) == 2
    assert _pod(args=", --port=9000", probe="9000", target="9000") == []


@pytest.mark.parametrize("port", ["$(PORT)", "{{ .Spec.Port }}"])
def test_a_port_that_is_not_known_is_not_judged(port: str) -> None:
    """An operator, or another object, says it."""
    text = POD.format(args=f", '--port={port}'", probe="9000", target="9000")
    try:
        notes = imported(text).notes
    except ImportProblem:
        return
    assert not any(" asks " in one for one in notes)


def test_a_table_where_a_word_was_meant() -> None:
    """YAML makes a table of JSON without quotes, and compose refuses it."""
    command = "[--model, org/a, --hf-overrides, {a: 1}]"
    with pytest.raises(ImportProblem, match="a word of the command is a table or a list to YAML"):
        imported(COMPOSE.format(command=command, health=8000, port=8000))


def test_a_number_where_a_text_was_meant() -> None:
    """It is read, and said: whoever starts the deployment refuses it."""
    found = imported(POD.format(args=", --port, 8000", probe="http", target="http"))
    assert any("8000 is a number to YAML, and the cluster refuses it" in one for one in found.notes)
    found = imported(POD.format(args=', --port, "8000"', probe="http", target="http"))
    assert not any("to YAML" in one for one in found.notes)


def test_a_number_for_a_variable() -> None:
    """A cluster takes text alone."""
    pod = POD.format(args="", probe="http", target="http").replace(
        "      ports:", "      env: [{name: A, value: 1}]\n      ports:"
    )
    assert any("1 is a number to YAML" in one for one in imported(pod).notes)


def test_a_table_in_a_list_of_variables() -> None:
    """`- NAME: value` is neither of the two forms."""
    with pytest.raises(ImportProblem, match="an entry of environment is not text"):
        imported(
            "services: {a: {image: vllm/vllm-openai:v0.32.0, environment: [{A: 1}], command: [--model, a]}}"
        )


CLIENT = """services:
  llm:
    image: vllm/vllm-openai:v0.32.0
    environment: {{VLLM_API_KEY: "k-12345678901234567890"}}
    command: --model org/a {args}
  ui:
    image: ui
    environment:
      OPENAI_BASE_URL: http://llm:8000/v1
      OPENAI_MODEL: {model}
      OPENAI_API_KEY: {key}
      {more}
"""


def _client(model: str = "org/a", key: str = "sk-mine-1234567", args: str = "", more: str = "") -> list[str]:
    notes = imported(CLIENT.format(model=model, key=key, args=args, more=more)).notes
    return [one for one in notes if " ui " in one and "not carried" not in one]


def test_a_neighbour_that_asks_for_an_unknown_name() -> None:
    """By a variable that only names what a client asks for, where it asks this server alone."""
    assert _client() == []
    assert "ui asks for the model a (OPENAI_MODEL), and the server answers to org/a" in _client("a")[0]
    assert _client("a", args="--served-model-name b a") == []
    assert _client("openai/a", args="--served-model-name a") == []
    assert _client("sql", args="--enable-lora --lora-modules sql=org/sql") == []
    assert _client("a", more="EMBED_URL: http://embed:8000/v1") == []


def test_a_neighbour_without_the_key() -> None:
    """A word that stands for no key, where the server asks for one."""
    assert "sends 'EMPTY' as its key (OPENAI_API_KEY)" in _client(key="EMPTY")[0]
    assert _client(key="sk-other-12345678901234567890") == []
