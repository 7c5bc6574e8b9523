"""Flags against the version: gone, too new, deprecated, badly spelled, badly valued."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pytest_vllm.facts import canonical, flag_status, flags
from pytest_vllm.preflight.deployment import number
from pytest_vllm.preflight.rule import ERROR, NOTE, WARNING, Finding, Fix, drop, put, rule
from pytest_vllm.profile.flags import not_known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.facts import FlagStatus
    from pytest_vllm.preflight.deployment import Deployment

_ONE_FLAG = re.compile(r"--([a-z0-9-]+)")
#: Characters of vLLM's own words: a list of choices can be long.
REFUSAL = 300
#: Gone flags whose removal changes nothing, because the behaviour is there without them.
_NEEDLESS = {"disable-log-requests", "enable-reasoning", "use-v2-block-manager", "swap-space", "device"}
#: Flags that are accepted and do nothing: from, until.
_IDLE = {"swap-space": ("0.11.0", "0.18.0", "V1 does not swap; --kv-offloading-size does")}
_DECIMAL = re.compile(r"\d+\.\d+[KMGT]")
_HUMAN = {"max-model-len", "max-num-batched-tokens", "kv-cache-memory-bytes"}


def _statuses(of: Deployment, *states: str) -> Iterator[tuple[str, FlagStatus]]:
    for written in of.profile.server.args:
        status = flag_status(written, of.version)
        if status.state in states:
            yield written, status


def _fix(of: Deployment, written: str, status: FlagStatus) -> Fix | None:
    key = f"server.args.{written}"
    if status.flag in _NEEDLESS:
        return drop(key)
    instead = _ONE_FLAG.fullmatch(status.replaced_by)
    if instead and flag_status(instead[1], of.version).accepted and not of.has(instead[1]):
        return Fix(key, "rename", to=instead[1])
    return None


@rule("flags.unknown", WARNING, source="argument parsers of 45 releases")
def unknown(of: Deployment) -> Iterator[Finding]:
    """A flag that no release had which pytest-vllm knows: a fork's, a nightly's, a newer release's."""
    for written, status in _statuses(of, "unknown"):
        hint = f"did you mean {status.similar[0]}?" if status.similar else ""
        yield Finding(f"server.args.{written}", not_known(f"--{written}"), advice=hint)


@rule("flags.asked", ERROR, source="the argument parser of the deployment's own vLLM")
def asked(of: Deployment) -> Iterator[Finding]:
    """The deployment's own vLLM refuses its arguments; exact also for forks and releases unknown here."""
    if of.reply is not None and of.reply.refused:
        said = " ".join(of.reply.refused.split())
        shown = said if len(said) <= REFUSAL else f"{said[:REFUSAL]}…"
        yield Finding("server.args", f"{of.reply.whom} refuses the arguments", shown)


@rule("flags.removed", ERROR, source="argument parsers of 45 releases")
def removed(of: Deployment) -> Iterator[Finding]:
    """A flag that this version no longer takes: vLLM exits with `unrecognized arguments`."""
    for written, status in _statuses(of, "removed"):
        back = f", until {status.returns}" if status.returns else ""
        instead = f"write {status.replaced_by}" if status.replaced_by else f"remove {written}"
        yield Finding(
            f"server.args.{written}",
            f"--{written} was removed in vLLM {status.removed}{back}",
            f"{of.shown_version} exits with 'unrecognized arguments'",
            _fix(of, written, status),
            advice=instead,
            severity=ERROR if of.version_known else WARNING,
        )


@rule("flags.not-yet", ERROR, source="argument parsers of 45 releases")
def not_yet(of: Deployment) -> Iterator[Finding]:
    """A flag that came with a later version: vLLM exits with `unrecognized arguments`."""
    for written, status in _statuses(of, "not-yet"):
        yield Finding(
            f"server.args.{written}",
            f"--{written} came with vLLM {status.added}",
            f"{of.shown_version} exits with 'unrecognized arguments'",
            drop(f"server.args.{written}"),
            severity=ERROR if of.exact else WARNING,
        )


@rule("flags.deprecated", WARNING, source="argument parsers of 45 releases")
def deprecated(of: Deployment) -> Iterator[Finding]:
    """A flag that goes away soon."""
    for written, status in _statuses(of, "deprecated"):
        until = f"it goes in {status.removal_announced_for}" if status.removal_announced_for else ""
        if not until and status.removed:
            until = f"it is gone in {status.removed}"
        if not of.exact and status.note.startswith("unknown flag in "):
            until = f"{status.note}; where it is unknown vLLM exits"
        yield Finding(
            f"server.args.{written}",
            f"--{written} is deprecated since vLLM {status.deprecated_since}",
            until or "a later version will refuse it",
            _fix(of, written, status),
            advice=f"write {status.replaced_by}" if status.replaced_by else "",
        )


