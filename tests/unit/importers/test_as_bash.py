"""Generated scripts, run by bash and read by the importer: where it says nothing, its words are bash's."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_vllm.profile.importers.origin import ImportProblem, origin_of
from pytest_vllm.profile.importers.shellrun import Run
from pytest_vllm.profile.importers.shellstate import State
from pytest_vllm.profile.importers.shelltree import parsed

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.profile.importers.shellwalk import Start

FILES = settings(
    max_examples=int(os.environ.get("ACCOUNTS", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
#: What bash runs in the place of vLLM: it writes its arguments and its environment down.
STUB = """#!/bin/bash
{ printf '%s\\0' "$@"; printf '\\1'; env -0; printf '\\2'; } >> "$SEEN"
"""
#: Variables that a shell sets by itself.
OWN = frozenset({"PATH", "HOME", "SEEN", "PWD", "OLDPWD", "SHLVL", "_", "LC_ALL"})

NAMES = st.sampled_from(["A", "B", "C", "D"])
PLAIN = st.sampled_from(
    ["x", "8000", "org/name", "a b", "", "{}", "*", "a=b", "--flag", "~", "0.9", "a\\b", "é"]
)


def quoted(text: str) -> str:
    """A text between single quotes."""
    return "'" + text + "'"


def referring(name: str) -> st.SearchStrategy[str]:
    """A name in one of the ways that scripts use it."""
    ways = [
        "${}", "${{{}}}", "${{{}:-x y}}", "${{{}-d}}", "${{{}:+--on}}", "${{{}:+--on ${}}}", "${{{}%b*}}",
        "${{{}##*/}}", "${{{}%%/*}}", "${{{}#*a}}", "${{{}/a/b}}", "${{{}//a/}}", "${{#{}}}", "${{{}^^}}",
        '${{{}:-"q r"}}', "${{{}:-'s t'}}", "${{{}:1:2}}", "${{{}:=set}}", '${{{}:+--on "${}" --off}}',
        '${{{}:+ --on ${} "p q"}}', '${{{}:-u "v w" z}}', '${{{}:-"k" l}}', '"${{{}:+m n}}"', '"${{{}:- o}}"',
    ]  # fmt: skip
    return st.sampled_from(ways).map(lambda way: way.format(name, name))


REFERENCES = NAMES.flatmap(referring)
LISTS = st.sampled_from(
    [
        '"${L[@]}"',
        "${L[@]}",
        '"${L[*]}"',
        '"${L[0]}"',
        "${#L[@]}",
        '"$@"',
        "$@",
        '"$1"',
        "$#",
        '"${@:2}"',
        '"${L[@]:1}"',
    ]
)
IN_QUOTES = st.lists(
    st.one_of(
        REFERENCES.filter(lambda one: '"' not in one),
        st.sampled_from([" ", "x", " \\\n   ", "\\$", "'", '\\"', "\n", "--f"]),
    ),
    max_size=4,
).map(lambda parts: '"' + "".join(parts) + '"')
WORDS = st.one_of(
    PLAIN.map(quoted),
    st.sampled_from(["x", "a\\ b", "$'t\\tx'", "--k=v", "-tp", "4", "\\\n", "{1,2}x"]),
    REFERENCES,
    IN_QUOTES,
    LISTS,
    st.tuples(IN_QUOTES, st.sampled_from(["x", "=", "/"]), REFERENCES).map("".join),
)
VALUES = st.one_of(
    PLAIN.map(quoted), IN_QUOTES, REFERENCES, st.sampled_from(["x", "$((2*3+1))", "$((7/2))", ""])
)


@st.composite
def statements(draw: st.DrawFn, depth: int = 0) -> str:
    """One statement that changes what the server will be started with."""
    name, value = draw(NAMES), draw(VALUES)
    ways = [
        f"{name}={value}",
        f"{name}+={value}",
        f"export {name}={value}",
        f"export {name}",
        f"unset {name}",
        f"L=({draw(WORDS)} {draw(WORDS)})",
        f"L+=({draw(WORDS)})",
        f"set -- {draw(WORDS)} {draw(WORDS)}",
        "shift",
        f"(( {name} = 4 ))",
        f"let {name}=3",
        f"printf -v {name} %s x",
        f"read -r {name} <<< x",
        f"L[1]={value}",
        "declare -A L=([a]=1 [b]=2)",
        f": ${{{name}:={draw(st.sampled_from(['p', 'q r']))}}}",
        f"readonly R{name}={value}",
    ]
    if depth < 2:
        inner, other = draw(statements(depth + 1)), draw(statements(depth + 1))
        test = draw(
            st.sampled_from(
                [
                    f'[ -n "${name}" ]',
                    f'[[ -z "${name}" ]]',
                    f'[ "${name}" = x ]',
                    f'[[ "${name}" == *a* ]]',
                    "true",
                    "false",
                ]
            )
        )
        ways += [
            f"if {test}; then\n  {inner}\nelse\n  {other}\nfi",
            f"{test} && {inner}" if "\n" not in inner else inner,
            f"{test} || {inner}" if "\n" not in inner else inner,
            f'case "${name}" in\n  x|a*) {inner} ;;\n  *) {other} ;;\nesac',
            f'case "${name}" in\n  *"x"*|"a"[0-9]*) {inner} ;;\n  *) {other} ;;\nesac',
            f"f() {{ local {name}={value}; {inner}; }}\nf {draw(WORDS)}",
            f"g() {{\n  {inner}\n}}\ng",
            (
                f'h() {{ local Q=$1; {test} && {{ echo "$Q"; return; }}; printf "%s" {value}; }}\n'
                f"{name}=$(h {draw(WORDS)})"
            ),
            f"for {name} in {draw(WORDS)} y; do\n  {inner}\ndone",
            f"( {inner} )",
            f"N=0\nwhile [ $N -lt 3 ]; do\n  {inner}\n  N=$((N+1))\ndone\n{name}=$N",
            f"for ((i=0; i<3; i++)); do\n  {inner}\ndone",
            f"(( 1 > 3 )) && {inner}" if "\n" not in inner else inner,
        ]
    return draw(st.sampled_from(ways))


ENDS = [
    "vllm serve {}",
    "exec vllm serve {}",
    "A=1 vllm serve {}",
    'CMD="vllm serve $A ${{B}} \\\n  $C"; $CMD {}',
    "env B=2 vllm serve {}",
    'eval "vllm serve $A \\\n $B" {}',
    "bash -c 'vllm serve \"$@\" $A' -- {}",
    "vllm serve {} &\nwait",
    "bash <<EOF\nvllm serve ${{A}} \\\n  ${{B}} {}\nEOF",
]


def by_bash(script: Path) -> tuple[list[str], dict[str, str]] | None:
    """The arguments and the environment of the last server that bash starts; None where it starts none."""
    folder = script.parent
    stub, seen = folder / "vllm", folder / "seen"
    stub.write_text(STUB)
    stub.chmod(0o755)
    seen.unlink(missing_ok=True)
    environ = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": "/home/me", "SEEN": str(seen), "LC_ALL": "C.UTF-8"}
    subprocess.run(
        ["/bin/bash", str(script)], env=environ, cwd=folder, capture_output=True, timeout=20, check=False
    )
    if not seen.is_file():
        return None
    texts = seen.read_bytes().decode("utf-8", "replace").split("\2")
    if len(texts) != 2:
        return None
    words, _, env = texts[0].partition("\1")
    pairs = (one.partition("=") for one in env.split("\0") if one)
    return words.split("\0")[:-1], {name: value for name, _, value in pairs if name not in OWN}


def by_importer(script: Path) -> Start | None:
    """The one command that is found, where the importer has nothing to say of it."""
    origin = origin_of(script, {"HOME": "/home/me"})
    state = State(origin.folder, {}, "/home/me", str(script))
    try:
        run = Run(origin, parsed(origin.text, origin), state).follow()
    except ImportProblem:
        return None
    if len(run.starts) != 1 or run.left() or run.notes:
        return None
    (start,) = run.starts
    values = [value for value, _ in start.words]
    if start.where or start.said or any(one.remarks or one.literal for one in values):
        return None
    return start


@FILES
@given(
    before=st.lists(statements(), max_size=6), words=st.lists(WORDS, max_size=4), end=st.sampled_from(ENDS)
)
def test_a_script(before: list[str], words: list[str], end: str, tmp_path: Path) -> None:
    """Its words and what it exports."""
    script = tmp_path / "a.sh"
    script.write_text("\n".join([*before, end.format(" ".join(words))]) + "\n")
    start, real = by_importer(script), by_bash(script)
    if start is None or real is None:
        return
    words_of_it, env = real
    assert start.texts[1:] == words_of_it
    seen = start.state.environment() | {name: one for name, (one, _) in start.prefix.env.items()}
    shown = {name: value.text for name, value in seen.items() if not value.remarks}
    assert {name: env.get(name) for name in shown} == shown


@pytest.mark.parametrize(
    "body", [r"vllm serve ${A} 'a\b'", r"vllm serve 'a\\b' \$A", "vllm serve $A \\\n  b"]
)
def test_backslashes_of_a_here_document(tmp_path: Path, body: str) -> None:
    """They stay before all but a line end, `$`, a backtick and themselves."""
    script = tmp_path / "a.sh"
    script.write_text(f"export A=x\nbash <<EOF\n{body}\nEOF\n")
    start, real = by_importer(script), by_bash(script)

    assert start is not None
    assert real is not None
    assert [value.text for value, _ in start.words[1:]] == real[0]
