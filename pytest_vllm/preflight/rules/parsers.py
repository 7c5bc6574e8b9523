"""Tool and reasoning parsers against version, model and what clients expect."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from pytest_vllm.facts import parsers
from pytest_vllm.preflight.rule import ERROR, WARNING, Finding, drop, put, rule
from pytest_vllm.profile.flags import not_known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment

_TOOL, _REASONING = "tool-call-parser", "reasoning-parser"
_AUTO = "enable-auto-tool-choice"

#: Beginnings of the parsers that read what a maker's own models write, where no model file says it.
_MAKERS = {
    "qwen": ("hermes", "qwen", "pythonic"),
    "meta-llama": ("llama", "pythonic"),
    "mistralai": ("mistral",),
    "openai": ("openai",),
    "moonshotai": ("kimi",),
    "minimaxai": ("minimax",),
    "zai-org": ("glm",),
}

_THINKERS = {
    "qwen": ("qwen", "deepseek_r1"),
    "mistralai": ("mistral",),
    "openai": ("openai", "GptOss"),
    "moonshotai": ("kimi",),
    "minimaxai": ("minimax",),
    "zai-org": ("glm", "deepseek"),
}


#: The same by what a model is called, wherever it lies; a name of two families fits both.
_FAMILIES = {
    "qwen": ("hermes", "qwen", "pythonic"),
    "qwq": ("hermes", "qwen"),
    "llama": ("llama", "pythonic"),
    "mistral": ("mistral",),
    "mixtral": ("mistral", "hermes"),
    "devstral": ("mistral",),
    "magistral": ("mistral",),
    "ministral": ("mistral",),
    "gpt-oss": ("openai",),
    "kimi": ("kimi",),
    "minimax": ("minimax",),
    "glm": ("glm",),
    "deepseek": ("deepseek",),
    "gemma": ("gemma", "functiongemma", "pythonic"),
    "granite": ("granite", "hermes"),
    "hermes": ("hermes",),
    "xlam": ("xlam",),
}
_THINKING_FAMILIES = {
    "qwen": ("qwen", "deepseek_r1"),
    "qwq": ("qwen", "deepseek_r1"),
    "magistral": ("mistral",),
    "gpt-oss": ("openai", "GptOss"),
    "kimi": ("kimi",),
    "minimax": ("minimax",),
    "glm": ("glm", "deepseek"),
    "deepseek": ("deepseek", "qwen3"),
    "granite": ("granite",),
}
#: Names whose models write calls in another way than their family did before: its newer form alone.
_NEWER = re.compile(r"qwen3[-.]?coder|qwen3\.[5-9]")
#: Names of models whose makers changed what they write from one to the next.
_MIXED = ("nemotron", "functionary", "openhands", "smollm")


def _families(of: Deployment, kind: str) -> tuple[str, ...]:
    """Beginnings of the parsers that fit what the model is called, its repository, its folder, its name."""
    server, table = of.profile.server, _FAMILIES if kind == "tool" else _THINKING_FAMILIES
    served = server.served_model_name or of.given("served-model-name") or ""
    names = f"{server.model} {served}".lower().replace("_", "-").replace("gptoss", "gpt-oss")
    if any(one in names for one in _MIXED):
        return ()
    return tuple(one for family, own in table.items() if family in names for one in own)


def _foreign(of: Deployment, name: object, makers: dict[str, tuple[str, ...]], kind: str) -> list[str]:
    """The parsers of the model's maker or family, where the one that is given is another one's."""
    maker = str(of.profile.server.model or "").partition("/")[0].lower()
    known, own = parsers(kind, of.version), makers.get(maker, ())
    if kind == "tool" and not of.has("chat-template") and _NEWER.search(str(of.profile.server.model).lower()):
        own = ("qwen",)
    if not own and not of.has("chat-template"):  # a template of one's own may write calls as another does
        own = _families(of, kind)
    if not own or not isinstance(name, str) or name not in known or name.startswith(own):
        return []
    return [one for one in known if one.startswith(own)]


def _lacking(name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(known)}"


@rule("parsers.tool-unknown", ERROR, source="ToolParserManager of each release")
def tool_unknown(of: Deployment) -> Iterator[Finding]:
    """A tool parser that this version does not have."""
    name = of.given(_TOOL)
    if isinstance(name, str) and not of.has("tool-parser-plugin") and name not in parsers("tool", of.version):
        if not of.profile.server.facts_hold:
            yield Finding(of.key(_TOOL), not_known(f"the tool parser {name!r}"), severity=WARNING)
            return
        severe = of.on(_AUTO) and of.exact
        yield Finding(
            of.key(_TOOL),
            f"tool-call-parser is {name!r}",
            f"{of.shown_version} has no such parser"
            + ("" if of.on(_AUTO) else f" (only looked up with {_AUTO})"),
            advice=_lacking(name, parsers("tool", of.version)),
            severity=ERROR if severe else WARNING,
        )


@rule("parsers.reasoning-unknown", ERROR, versions=">=0.7.3", source="ReasoningParserManager of each release")
def reasoning_unknown(of: Deployment) -> Iterator[Finding]:
    """A reasoning parser that this version does not have."""
    name, known = of.given(_REASONING), parsers("reasoning", of.version)
    if isinstance(name, str) and name and not of.has("reasoning-parser-plugin") and name not in known:
        if not of.profile.server.facts_hold:
            yield Finding(of.key(_REASONING), not_known(f"the reasoning parser {name!r}"), severity=WARNING)
            return
        yield Finding(
            of.key(_REASONING),
            f"reasoning-parser is {name!r}",
            f"{of.shown_version} has no such parser",
            advice=_lacking(name, known),
            severity=ERROR if of.exact else WARNING,
        )


@rule("parsers.tool-misfit", WARNING, source="the model's chat template; vLLM's tool calling page")
def tool_misfit(of: Deployment) -> Iterator[Finding]:
    """A tool parser that does not fit the model's template: calls arrive as text."""
    name = of.given(_TOOL)
    fits = of.model.tool_parsers if of.model else []
    if not fits and (usual := _foreign(of, name, _MAKERS, "tool")):
        said = f"models of its maker or name write calls for {' or '.join(usual)}; others leave text"
        yield Finding(of.key(_TOOL), f"tool-call-parser is {name!r}", said)
    if isinstance(name, str) and fits and name not in fits and name in parsers("tool", of.version):
        usable = [one for one in fits if one in parsers("tool", of.version)]
        yield Finding(
            of.key(_TOOL),
            f"tool-call-parser is {name!r}",
            f"{of.model.title if of.model else ''} writes calls for {' or '.join(fits)}; others leave text",
            put(of.key(_TOOL), usable[0]) if usable else None,
        )


