"""What tells kinds of files apart looks at each text once: none takes minutes over blanks and comments."""

from __future__ import annotations

import re
import time

import pytest

from pytest_vllm.profile.importers import python, recognised, systemd, yamlkinds
from pytest_vllm.profile.importers.looks import BY_TEXT, NEARER

PATTERNS = {
    **BY_TEXT,
    **{f"{kind}, nearer": one for kind, several in NEARER.items() for one, _ in several},
    **{
        f"{module.__name__.rpartition('.')[2]}.{name}": one
        for module in (python, recognised, systemd, yamlkinds)
        for name, one in vars(module).items()
        if isinstance(one, re.Pattern)
    },
}
TEXTS = {
    "blank lines": "\n" * 20_000,
    "blanks": "  \t \n" * 5_000,
    "one long line of blanks": " " * 20_000,
    "comments": "# a\n\n" * 5_000,
    "comments that are indented": "  # a\n  \n" * 3_000,
    "assignments": "a := b\n" * 3_000,
    "keys": "a: b\n" * 5_000,
    "words": "a b c\n" * 5_000,
    "sections": "[a\n" * 5_000,
    "quotes": '"a" ' * 5_000,
    "backticks": "`# a " * 5_000,
    "braces": "{{ %{ " * 4_000,
    "jobs": 'job "x" {\n' * 3_000,
    "objects": '{"a": ' * 4_000,
    "dashes": "- " * 10_000,
}


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_quick(name: str) -> None:
    """Tens of thousands of signs take no second, whatever they are."""
    for text in TEXTS.values():
        begun = time.process_time()
        PATTERNS[name].search(f"{text}x")
        assert time.process_time() - begun < 1
