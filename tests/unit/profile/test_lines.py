"""Where keys stand in a TOML text."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_vllm.profile.lines import lines

TEXT = '''# a comment with ["brackets"]
extends = "x" # and another
a.b = 1
[server]
image = """
several lines, ["even
with = signs
"""
env = { A = "x]}", B.c = { d = [1, 2] } }
volumes = [
  "a", # one
  'b',
]
[server.args]
"max model" = 1
when = 1979-05-27T07:32:00Z
[[waive]]
check = "a"
[[waive]]
check = "b"
[waive.more]
y = 1
'''


def test_every_key_has_its_line() -> None:
    """Strings, comments, lists and braces hide nothing and add nothing."""
    tomllib.loads(TEXT)

    assert lines(TEXT) == {
        ("extends",): 2,
        ("a",): 3,
        ("a", "b"): 3,
        ("server",): 4,
        ("server", "image"): 5,
        ("server", "env"): 9,
        ("server", "env", "A"): 9,
        ("server", "env", "B"): 9,
        ("server", "env", "B", "c"): 9,
        ("server", "env", "B", "c", "d"): 9,
        ("server", "env", "B", "c", "d", 0): 9,
        ("server", "env", "B", "c", "d", 1): 9,
        ("server", "volumes"): 10,
        ("server", "volumes", 0): 11,
        ("server", "volumes", 1): 12,
        ("server", "args"): 14,
        ("server", "args", "max model"): 15,
        ("server", "args", "when"): 16,
        ("waive", 0): 17,
        ("waive", 0, "check"): 18,
        ("waive", 1): 19,
        ("waive", 1, "check"): 20,
        ("waive", 1, "more"): 21,
        ("waive", 1, "more", "y"): 22,
    }


KEYS = st.sampled_from(["a", "b-c", "d_e", "f1"])
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_written(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[\n" + "".join(f" {_written(item)},\n" for item in value) + "]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value).lower()


VALUES = st.recursive(
    st.one_of(st.integers(), st.booleans(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, min_size=1))
def test_no_document_derails_it(document: dict[str, Any]) -> None:
    """Every top-level key of any document is found on the line where it was written."""
    text, expected = "", {}
    for key, value in document.items():
        expected[(key,)] = text.count("\n") + 1
        text += f"{key} = {_written(value)}\n"
    assert tomllib.loads(text) == document

    found = lines(text)

    assert {path: line for path, line in found.items() if len(path) == 1} == expected