@rule("parsers.reasoning-misfit", WARNING, source="the model's chat template; vLLM's reasoning page")
def reasoning_misfit(of: Deployment) -> Iterator[Finding]:
    """A reasoning parser that does not fit the model."""
    name = of.given(_REASONING)
    fits = of.model.reasoning_parser if of.model else None
    if not fits and (usual := _foreign(of, name, _THINKERS, "reasoning")):
        said = f"the thinking of models of its maker or name is read by {' or '.join(usual)}"
        yield Finding(of.key(_REASONING), f"reasoning-parser is {name!r}", said)
    if isinstance(name, str) and fits and name != fits and name in parsers("reasoning", of.version):
        fix = put(of.key(_REASONING), fits) if fits in parsers("reasoning", of.version) else None
        title = of.model.title if of.model else ""
        yield Finding(
            of.key(_REASONING), f"reasoning-parser is {name!r}", f"{title}'s thinking is read by {fits}", fix
        )


@rule("parsers.auto-without-parser", ERROR, source="vllm/entrypoints/openai/cli_args.py")
def auto_without_parser(of: Deployment) -> Iterator[Finding]:
    """Automatic tool choice without a parser: vLLM refuses to start."""
    if of.on(_AUTO) and not of.has(_TOOL):
        fits = of.model.tool_parsers if of.model else []
        fix = put("server.args.tool-call-parser", fits[0]) if fits else drop(of.key(_AUTO))
        yield Finding(
            of.key(_AUTO), f"{_AUTO} without tool-call-parser", "vLLM refuses one without the other", fix
        )


@rule("parsers.parser-without-auto", WARNING, source="vllm/entrypoints/openai/cli_args.py")
def parser_without_auto(of: Deployment) -> Iterator[Finding]:
    """A tool parser that is never used: tool_choice auto answers 400."""
    if of.has(_TOOL) and not of.on(_AUTO):
        yield Finding(
            of.key(_TOOL),
            f"tool-call-parser without {_AUTO}",
            'requests with tools and tool_choice "auto" are refused with 400',
            put(f"server.args.{_AUTO}", value=True),
        )


