"""How models write calls and reasoning: the markup of a parser, and scripts rendered in it.

A grammar is data: `fixtures/parsers/tool/NAME.toml` and `fixtures/parsers/reasoning/NAME.toml`, one file for
each parser of vLLM. `docs/parsers.md` describes the keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from string import Template
from typing import TYPE_CHECKING, Any, Literal

from pytest_vllm.locate import data_dir
from pytest_vllm.scripted.markup import Markup, markup_of, read

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["tool", "reasoning"]


@dataclass(frozen=True)
class Call:
    """A tool call: the name and the arguments."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Script:
    """What a model is to say: reasoning (None: it does not think), text, calls, and text after them."""

    thinking: str | None
    content: str
    calls: tuple[Call, ...] = ()
    after: str = ""


@dataclass(frozen=True)
class Grammar:
    """The markup of one parser.

    Args:
        name: the parser's.
        kind: of the parser.
        family: the models that write so.
        markers: texts that must be single tokens.
        special: those of them that decoding leaves out.
        kwargs: what the chat template has to be told for the parser to work, as `chat_template_kwargs`.
        beside: the parser of the other kind that these models are served with; empty for none.
        promises: what the parser's documentation or code promises: see `docs/parsers.md`.
        sources: where the facts come from.
        reason: why scripts cannot be rendered for it; empty when they can.
        markup: the templates.
    """

    name: str
    kind: Kind
    family: str = ""
    markers: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    beside: str = ""
    promises: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    reason: str = ""
    markup: Markup = field(default_factory=Markup)

    @property
    def covered(self) -> bool:
        """Whether scripts can be rendered for it."""
        return not self.reason

    def render(self, script: Script) -> str:
        """The script as the model writes it. Raises LookupError that tells why when it cannot be done."""
        if not self.covered:
            raise LookupError(f"no script for the {self.kind} parser {self.name}: {self.reason}")
        if self.kind == "reasoning":
            written = self.markup.silent if script.thinking is None else self.markup.thought
            return Template(written).substitute(thinking=script.thinking or "", content=script.content)
        calls = self.markup.calls([(call.name, call.arguments) for call in script.calls])
        content = Template(self.markup.content).substitute(content=script.content)
        content = content if script.content or (self.markup.always and calls) else ""
        after = Template(self.markup.after).substitute(content=script.after) if script.after else ""
        return self.markup.glue.join(part for part in (content, calls, after) if part)


def names(kind: Kind) -> list[str]:
    """The parsers of a kind that have a file, covered or not, sorted."""
    return sorted(path.stem for path in (data_dir("fixtures") / "parsers" / kind).glob("*.toml"))


@cache
def load(name: str, kind: Kind) -> Grammar:
    """The grammar of a parser.

    Raises LookupError for one that has none, ValueError for a file with keys that nobody knows.
    """
    path = data_dir("fixtures") / "parsers" / kind / f"{name}.toml"
    if name not in names(kind):
        raise LookupError(f"no grammar says how models write for the {kind} parser {name}")
    data = read(path, kind)
    return Grammar(
        name,
        kind,
        family=data["family"],
        markers=tuple(data.get("markers", ())),
        special=tuple(data.get("special", ())),
        kwargs=data.get("kwargs", {}),
        beside=data.get("beside", ""),
        promises=data.get("promises", {}),
        sources=tuple(data["sources"]),
        reason=data.get("cannot", {}).get("reason", ""),
        markup=markup_of(data.get("write", {})),
    )
