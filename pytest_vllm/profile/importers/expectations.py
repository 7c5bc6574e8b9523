"""What a deployment's own arguments ask for, as `[expect]`: who sets a tool parser needs calls to be parsed.

Only what somebody wrote down on purpose counts. Defaults of vLLM are not expected, nor is what depends on the
model alone (pictures, log probabilities): a server without them is not wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Values of --task, --convert and --runner -> what clients of such a server need; None: nobody says which.
_POOLING: dict[str, str | None] = {
    "embed": "embeddings",
    "embedding": "embeddings",
    "classify": "classify",
    "score": "score",
    "reward": None,
    "pooling": None,
}
_OFF: tuple[Any, ...] = (None, False, "", "none", "None", "false", "False", [], {})


def expectations(server: Mapping[str, Any], args: Mapping[str, Any], env: Mapping[str, Any]) -> list[str]:
    """The capabilities that clients of this deployment need, in the order of a profile.

    Args:
        server: keys of `[server]`.
        args: vLLM's flags.
        env: variables of the server.
    """
    return list(dict.fromkeys(_asked(server, args, env)))


def _asked(server: Mapping[str, Any], args: Mapping[str, Any], env: Mapping[str, Any]) -> Iterator[str]:
    kinds = [str(args[name]) for name in ("task", "convert", "runner") if args.get(name) not in _OFF]
    pooling = [kind for kind in kinds if kind in _POOLING]
    if pooling:
        yield from (named for kind in pooling if (named := _POOLING[kind]))
    elif "transcription" in kinds:
        yield "transcription"
    else:
        yield from _generating(args)
    if server.get("api-key") or args.get("api-key") not in _OFF:
        yield "auth"
    if _on(args, "enable-sleep-mode") and str(env.get("VLLM_SERVER_DEV_MODE")) == "1":
        yield "sleep"


def _generating(args: Mapping[str, Any]) -> Iterator[str]:
    calls = _on(args, "enable-auto-tool-choice") and args.get("tool-call-parser") not in _OFF
    reasons = args.get("reasoning-parser") not in _OFF
    if calls or reasons or args.get("chat-template") not in _OFF:
        yield "chat"
    if calls:
        yield "tools"
    if reasons:
        yield "reasoning"
    if _on(args, "enable-prompt-tokens-details"):
        yield "cached-tokens"
    if _on(args, "enable-lora"):
        yield "lora"


def _on(args: Mapping[str, Any], name: str) -> bool:
    return args.get(name) not in _OFF and not args.get(f"no-{name}")
