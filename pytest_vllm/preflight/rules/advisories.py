"""Published weaknesses of the version."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts.version import Version
from pytest_vllm.preflight.facts import Advisory, advisories, table
from pytest_vllm.preflight.rule import NOTE, WARNING, Finding, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment


#: The condition of advisories about images, sound and films: models of text alone have none of them.
MEDIA = "media"


def _connector(of: Deployment) -> str:
    config = of.given("kv-transfer-config")
    return str(config.get("kv_connector", "")) if isinstance(config, dict) else ""


def _structured(of: Deployment) -> str:
    config: Any = of.given("structured-outputs-config")
    inside = config.get("backend", "") if isinstance(config, dict) else ""
    return str(of.given("guided-decoding-backend") or inside)


def present(of: Deployment, condition: str) -> str:
    """What of the deployment meets a condition of an advisory, for people; empty when nothing does."""
    kind, _, value = condition.partition(":")
    architecture = of.model.architecture if of.model else ""
    met = {
        "flag": of.has(value) and not of.off(value),
        "env": of.env(value) not in (None, "", "0"),
        "api-key": of.key_required,
        "prefix-caching": of.on("enable-prefix-caching"),
        "tool-parser": of.given("tool-call-parser") == value,
        "architecture": bool(value) and architecture.startswith(value),
        "connector": bool(_connector(of)) and value.lower() in _connector(of).lower(),
        "structured-backend": bool(value) and value in _structured(of),
        "speculation": bool(of.speculation),
        "speculation-method": of.speculation.get("method") == value,
        "pipeline": of.whole("pipeline-parallel-size", 1) > 1 and not of.off("async-scheduling"),
        "multi-node": of.whole("nnodes", 1) > 1 or of.given("distributed-executor-backend") == "ray",
        "gguf": of.quantization.startswith("gguf") or of.profile.server.model.endswith(".gguf"),
    }
    return (value or kind) if met.get(kind, False) else ""


def _applying(of: Deployment) -> list[tuple[Advisory, str]]:
    found = []
    for one in advisories(of.release):
        if MEDIA in one.when:
            continue
        why = next((met for condition in one.when if (met := present(of, condition))), "")
        if why:
            found.append((one, why))
    return found


def _until(found: list[Advisory]) -> str:
    fixed = [Version(one.fixed) for one in found if one.fixed]
    return f"vLLM {max(fixed)} or newer" if fixed else ""


@rule("advisories.applies", WARNING, source="GitHub advisories and CVE records of vLLM")
def applies(of: Deployment) -> Iterator[Finding]:
    """Known weaknesses of this version in something that the profile uses."""
    if not of.version_known or of.simulated:
        return
    reasons: dict[str, list[Advisory]] = {}
    for one, why in _applying(of):
        reasons.setdefault(why, []).append(one)
    for why, found in reasons.items():
        named = ", ".join(f"{one.name} ({one.severity}: {one.effect})" for one in found[:3])
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        yield Finding(
            of.key(why) if of.has(why) else "server.version",
            f"vLLM {of.version} with {why}",
            f"{named}{more}",
            advice=_until(found),
            severity=NOTE if all(one.severity in ("low", "medium") for one in found) else WARNING,
        )


@rule("advisories.version", WARNING, source="GitHub advisories and CVE records of vLLM")
def version(of: Deployment) -> Iterator[Finding]:
    """Known weaknesses of this version, whatever the profile uses."""
    if not of.version_known or of.simulated:
        return
    text = of.model is not None and of.model.architecture.endswith("ForCausalLM")
    found = [one for one in advisories(of.release) if not one.when or (MEDIA in one.when and not text)]
    if not found:
        return
    counts = Counter(one.severity for one in found)
    shown = ", ".join(f"{counts[one]} {one}" for one in ("critical", "high", "medium", "low") if counts[one])
    worst = ", ".join(f"{one.name} ({one.effect})" for one in found[:2])
    written = table("advisories")["written"]
    vendor = "+" in of.version
    grave = counts["critical"] + counts["high"] > 0 and not vendor
    yield Finding(
        "server.version",
        f"vLLM {of.version} has {len(found)} known weaknesses as of {written} ({shown})",
        f"the worst: {worst}" + ("; the vendor may have mended some" if vendor else ""),
        advice=_until(found),
        severity=WARNING if grave and of.profile.server.launcher != "attach" else NOTE,
    )
