"""Generated programs, run by Python and followed by the importer: what it knows is what Python starts."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_vllm.profile.importers.pythonrun import Program
from pytest_vllm.profile.importers.pythonvalues import Unknown

PROGRAMS = settings(
    max_examples=int(os.environ.get("ACCOUNTS", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
NAMES = st.sampled_from(["a", "b", "c"])
LISTS = st.sampled_from(["L", "M"])
TEXTS = st.sampled_from(
    """'x' | '' | 'a b' | str(n) | f'{a}-{n}' | a + b | a or b | a if n > 2 else b | T['k'] | a.upper()
    | '-'.join(L) | E.get('X', 'd') | E['Y'] | L[0] | c.split('b')[0] | f(a) | f(b, w='v') | g(L)""".replace(
        "\n   ", ""
    ).split(" | ")
)
ADDED = st.sampled_from(
    ["[a, b]", "['--p', str(n)]", "[*M, c]", "L + [b]", "list(M)", "a.split()", "[]", "h()"]
)
TESTS = st.sampled_from(
    ["n > 2", "a", "not b", "'x' in L", "len(M) == 1", "a == b and n", "T.get('z')", "E.get('X')"]
)
FIRST = """
a, b, c, n = 'x', 'y z', 'abc', 3
L, M, T = ['x', 'y'], ['m'], {'k': 'v'}
E = os.environ.copy()
E['Y'] = 'set'
def f(t, w='dflt'):
    if t == 'x':
        return w
    return t + w
def g(items):
    return ' '.join(items)
def h(k=2):
    out = []
    for i in range_of:
        if i == k:
            break
        out.append(i)
    return out
range_of = ['1', 2, '3']
"""


def plain() -> st.SearchStrategy[str]:
    """A statement that changes something."""
    return st.one_of(
        st.builds("{} = {}".format, NAMES, TEXTS),
        st.builds("{} += {}".format, LISTS, ADDED),
        st.builds("{}.append({})".format, LISTS, TEXTS),
        st.builds("{}.extend({})".format, LISTS, ADDED),
        st.builds("n = n + {}".format, st.integers(-2, 2)),
        st.builds("T['k'] = {}".format, TEXTS),
        st.builds("E['X'] = {}".format, TEXTS),
    )


def blocks(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    """Branches and loops around others."""

    def within(lines: list[str]) -> list[str]:
        return [f"    {one}" for one in lines or ["pass"]]

    return st.one_of(
        st.builds(lambda test, one: [f"if {test}:", *within(one)], TESTS, inner),
        st.builds(
            lambda test, one, two: [f"if {test}:", *within(one), "else:", *within(two)], TESTS, inner, inner
        ),
        st.builds(lambda one: ["for b in ['p', 'q']:", *within(one)], inner),
        st.builds(lambda one, two: [*one, *two], inner, inner),
    )


STATEMENTS = st.recursive(st.lists(plain(), max_size=3), blocks, max_leaves=5)


@PROGRAMS
@given(STATEMENTS)
def test_what_is_known_is_right(lines: list[str]) -> None:
    """Words and environment of the command; what is not known may be anything."""
    last = "subprocess.run(['vllm', 'serve', a, b, str(n), *L, *M], env=E)"
    text = "\n".join([FIRST, *lines, last])
    started: list[tuple[list[Any], dict[str, Any]]] = []
    known = {
        "os": SimpleNamespace(environ={}),
        "subprocess": SimpleNamespace(run=lambda words, env: started.append((list(words), dict(env)))),
    }
    try:
        exec(compile(text, "program", "exec"), known)  # noqa: S102 - of our own words
    except (TypeError, ValueError, IndexError, KeyError, AttributeError):
        return
    program = Program({}, Path("/"))
    program.follow(ast.parse(text))

    assert len(program.starts) == 1
    words, environ = started[0]
    found = program.starts[0]
    if not any(isinstance(one, Unknown) for one in found.words):
        assert [str(one) for one in found.words] == [str(one) for one in words]
    assert {name: one for name, one in found.environ.items() if not isinstance(one, Unknown)} == {
        name: one for name, one in environ.items() if not isinstance(found.environ.get(name), Unknown)
    }
