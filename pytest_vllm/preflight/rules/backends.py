"""Back ends that a flag names: structured outputs, attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.preflight.facts import names
from pytest_vllm.preflight.rule import ERROR, WARNING, Finding, put, rule
from pytest_vllm.profile.flags import not_known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment

_KEY = "structured-outputs-config"


def _config(of: Deployment) -> dict[str, Any]:
    given = of.given(_KEY)
    return {name.replace("-", "_"): value for name, value in given.items()} if isinstance(given, dict) else {}


@rule("backends.whitespace", ERROR, versions=">=0.11", source="StructuredOutputsConfig")
def whitespace(of: Deployment) -> Iterator[Finding]:
    """Whitespace is switched off for a back end that cannot."""
    config = _config(of)
    back_end = config.get("backend", "auto")
    if config.get("disable_any_whitespace") and back_end not in ("xgrammar", "guidance"):
        yield Finding(
            f"{of.key(_KEY)}.disable_any_whitespace",
            f"disable_any_whitespace with back end {back_end!r}",
            "vLLM takes it with xgrammar and guidance only",
            put(f"{of.key(_KEY)}.backend", "xgrammar"),
        )


@rule("backends.properties", ERROR, versions=">=0.11", source="StructuredOutputsConfig")
def properties(of: Deployment) -> Iterator[Finding]:
    """Additional properties are switched off for a back end that cannot."""
    config = _config(of)
    if config.get("disable_additional_properties") and config.get("backend", "auto") != "guidance":
        yield Finding(
            f"{of.key(_KEY)}.disable_additional_properties",
            f"disable_additional_properties with back end {config.get('backend', 'auto')!r}",
            "vLLM takes it with guidance only",
            put(f"{of.key(_KEY)}.backend", "guidance"),
        )


@rule("backends.attention", ERROR, versions=">=0.13", source="AttentionBackendEnum of each release")
def attention(of: Deployment) -> Iterator[Finding]:
    """An attention back end that this version does not have."""
    given, known = of.given("attention-backend"), names("attention", of.release)
    if isinstance(given, str) and given.upper() not in known and given.lower() != "auto" and "." not in given:
        if not of.profile.server.facts_hold:
            what = not_known(f"the attention back end {given!r}")
            yield Finding(of.key("attention-backend"), what, severity=WARNING)
            return
        yield Finding(
            of.key("attention-backend"),
            f"attention-backend is {given!r}",
            f"{of.shown_version} has no such back end",
            advice=", ".join(one for one in known if one in ("FLASH_ATTN", "FLASHINFER", "TRITON_ATTN")),
        )


@rule("backends.attention-variable", WARNING, versions="<0.15", source="AttentionBackendEnum of each release")
def attention_variable(of: Deployment) -> Iterator[Finding]:
    """VLLM_ATTENTION_BACKEND names a back end that this version does not have."""
    given, known = of.env("VLLM_ATTENTION_BACKEND"), names("attention", of.release)
    if given and given.upper() not in known and not of.profile.server.facts_hold:
        what = not_known(f"the attention back end {given!r}")
        yield Finding("server.env.VLLM_ATTENTION_BACKEND", what)
    elif given and given.upper() not in known:
        yield Finding(
            "server.env.VLLM_ATTENTION_BACKEND",
            f"VLLM_ATTENTION_BACKEND is {given!r}",
            f"{of.shown_version} has no such back end",
        )