@rule("flags.choice", ERROR, source="choices of the argument parser")
def choice(of: Deployment) -> Iterator[Finding]:
    """A value that is none of the flag's choices in this version."""
    for written, value in of.profile.server.args.items():
        known = flags(of.version).get(canonical(written))
        choices = [str(one) for one in known.choices] if known else []
        if (
            not choices
            or any(one.startswith("@") for one in choices)
            or isinstance(value, bool | dict | list)
        ):
            continue
        if str(value) not in choices and not of.profile.server.facts_hold:
            yield Finding(f"server.args.{written}", not_known(f"{written} {value!r}"), severity=WARNING)
        elif str(value) not in choices:
            yield Finding(
                f"server.args.{written}",
                f"{written} is {value!r}",
                f"{of.shown_version} takes {', '.join(choices)}",
                severity=ERROR if of.exact else WARNING,
            )


@rule("flags.number", ERROR, source="argument parser")
def not_a_number(of: Deployment) -> Iterator[Finding]:
    """Text where the flag needs a number."""
    for written, value in of.profile.server.args.items():
        known = flags(of.version).get(canonical(written))
        if known and known.type in ("int", "float") and isinstance(value, str) and value != "auto":
            plain = number(value)
            scaled = canonical(written) in _HUMAN or known.type == "float"
            if plain is None or (not re.sub(r"[._]", "", value).isdigit() and not scaled):
                yield Finding(
                    f"server.args.{written}",
                    f"{written} is {value!r}",
                    "vLLM's argument parser needs a number",
                    put(f"server.args.{written}", int(plain)) if plain and plain == int(plain) else None,
                )


@rule("flags.json", ERROR, source="json.loads and pydantic in the argument parser")
def not_json(of: Deployment) -> Iterator[Finding]:
    """Text that begins like JSON, is none, and stands where the flag needs some."""
    for written, value in of.profile.server.args.items():
        known = flags(of.version).get(canonical(written))
        if (
            known
            and known.type.startswith("json")
            and isinstance(value, str)
            and value.startswith(("{", "["))
        ):
            try:
                json.loads(value)
            except ValueError as error:
                said = f"{written} is not JSON: {error}"
                yield Finding(f"server.args.{written}", said, "vLLM's argument parser refuses it")


@rule("flags.positive", ERROR, source="vllm/config: counts are positive")
def positive(of: Deployment) -> Iterator[Finding]:
    """A count that is below one."""
    for flag in ("tensor-parallel-size", "pipeline-parallel-size", "max-num-seqs", "block-size", "max-loras"):
        value = of.number(flag) if of.has(flag) else None
        if value is not None and value < 1:
            yield Finding(of.key(flag), f"{flag} is {value:g}", "vLLM takes 1 and more", drop(of.key(flag)))


@rule("flags.decimal-suffix", ERROR, versions=">=0.8.5", source="human_readable_int in vllm")
def decimal_suffix(of: Deployment) -> Iterator[Finding]:
    """A decimal before a binary suffix, which vLLM refuses: only k, m and g take decimals."""
    for written, value in of.profile.server.args.items():
        if canonical(written) in _HUMAN and isinstance(value, str) and _DECIMAL.fullmatch(value):
            yield Finding(
                f"server.args.{written}",
                f"{written} is {value!r}",
                "decimals go with lower-case suffixes only (1.5k is 1,500)",
                put(f"server.args.{written}", int(number(value) or 0)),
            )


@rule("flags.idle", WARNING, source="vllm/config/cache.py")
def idle(of: Deployment) -> Iterator[Finding]:
    """A flag that this version takes and ignores."""
    for flag, (since, until, why) in _IDLE.items():
        if of.has(flag) and of.at_least(since) and not of.at_least(until):
            key = of.key(flag)
            yield Finding(key, f"{flag} does nothing in {of.shown_version}", why, drop(key))


@rule("flags.twice", WARNING, source="argument parser")
def twice(of: Deployment) -> Iterator[Finding]:
    """One flag under two spellings: the last on the command line wins."""
    seen: dict[str, str] = {}
    for written in of.profile.server.args:
        name = canonical(written)
        if "." in written:
            continue
        if name in seen:
            key = f"server.args.{written}"
            yield Finding(key, f"{written} and {seen[name]} are one flag", "the last one wins", drop(key))
        seen.setdefault(name, written)


@rule("flags.negation", ERROR, source="argument parsers of 45 releases")
def negation(of: Deployment) -> Iterator[Finding]:
    """A switch set to false that has no `--no-` form in this version."""
    for written, value in of.profile.server.args.items():
        known = flags(of.version).get(canonical(written))
        if known and known.type == "bool" and not known.negatable and value is False:
            yield Finding(
                f"server.args.{written}",
                f"{written} = false becomes --no-{written}",
                f"{of.shown_version} has no such flag; leaving it out means the same",
                drop(f"server.args.{written}"),
            )