@rule("parsers.tools-expected", WARNING, source="[expect] of the profile")
def tools_expected(of: Deployment) -> Iterator[Finding]:
    """Clients need tool calls and the server does not offer them."""
    if "tools" in of.profile.expect.capabilities and not of.on(_AUTO) and not of.has("config"):
        yield Finding(
            "expect.capabilities",
            f'"tools" is expected, {_AUTO} is not set',
            'tool_choice "auto", the default with tools, is refused with 400',
            put(f"server.args.{_AUTO}", value=True),
        )


@rule("parsers.reasoning-expected", WARNING, versions=">=0.7.3", source="[expect] of the profile")
def reasoning_expected(of: Deployment) -> Iterator[Finding]:
    """Clients need the reasoning apart and no parser takes it out."""
    if "reasoning" in of.profile.expect.capabilities and not of.has(_REASONING) and not of.has("config"):
        fits = of.model.reasoning_parser if of.model else None
        yield Finding(
            "expect.capabilities",
            '"reasoning" is expected, reasoning-parser is not set',
            "thinking stays inside the content",
            put("server.args.reasoning-parser", fits) if fits else None,
        )


@rule("parsers.thinking-unparsed", WARNING, versions=">=0.7.3", source="the model's chat template")
def thinking_unparsed(of: Deployment) -> Iterator[Finding]:
    """The model thinks by default and no parser takes the thinking out of the content."""
    if not of.model or of.model.thinking != "on" or of.has(_REASONING) or of.simulated:
        return
    kwargs = of.given("default-chat-template-kwargs")
    if isinstance(kwargs, dict) and kwargs.get("enable_thinking") is False:
        return
    fits = of.model.reasoning_parser
    usable = fits and fits in parsers("reasoning", of.version)
    yield Finding(
        "server.args.reasoning-parser",
        f"{of.model.title} reasons by default, reasoning-parser is not set",
        "clients get <think>…</think> as part of the answer",
        put("server.args.reasoning-parser", fits) if usable else None,
    )


@rule("parsers.thinking-budget", WARNING, source="guide: thinking burns the token budget")
def thinking_budget(of: Deployment) -> Iterator[Finding]:
    """A thinking model with few tokens for its answer: content comes back empty, finish_reason length."""
    if not of.model or of.model.thinking != "on" or of.simulated:
        return
    kwargs = of.given("default-chat-template-kwargs")
    if isinstance(kwargs, dict) and kwargs.get("enable_thinking") is False:
        return
    override = of.given("override-generation-config")
    limit = override.get("max_new_tokens") if isinstance(override, dict) else None
    if isinstance(limit, int) and limit < 2048:
        yield Finding(
            of.key("override-generation-config"),
            f"answers end after {limit:,} tokens and {of.model.title} thinks first",
            "thinking alone takes hundreds to thousands; content is null then, finish_reason length",
            advice="allow 4,096 or more, or send chat_template_kwargs enable_thinking = false",
        )
    length = of.max_model_len
    if length is not None and length < 4096:
        yield Finding(
            of.key("max-model-len"),
            f"{length:,} tokens of context and {of.model.title} thinks first",
            "prompt, thinking and answer share them; content is null when thinking fills the rest",
            put(of.key("max-model-len"), 8192) if of.model.context >= 8192 else None,
        )


@rule("parsers.reasoning-without-parser", ERROR, versions=">=0.7.3,<0.9", source="cli_args.py")
def reasoning_without_parser(of: Deployment) -> Iterator[Finding]:
    """Reasoning is switched on without a parser, which these versions refuse."""
    if of.on("enable-reasoning") and not of.has(_REASONING):
        key = of.key("enable-reasoning")
        yield Finding(key, "enable-reasoning without reasoning-parser", "vLLM refuses it", drop(key))


@rule("parsers.reasoning-with-tools", ERROR, versions=">=0.7.3,<0.8.1", source="cli_args.py")
def reasoning_with_tools(of: Deployment) -> Iterator[Finding]:
    """Reasoning and automatic tool choice together, which the first versions refuse."""
    if of.on("enable-reasoning") and of.on(_AUTO):
        key = of.key(_AUTO)
        yield Finding(
            key, "enable-reasoning with automatic tool choice", "vLLM refuses both together", drop(key)
        )
