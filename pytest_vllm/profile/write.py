"""A profile as TOML, in the units that people write; reading it gives the same profile."""

from __future__ import annotations

import datetime as dt
import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.profile.limits import DurationBound, SizeBound
from pytest_vllm.profile.units import Share, duration_text, size_text

if TYPE_CHECKING:
    from pytest_vllm.profile.derived import Figures
    from pytest_vllm.profile.limits import Bound
    from pytest_vllm.profile.model import Profile

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 100


def to_toml(profile: Profile, figures: Figures | None = None) -> str:
    """The profile as a file, with the derived figures as comments at its end."""
    raw = profile.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for name in ("name", "source"):
        raw.pop(name, None)
    raw["server"] = {"launcher": profile.server.launcher, **raw.get("server", {})}
    for name, part in (("boot", profile.boot), ("record", profile.record)):
        raw[name] = {key: duration_text(value) for key, value in part.model_dump(by_alias=True).items()}
    raw["limits"] = {name: _bound(bound) for name, bound in profile.limits.bounds()}
    raw["limits"] |= {"regression": {k: f"{v * 100:g} %" for k, v in profile.limits.regression.items()}}
    waived = [one.model_dump(by_alias=True, exclude_none=True) for one in profile.waive]
    raw |= {"waive": waived} if waived else {}
    proxy = profile.deployment.proxy
    if proxy is not None and proxy.read_timeout is not None:
        raw["deployment"]["proxy"]["read-timeout"] = duration_text(proxy.read_timeout)
    return "\n".join(_document(raw) + _comments(figures)) + "\n"


def _bound(bound: Bound) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for key in ("min", "max"):
        value = getattr(bound, key)
        if isinstance(value, Share):
            shown[key] = str(value)
        elif value is not None and isinstance(bound, DurationBound):
            shown[key] = duration_text(value)
        elif value is not None:
            shown[key] = _exact_size(value) if isinstance(bound, SizeBound) else _plain(value)
    return {**shown, "at": bound.at} if bound.at else shown


def _exact_size(value: float) -> str | int:
    text = size_text(value)
    whole = text.split()[0].isdigit() and value % 1024**2 == 0
    return text.replace(" ", "") if whole else int(value)


def _plain(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _document(raw: dict[str, Any]) -> list[str]:
    lines = [f"{_key(key)} = {_value(value)}" for key, value in raw.items() if not _table(value)]
    for key, value in raw.items():
        if _table(value):
            lines += _tables(key, value)
    return lines


def _table(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(item, dict) for item in value)
    )


def _tables(name: str, value: Any) -> list[str]:
    if isinstance(value, list):
        return [line for item in value for line in ("", f"[[{name}]]", *_pairs(item))]
    inner = {key: item for key, item in value.items() if _spread(name, key, item)}
    flat = {key: item for key, item in value.items() if key not in inner and item not in ({}, None)}
    lines = ["", f"[{name}]", *_pairs(flat)] if flat else []
    for key, item in inner.items():
        lines += _tables(f"{name}.{_key(key)}", item) if item else []
    return lines


def _spread(name: str, key: str, item: Any) -> bool:
    """Whether a table gets a header of its own rather than braces."""
    return isinstance(item, dict) and f"{name}.{key}" in {
        "server.args",
        "server.env",
        "limits.regression",
        "deployment.proxy",
        "deployment.service",
    }


def _pairs(table: dict[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        flat = "[" + ", ".join(map(_value, value)) + "]"
        return (
            flat if len(flat) <= _WIDTH else "[\n" + "".join(f"  {_value(item)},\n" for item in value) + "]"
        )
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comments(figures: Figures | None) -> list[str]:
    if figures is None:
        return []
    return ["", *(f"# {line}" for line in figure_lines(figures))]


def figure_lines(figures: Figures) -> list[str]:
    """The derived figures in words, one line each."""
    tokens, seqs = figures.kv_cache_tokens, figures.batch(figures.max_num_seqs)
    contexts = figures.full_contexts
    fit = f", {contexts:.1f} sequences of {figures.args['max-model-len']:,}" if contexts is not None else ""
    upper = " at most: the model is hybrid" if figures.model.hybrid else " at most"
    each = f"on each of {figures.devices} devices" if figures.devices > 1 else "on one device"
    shares = [
        f"{name:<15} at least {figures.floor(name, bound):,.1f}, which is {bound.min}"
        for name, bound in figures.profile.limits.bounds()
        if isinstance(bound.min, Share)
    ]
    return [
        f"derived from {figures.hardware.title} and {figures.model.title}:",
        f"weights         {size_text(figures.weight_bytes)} {each}",
        f"KV cache        {figures.kv_bytes_per_token:,} bytes per token",
        f"                {size_text(figures.kv_cache_bytes)} left, {tokens:,} tokens{fit}{upper}",
        f"decode ceiling  {figures.decode_ceiling():.1f} tok/s with 1 stream",
        f"                {figures.aggregate_ceiling(seqs):,.0f} tok/s with {seqs} streams of 1,024 tokens",
        f"prefill ceiling {figures.prefill_ceiling():,.0f} tok/s",
        *shares,
    ]