@rule("flags.model-twice", WARNING, source="vllm serve: model is a positional argument")
def model_twice(of: Deployment) -> Iterator[Finding]:
    """The model stands in [server.args] too."""
    if of.has("model") and of.profile.server.model:
        key = of.key("model")
        yield Finding(
            key,
            f"[server.args] model is {of.given('model')!r}, [server] model {of.profile.server.model!r}",
            "the second one counts; `vllm serve --model` is an error in 0.8.5 to 0.11.0",
            drop(key),
        )


@rule("flags.config-file", ERROR, source="FlexibleArgumentParser")
def config_file(of: Deployment) -> Iterator[Finding]:
    """A --config file that does not end in .yaml."""
    given = of.given("config")
    if isinstance(given, str) and not given.endswith((".yaml", ".yml")):
        yield Finding(of.key("config"), f"config is {given!r}", "vLLM reads .yaml and .yml files only")


@rule("flags.optional-without", ERROR, source="start-up checks of vllm/entrypoints/openai/cli_args.py")
def incomplete(of: Deployment) -> Iterator[Finding]:
    """A flag that vLLM refuses without another one."""
    pairs = (
        ("enable-log-outputs", "enable-log-requests", "0.11.0"),
        ("collect-detailed-traces", "otlp-traces-endpoint", "0.11.1"),
        ("mamba-block-size", "enable-prefix-caching", "0.11.1"),
        ("enable-eplb", "enable-expert-parallel", "0.10.0"),
    )
    for flag, other, since in pairs:
        missing = not of.has(other) or of.off(other)
        if flag == "mamba-block-size" and of.at_least("0.28.0") and not of.has(other):
            missing = False
        if of.has(flag) and not of.off(flag) and missing and of.at_least(since):
            needed = put(f"server.args.{other}", value=True) if flag != "collect-detailed-traces" else None
            yield Finding(
                of.key(flag),
                f"{flag} is set without {other}",
                f"{of.shown_version} refuses one without the other",
                needed,
            )


@rule("flags.exclusive", ERROR, source="start-up checks of vllm/config")
def exclusive(of: Deployment) -> Iterator[Finding]:
    """One setting given by a flag and inside a JSON flag."""
    pairs = (
        ("attention-backend", "attention-config", "backend", "0.13.0"),
        ("cudagraph-capture-sizes", "compilation-config", "cudagraph_capture_sizes", "0.11.1"),
        ("max-cudagraph-capture-size", "compilation-config", "max_cudagraph_capture_size", "0.11.1"),
        ("enable-flashinfer-autotune", "kernel-config", "enable_flashinfer_autotune", "0.16.0"),
        ("spec-method", "speculative-config", "method", "0.22.0"),
        ("spec-model", "speculative-config", "model", "0.22.0"),
        ("spec-tokens", "speculative-config", "num_speculative_tokens", "0.22.0"),
    )
    for flag, table, name, since in pairs:
        inside = of.given(table)
        if of.has(flag) and isinstance(inside, dict) and name in inside and of.at_least(since):
            yield Finding(
                of.key(flag),
                f"{flag} is given, and {name} inside {table}",
                "vLLM refuses both together",
                drop(of.key(flag)),
            )


@rule("flags.headless", ERROR, versions=">=0.9.2", source="vllm/entrypoints/cli/serve.py")
def headless(of: Deployment) -> Iterator[Finding]:
    """A headless node that is told to run API servers."""
    if of.on("headless") and of.whole("api-server-count") > 0 and of.has("api-server-count"):
        key = of.key("api-server-count")
        yield Finding(key, "headless with API servers", "vLLM refuses both together", drop(key))


@rule("flags.stats-off", ERROR, versions=">=0.25", source="vllm/entrypoints/openai/cli_args.py")
def stats_off(of: Deployment) -> Iterator[Finding]:
    """Per-request metrics with engine statistics switched off."""
    if of.on("enable-per-request-metrics") and of.on("disable-log-stats"):
        key = of.key("disable-log-stats")
        yield Finding(key, "enable-per-request-metrics without statistics", "vLLM refuses it", drop(key))


@rule("flags.metrics-off", WARNING, source="vllm/v1/metrics")
def metrics_off(of: Deployment) -> Iterator[Finding]:
    """Statistics are off, so /metrics says nothing of the engine."""
    if of.on("disable-log-stats"):
        key = of.key("disable-log-stats")
        yield Finding(key, "disable-log-stats is set", "/metrics has no vllm: family then", drop(key))


@rule("flags.config-hides", NOTE, source="FlexibleArgumentParser")
def config_hides(of: Deployment) -> Iterator[Finding]:
    """A --config file sets flags that these rules do not see."""
    if of.has("config"):
        yield Finding(of.key("config"), f"flags inside {of.given('config')} are not checked here")
