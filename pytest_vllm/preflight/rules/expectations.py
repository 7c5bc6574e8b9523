"""What clients expect against what version and flags can give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.facts import routes, version_of, versions
from pytest_vllm.preflight.rule import NOTE, WARNING, Finding, drop, put, rule
from pytest_vllm.profile.units import Share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment

_ROUTES = {
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "embeddings": "/v1/embeddings",
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "tokenize": "/tokenize",
}


def _expects(of: Deployment, name: str) -> bool:
    return name in of.profile.expect.capabilities


@rule("expectations.route", WARNING, source="routes of each release")
def route(of: Deployment) -> Iterator[Finding]:
    """A capability whose route this version does not have."""
    for name, path in _ROUTES.items():
        if _expects(of, name) and path not in routes(of.version) and of.version_known:
            since = next((one for one in versions() if path in routes(one)), "")
            yield Finding(
                "expect.capabilities",
                f'"{name}" is expected, {of.shown_version} has no {path}',
                f"it came with vLLM {since}" if since else "",
            )


@rule("expectations.prefix-cache", WARNING, source="default of prefix caching by version and model")
def prefix_cache(of: Deployment) -> Iterator[Finding]:
    """Prefix caching is expected and off."""
    if not _expects(of, "prefix-cache") or of.on("enable-prefix-caching") or of.has("config"):
        return
    flag = "enable-prefix-caching"
    hybrid = of.model is not None and of.model.hybrid and not of.at_least("0.28.0")
    if of.off(flag):
        why = "it is switched off"
    elif not of.at_least("0.8.0"):
        why = f"{of.shown_version} has it off unless asked"
    elif hybrid:
        why = f"{of.shown_version} has it off on hybrid models"
    else:
        return
    yield Finding("expect.capabilities", '"prefix-cache" is expected', why, put(of.key(flag), value=True))


@rule("expectations.cached-tokens", WARNING, source="vllm/entrypoints/openai/cli_args.py")
def cached_tokens(of: Deployment) -> Iterator[Finding]:
    """Cached tokens are expected in the usage and not reported."""
    flag = "enable-prompt-tokens-details"
    if _expects(of, "cached-tokens") and not of.on(flag) and not of.has("config"):
        yield Finding(
            "expect.capabilities",
            f'"cached-tokens" is expected, {flag} is not set',
            "usage carries no prompt_tokens_details",
            put(f"server.args.{flag}", value=True),
        )


@rule("expectations.sleep", WARNING, source="vLLM's sleep mode page")
def sleep(of: Deployment) -> Iterator[Finding]:
    """Sleep mode is expected and not switched on, or its routes are not there."""
    if not _expects(of, "sleep"):
        return
    if not of.on("enable-sleep-mode"):
        key = "server.args.enable-sleep-mode"
        yield Finding(
            "expect.capabilities",
            '"sleep" is expected, enable-sleep-mode is not set',
            "",
            put(key, value=True),
        )
    elif not of.env_on("VLLM_SERVER_DEV_MODE"):
        yield Finding(
            "expect.capabilities",
            '"sleep" is expected',
            "/sleep needs VLLM_SERVER_DEV_MODE=1, which opens more",
        )


@rule("expectations.auth", WARNING, source="[expect] of the profile")
def auth(of: Deployment) -> Iterator[Finding]:
    """A key is expected and the server asks for none."""
    if _expects(of, "auth") and not of.key_required and of.profile.server.launcher != "attach":
        fix = put("server.api-key", {"from-env": "VLLM_API_KEY"})
        yield Finding(
            "expect.capabilities", '"auth" is expected, no key is set', "every request is answered", fix
        )


@rule("expectations.version", WARNING, source="profile")
def version(of: Deployment) -> Iterator[Finding]:
    """The version that is expected is not the one that is started."""
    wanted = of.profile.expect.version
    if wanted and of.version_known and version_of(wanted) != version_of(of.version):
        yield Finding(
            "expect.version",
            f"version {wanted} is expected, image or profile say {of.version}",
            "the check of the version will fail",
            put("expect.version", of.version),
        )


@rule("expectations.floor", WARNING, source="roofline: bytes per step over bandwidth")
def floor(of: Deployment) -> Iterator[Finding]:
    """A floor above what hardware and model allow."""
    figures = of.figures
    if figures is None or of.speculation or of.simulated or of.profile.deployment.replicas > 1:
        return
    for name, bound in of.profile.limits.bounds():
        low = bound.min
        if (
            low is None
            or isinstance(low, Share)
            or name not in ("decode-tok-s", "aggregate-tok-s", "kv-cache-tokens")
        ):
            continue
        ceiling = figures.ceiling(name, bound.load)
        if ceiling and low > ceiling * 1.02:
            yield Finding(
                f"limits.{name}",
                f"{name} must be {low:,.0f} at least, the ceiling is {ceiling:,.1f}",
                f"{figures.model.title} on {figures.hardware.title} cannot reach it without speculation",
            )


@rule("expectations.version-unknown", NOTE, source="profile")
def version_unknown(of: Deployment) -> Iterator[Finding]:
    """Nothing gives the version: rules take the newest one's facts."""
    if not of.version_known and of.profile.server.launcher not in ("attach", "sim"):
        yield Finding(
            "server.version",
            "nothing gives the version of vLLM",
            f"facts of {versions()[-1]} are applied as a guess, or it is not judged",
            advice=f'version = "…" in [server], such as "{versions()[-1]}"',
        )


@rule("expectations.version-newer", NOTE, source="facts of 45 releases")
def version_newer(of: Deployment) -> Iterator[Finding]:
    """The version is newer than the facts."""
    mine, last = version_of(of.version), version_of(versions()[-1])
    if mine and last and mine > last and not of.simulated:
        yield Finding(
            "server.version", f"vLLM {of.version} is newer than the facts, which end at {versions()[-1]}"
        )


@rule("expectations.cache-off", WARNING, versions=">=0.8", source="automatic prefix caching page")
def cache_off(of: Deployment) -> Iterator[Finding]:
    """Prefix caching is switched off where it costs nothing."""
    dense = of.model is not None and not of.model.hybrid
    if (
        of.off("enable-prefix-caching")
        and dense
        and not of.has("kv-transfer-config")
        and not _expects(of, "prefix-cache")
    ):
        key = of.key("enable-prefix-caching")
        yield Finding(
            key,
            "prefix caching is switched off",
            "every prompt is computed whole, also repeated ones",
            drop(key),
        )
