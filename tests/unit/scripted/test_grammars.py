"""Grammars are data: every file can be read and rendered, and what it renders is what the family writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.facts import parsers
from pytest_vllm.locate import data_dir
from pytest_vllm.scripted.grammar import Call, Kind, Script, load, names
from pytest_vllm.scripted.markup import markup_of, read
from pytest_vllm.scripted.writing import Writer

if TYPE_CHECKING:
    from pathlib import Path

BOTH: tuple[Kind, Kind] = ("tool", "reasoning")
ALL = [(kind, name) for kind in BOTH for name in names(kind)]
COVERED = [(kind, name) for kind, name in ALL if load(name, kind).covered]
WEATHER = Call("get_weather", {"city": "Oslo", "days": 3})
PING = Call("ping", {})

#: Written down by hand from the templates that the files name as their sources.
WRITTEN = {
    "hermes": """Hm.
<tool_call>
{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}
</tool_call>
<tool_call>
{"name": "ping", "arguments": {}}
</tool_call>""",
    "qwen3_coder": """Hm.
<tool_call>
<function=get_weather>
<parameter=city>
Oslo
</parameter>
<parameter=days>
3
</parameter>
</function>
</tool_call>
<tool_call>
<function=ping>
</function>
</tool_call>""",
    "deepseek_v31": (
        "Hm.<|tool▁calls▁begin|>"
        '<|tool▁call▁begin|>get_weather<|tool▁sep|>{"city": "Oslo", "days": 3}<|tool▁call▁end|>'
        "<|tool▁call▁begin|>ping<|tool▁sep|>{}<|tool▁call▁end|>"
        "<|tool▁calls▁end|>"
    ).replace("|", "\uff5c"),
    "kimi_k2": (
        "Hm.<|tool_calls_section_begin|>"
        "<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        '{"city": "Oslo", "days": 3}<|tool_call_end|>'
        "<|tool_call_begin|>functions.ping:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
        "<|tool_calls_section_end|>"
    ),
    "mistral": 'Hm.[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo", "days": 3}[TOOL_CALLS]ping[ARGS]{}',
    "gemma4": (
        'Hm.<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>,days:3}<tool_call|><|tool_call>call:ping{}<tool_call|>'
    ),
    "pythonic": "Hm.\n[get_weather(city='Oslo', days=3), ping()]",
    "glm45": """Hm.
<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>Oslo</arg_value>
<arg_key>days</arg_key>
<arg_value>3</arg_value>
</tool_call>
<tool_call>ping
</tool_call>""",
}


@pytest.mark.parametrize("kind", BOTH)
def test_every_parser_of_the_newest_vllm_has_a_file(kind: Kind) -> None:
    assert set(parsers(kind, "0.32.0")) == set(names(kind))


def test_there_are_enough_of_them() -> None:
    assert len([name for kind, name in COVERED if kind == "tool"]) >= 30
    assert len([name for kind, name in COVERED if kind == "reasoning"]) >= 10


@pytest.mark.parametrize("name", WRITTEN)
def test_calls_are_written_as_the_family_writes_them(name: str) -> None:
    assert load(name, "tool").render(Script(None, "Hm.", (WEATHER, PING))) == WRITTEN[name]


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_a_file_is_whole(kind: Kind, name: str) -> None:
    """Special tokens are tokens, and the parser beside it has a file."""
    grammar = load(name, kind)

    assert set(grammar.special) <= set(grammar.markers)
    assert not grammar.beside or grammar.beside in names("reasoning" if kind == "tool" else "tool")
    assert grammar.family
    assert grammar.sources


@pytest.mark.parametrize(("kind", "name"), COVERED)
def test_nothing_that_is_said_gets_lost(kind: Kind, name: str) -> None:
    grammar = load(name, kind)
    both = (WEATHER, PING) if kind == "tool" else ()
    text = grammar.render(Script("I think.", "I say.", both))

    said = ["get_weather", "city", "Oslo", "days", "3", "ping"] if kind == "tool" else ["I think."]
    assert [one for one in ["I say.", *said] if one not in text] == []
    assert "$" not in text


@pytest.mark.parametrize("name", [name for kind, name in COVERED if kind == "tool"])
def test_calls_without_arguments_and_values_of_every_type_are_written(name: str) -> None:
    grammar = load(name, "tool")
    values = {"a": "x", "b": 1.5, "c": True, "d": None, "e": ["y", {"f": 2}], "g": {}}

    assert "ping" in grammar.render(Script(None, "", (PING,)))
    assert all(
        text in grammar.render(Script(None, "", (Call("note", values),))) for text in ("x", "1.5", "y", "2")
    )


@pytest.mark.parametrize(("kind", "name"), [one for one in ALL if one not in COVERED])
def test_what_is_not_covered_says_why(kind: Kind, name: str) -> None:
    with pytest.raises(LookupError, match=f"parser {name}: .*{load(name, kind).reason[:20]}"):
        load(name, kind).render(Script(None, "", (PING,)))


def test_a_thought_stands_before_the_call() -> None:
    text = Writer(load("hermes", "tool"), load("deepseek_r1", "reasoning")).write(Script("Hm.", "", (PING,)))

    assert text.startswith("<think>\nHm.\n</think>\n\n<tool_call>")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ('famly = "x"', r"bad.toml: nobody knows the key famly; did you mean family\?"),
        ('[write]\ncal = "x"', r"bad.toml: nobody knows the key \[write\] cal; did you mean call\?"),
        ("[promises]\nparalel = true", r"\[promises\] paralel; did you mean parallel\?"),
        ("", r"neither \[write\] call nor \[cannot\] reason is given"),
    ],
)
def test_a_bad_key_is_told_with_the_nearest_one(changed: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(
        f'family = "x"\nsources = ["x"]\n{changed}\n'.replace('family = "x"\n' * ("famly" in changed), "")
    )

    with pytest.raises(ValueError, match=told):
        read(path, "tool")


def test_values_of_a_kind_that_nobody_knows_are_refused() -> None:
    with pytest.raises(ValueError, match="did you mean python"):
        markup_of({"values": "pyton"})


def test_a_parser_without_a_file_is_refused() -> None:
    with pytest.raises(LookupError, match="no grammar says how models write for the tool parser hermess"):
        load("hermess", "tool")


def test_files_say_no_more_than_they_must() -> None:
    """A grammar is a small file."""
    for path in (data_dir("fixtures") / "parsers").glob("*/*.toml"):
        assert len(path.read_text("utf-8").splitlines()) <= 50, path.name
