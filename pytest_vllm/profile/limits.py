"""`[limits]`: floors and ceilings of a deployment, and how far it may fall behind its baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from pytest_vllm.profile import units
from pytest_vllm.profile.table import Part, faults, hyphens
from pytest_vllm.profile.words import unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _either(unit: Callable[[object], float]) -> BeforeValidator:
    """A value of this unit, or a share of a ceiling."""

    def read(value: object) -> float | units.Share:
        relative = units.share(value)
        return unit(value) if relative is None else relative

    return BeforeValidator(read)


def _shown(*examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": ["number", "string"], "examples": list(examples)})


def _checked_load(text: str) -> str:
    units.load(text)
    return text


Speed = Annotated[float | units.Share, _either(units.tokens_per_second), _shown("6 tok/s", "40 % of ceiling")]
Duration = Annotated[float, BeforeValidator(units.seconds), _shown("15m", "900ms", "2h30m")]
Size = Annotated[float | units.Share, _either(units.in_bytes), _shown("16GiB", "40 GB", "80 % of ceiling")]
Count = Annotated[float | units.Share, _either(units.count), _shown("80 % of ceiling")]
Fraction = Annotated[float, BeforeValidator(units.fraction), _shown("5 %")]
At = Annotated[str, AfterValidator(_checked_load)]


class Bound(Part):
    """A floor or a ceiling in base units (seconds, bytes, tokens, tokens/s, fractions)."""

    min: float | units.Share | None = None
    """Not below this."""
    max: float | units.Share | None = None
    """Not above this."""
    at: At | None = None
    """The load it holds at: `64 streams`, `2k prompt`, `8 streams, 2k prompt, 128 output`."""

    @property
    def load(self) -> units.Load:
        """The load it holds at; one stream unless told otherwise."""
        return units.load(self.at) if self.at else units.Load()


class SpeedBound(Bound):
    """A bound in tokens per second, or in a share of the ceiling."""

    min: Speed | None = None
    max: Speed | None = None


class DurationBound(Bound):
    """A bound in seconds."""

    min: Duration | None = None
    max: Duration | None = None


class SizeBound(Bound):
    """A bound in bytes, or in a share of the ceiling."""

    min: Size | None = None
    max: Size | None = None


class CountBound(Bound):
    """A bound in tokens, or in a share of the ceiling."""

    min: Count | None = None
    max: Count | None = None


class FractionBound(Bound):
    """A bound between 0 and 1."""

    min: Fraction | None = None
    max: Fraction | None = None


class Limits(Part):
    """`[limits]`: what this deployment must reach on this hardware."""

    decode_tok_s: SpeedBound | None = None
    """Generated tokens per second of one stream, the prompt not counted."""
    aggregate_tok_s: SpeedBound | None = None
    """Generated tokens per second over all streams."""
    prefill_tok_s: SpeedBound | None = None
    """Prompt tokens per second."""
    ttft: DurationBound | None = None
    """Time to the first token, nothing cached."""
    ttft_cached: DurationBound | None = None
    """Time to the first token when the prompt's beginning is in the prefix cache."""
    tpot: DurationBound | None = None
    """Time per output token after the first."""
    prefix_hit_rate: FractionBound | None = None
    """Share of repeated prompt tokens that come out of the prefix cache."""
    acceptance_rate: FractionBound | None = None
    """Share of drafted tokens that speculative decoding accepts."""
    kv_cache_tokens: CountBound | None = None
    """Tokens that the KV cache holds."""
    kv_cache: SizeBound | None = None
    """Memory of the KV cache."""
    gpu_memory: SizeBound | None = None
    """Memory that the server takes on the GPU."""
    startup: DurationBound | None = None
    """From start to ready."""
    first_request: DurationBound | None = None
    """The whole of a short chat, the first that the server is sent once it is ready."""
    regression: dict[str, Fraction] = Field(default_factory=dict)
    """How much worse than the baseline each of these may get: `{ decode-tok-s = "5 %" }`."""

    def bounds(self) -> Iterator[tuple[str, Bound]]:
        """Every limit that is set, by its name in TOML."""
        for field in LIMITS:
            bound = getattr(self, field.replace("-", "_"))
            if bound is not None:
                yield field, bound

    def get(self, name: str) -> Bound | None:
        """The limit of this name, None when it is not set."""
        return dict(self.bounds()).get(name)

    @model_validator(mode="after")
    def _consistent(self) -> Limits:
        found: list[tuple[tuple[str, ...], str]] = [
            ((name,), f"[limits] {name} {wrong}") for name, bound in self.bounds() if (wrong := _fault(bound))
        ]
        for name in self.regression:
            if name not in COMPARED:
                wrong = unknown("limit", name, COMPARED, "[limits.regression]")
                found.append((("regression", name), wrong))
        if found:
            raise faults(found)
        return self


#: Limits that can be compared with a baseline: speeds that a load measures.
COMPARED = ("decode-tok-s", "aggregate-tok-s", "prefill-tok-s", "ttft", "ttft-cached", "tpot")
LIMITS = tuple(hyphens(name) for name in Limits.model_fields if name != "regression")


def _fault(bound: Bound) -> str:
    low, high = bound.min, bound.max
    if low is None and high is None:
        return "sets nothing: write min, max or both"
    if isinstance(low, float) and isinstance(high, float) and low > high:
        return "has a min above its max"
    return ""
