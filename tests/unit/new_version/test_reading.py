"""Reading a version's sources, and what differs between two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.new_version import vllms
from tools.new_version.reading import differences, longest, read

if TYPE_CHECKING:
    from pathlib import Path

WORDED: dict[str, dict[str, dict[str, Any]]] = {
    "logs": {"line": {"regex": r"written in (?P<what>\w+) "}},
    "startup-errors": {"known": {"match": ["that is written in pieces"]}, "other": {"match": ["nowhere"]}},
}


def test_every_topic_of_a_version(tmp_path: Path) -> None:
    found = read(vllms.first(tmp_path), WORDED)

    assert found["flags"] == {
        "port": {"type": "int", "default": 8000, "group": "Frontend"},
        "host": {"type": "str", "default": None, "group": "Frontend"},
        "allowed": {"type": "list", "default": [], "group": "Frontend"},
        "max-model-len": {"aliases": ["-l"], "type": "int", "default": None, "group": "ModelConfig"},
        "dtype": {"type": "choice", "default": "auto", "choices": ["auto", "half"], "group": "ModelConfig"},
        "lazy": {"type": "bool", "default": None, "negatable": True, "group": "ModelConfig"},
        "backend": {"type": "choice", "choices": ["a", "b"], "default": None},
    }
    assert found["fields"] == {
        "Base.id": {"type": "str", "default": "@required"},
        "ChatRequest.id": {"type": "str", "default": "@required"},
        "ChatRequest.n": {"type": "int", "default": 1},
        "ChatRequest.stop": {"type": "list[str]|None"},
    }
    assert found["routes"] == {"/v1/chat": {"methods": ["POST"]}, "/v1/ping": {"methods": ["GET", "POST"]}}
    assert found["metrics"] == {
        "vllm:requests_total": {"type": "counter", "engines": ["V1"]},
        "vllm:running": {"type": "gauge", "engines": ["V1"]},
    }
    assert set(found["parsers"]) == {"tool/hermes", "reasoning/qwen3"}
    assert set(found["architectures"]) == {"LlamaForCausalLM"}
    assert set(found["environment"]) == {"VLLM_PORT"}
    assert set(found["cache-config"]) == {"block_size"}
    assert set(found["choices"]) == {
        "speculation/ngram",
        "speculation/mtp",
        "field/method",
        "attention/FLASH_ATTN",
    }
    assert set(found["startup-errors"]) == {"known"}


def test_what_the_next_version_has_otherwise(tmp_path: Path) -> None:
    changes, unread = differences(read(vllms.first(tmp_path), WORDED), read(vllms.second(tmp_path), WORDED))

    assert unread == {}
    assert (list(changes["flags"].added), changes["flags"].removed) == (["engine-backend"], ["backend"])
    assert changes["flags"].changed == {"dtype": {"choices": ["auto", "float8", "half"]}}
    assert list(changes["fields"].added) == ["ChatRequest.seed"]
    assert changes["fields"].changed == {"ChatRequest.n": {"type": "int|None", "default": None}}
    assert (list(changes["routes"].added), changes["routes"].removed) == (["/v1/talk"], ["/v1/chat"])
    assert (list(changes["metrics"].added), changes["metrics"].removed) == (
        ["vllm:in_flight"],
        ["vllm:running"],
    )
    assert changes["startup-errors"].removed == ["known"]
    assert not changes["parsers"]


def test_a_version_differs_in_nothing_from_itself(tmp_path: Path) -> None:
    found = read(vllms.first(tmp_path), WORDED)

    changes, unread = differences(found, found)

    assert (any(changes.values()), unread) == (False, {})


def test_what_moved_is_not_read_instead_of_gone(tmp_path: Path) -> None:
    """A reader that finds hardly anything does not fit the new sources: nothing of that topic is taken in."""
    before = read(vllms.first(tmp_path), WORDED)

    changes, unread = differences(before, {**before, "flags": {}, "environment": {}})

    assert unread == {"flags": (7, 0), "environment": (1, 0)}
    assert "flags" not in changes


@pytest.mark.parametrize(
    ("regex", "text"),
    [
        (r"Resolved architecture: (?P<arch>\w+)", "Resolved architecture: "),
        (r"\bargs: Namespace\((?P<args>.*)\)", "args: Namespace"),
        (r"Using (?:Enum\.)?(?P<backend>[A-Z][A-Z0-9_]+) backend\b", " backend"),
    ],
)
def test_the_longest_text_of_a_regex(regex: str, text: str) -> None:
    assert longest(regex) == text
