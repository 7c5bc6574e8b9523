"""Another tool or reasoning parser than the profile's, checked against what its version of vLLM has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pytest_vllm.facts import parsers
from pytest_vllm.profile.words import unknown

if TYPE_CHECKING:
    from pytest_vllm.profile.model import Profile

#: Serves without a reasoning parser.
NONE = "none"


def with_parsers(profile: Profile, tool: str | None, reasoning: str | None) -> Profile:
    """The profile, served with these parsers; None keeps its own. Raises ValueError for an unknown name."""
    if tool is None and reasoning is None:
        return profile
    if not profile.server.kind.starts:
        raise ValueError(f"{profile.name} runs already: its parsers were chosen when it was started")
    args: dict[str, Any] = dict(profile.server.args)
    if tool is not None:
        args |= {"tool-call-parser": _known("tool", tool, profile), "enable-auto-tool-choice": True}
    expect = profile.expect
    if reasoning == NONE:
        args.pop("reasoning-parser", None)
        expected = [one for one in expect.capabilities if one != "reasoning"]
        expect = expect.model_copy(update={"capabilities": expected})
    elif reasoning is not None:
        args["reasoning-parser"] = _known("reasoning", reasoning, profile)
    server = profile.server.model_copy(update={"args": args})
    changes: dict[str, Any] = {"server": server, "expect": expect}
    if server.scripted:
        changes |= {"model": None}  # what is scripted fits any parser, whatever its model's file says
        changes |= {"waive": []} if args != profile.server.args else {}  # faults of other parsers
    return profile.model_copy(update=changes)


def _known(kind: Literal["tool", "reasoning"], name: str, profile: Profile) -> str:
    version = profile.server.vllm_version or profile.expect.version or ""
    known = parsers(kind, version)
    if name not in known and "tool-parser-plugin" not in profile.server.args:
        raise ValueError(unknown(f"{kind} parser", name, known, f"vLLM {version}" if version else "vLLM"))
    return name
