"""Sampling parameters of a request, and what vLLM refuses about them.

Two stages, as in vLLM: `Sampling.of` refuses with a status; `verify` runs when the engine takes the request,
so that a stream has already begun and the refusal becomes an event.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.errors import Invalid

if TYPE_CHECKING:
    from pytest_vllm.sim.settings import Settings

MAX_N = 16384
MAX_LOGPROB_IDS = 128
GREEDY = 1e-5
_DEFAULTS = {
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
}


@dataclass
class Sampling:
    """What the engine knows of a request's wishes; `logprobs` counts alternatives, None asks for none."""

    n: int
    max_tokens: int
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    presence_penalty: float
    frequency_penalty: float
    repetition_penalty: float
    seed: int | None
    stop: list[str]
    stop_token_ids: list[int]
    bad_words: list[str]
    include_stop: bool
    ignore_eos: bool
    min_tokens: int
    skip_specials: bool
    logprobs: int | None
    prompt_logprobs: int | None
    logprob_token_ids: list[int] | None
    logit_bias: dict[int, float] = field(default_factory=dict)
    allowed_token_ids: list[int] | None = None
    beams: bool = False
    repetition: dict[str, int] | None = None

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken."""
        return self.temperature < GREEDY or self.top_k == 1

    @classmethod
    def of(cls, body: dict[str, Any], max_tokens: int, logprobs: int | None, settings: Settings) -> Sampling:
        """Read a validated body. Raises Invalid."""
        chosen = {
            name: body[name] if body.get(name) is not None else settings.sampling_defaults.get(name, default)
            for name, default in _DEFAULTS.items()
        }
        stop = body.get("stop") or []
        ids = [*(body.get("stop_token_ids") or []), *(settings.sampling_defaults.get("stop_token_ids") or [])]
        sampling = cls(
            **chosen,
            n=1 if body.get("n") is None else body["n"],
            max_tokens=max_tokens,
            seed=None if body.get("seed") == -1 else body.get("seed"),
            stop=[stop] if isinstance(stop, str) else list(stop),
            stop_token_ids=list(dict.fromkeys(ids)),
            bad_words=list(body.get("bad_words") or []),
            include_stop=bool(body.get("include_stop_str_in_output")),
            ignore_eos=bool(body.get("ignore_eos")),
            min_tokens=body.get("min_tokens") or 0,
            skip_specials=body.get("skip_special_tokens", True) is not False,
            logprobs=logprobs,
            prompt_logprobs=body.get("prompt_logprobs"),
            logprob_token_ids=body.get("logprob_token_ids") or None,
            logit_bias=_bias(body.get("logit_bias")),
            allowed_token_ids=body.get("allowed_token_ids"),
            beams=bool(body.get("use_beam_search")),
            repetition=body.get("repetition_detection"),
        )
        sampling._ranges()
        sampling._lists()
        return sampling

    def _ranges(self) -> None:
        if self.n < 1:
            raise Invalid(f"n must be at least 1, got {self.n}.")
        if self.n > MAX_N:
            text = (
                f"n must be at most {MAX_N}, got {self.n}. To increase this limit, set the "
                "VLLM_MAX_N_SEQUENCES "
            )
            raise Invalid(text + "environment variable.")
        for name in ("presence_penalty", "frequency_penalty"):
            if not -2 <= getattr(self, name) <= 2:
                raise Invalid(f"{name} must be in [-2, 2], got {getattr(self, name)}.")
        if not math.isfinite(self.repetition_penalty):
            raise Invalid(f"repetition_penalty must be a finite number, got {self.repetition_penalty}.")
        if self.repetition_penalty <= 0:
            raise Invalid(f"repetition_penalty must be greater than zero, got {self.repetition_penalty}.")
        self._temperature()
        if not 0 < self.top_p <= 1:
            raise Invalid(f"top_p must be in (0, 1], got {self.top_p}.", "top_p", self.top_p)
        if self.top_k < -1:
            raise Invalid(f"top_k must be 0 (disable), or at least 1, got {self.top_k}.")
        if not 0 <= self.min_p <= 1:
            raise Invalid(f"min_p must be in [0, 1], got {self.min_p}.")

    def _temperature(self) -> None:
        value = self.temperature
        for wrong, rule in (
            (not math.isfinite(value), "must be a finite number"),
            (value < 0, "must be non-negative"),
            (value > 2, "must be in [0, 2]"),
        ):
            if wrong:
                raise Invalid(f"temperature {rule}, got {value}.", "temperature", value)

    def _lists(self) -> None:
        if self.max_tokens < 1:
            raise Invalid(
                f"max_tokens must be at least 1, got {self.max_tokens}.", "max_tokens", self.max_tokens
            )
        if self.min_tokens < 0:
            raise Invalid(f"min_tokens must be greater than or equal to 0, got {self.min_tokens}.")
        if self.min_tokens > self.max_tokens:
            limit = f"max_tokens={self.max_tokens}"
            raise Invalid(f"min_tokens must be less than or equal to {limit}, got {self.min_tokens}.")
        if any(not text for text in self.stop):
            raise Invalid("stop cannot contain an empty string.")
        if any(not word for word in self.bad_words):
            raise Invalid(f"bad_words cannot contain an empty string. Got bad_words={self.bad_words}")
        if self.temperature < GREEDY and self.n > 1 and not self.beams:
            raise Invalid(f"n must be 1 when using greedy sampling, got {self.n}.")

    def verify(self, settings: Settings, vocabulary: int) -> None:
        """The engine's own rules: limits of the server and of the vocabulary (a number of tokens)."""
        limit = vocabulary if settings.max_logprobs == -1 else settings.max_logprobs
        for number, kind, name in (
            (self.logprobs, "sample", "logprobs"),
            (self.prompt_logprobs, "prompt", "prompt_logprobs"),
        ):
            wanted = vocabulary if number == -1 else number or 0
            if wanted > limit:
                text = f"Requested {kind} logprobs of {wanted}, which is greater than max allowed: {limit}"
                raise Invalid(text, name, wanted)
        stops = ("stop_token_ids",) if settings.version >= "0.29.0" else ()
        for name in ("logprob_token_ids", "logit_bias", *stops):
            _in_vocabulary(name, getattr(self, name) or (), vocabulary)
        if self.allowed_token_ids is not None:
            if not self.allowed_token_ids:
                raise Invalid("allowed_token_ids is not None and empty!", "allowed_token_ids", [])
            wrong = [id_ for id_ in self.allowed_token_ids if not 0 <= id_ < vocabulary]
            if wrong:
                raise Invalid("allowed_token_ids contains out-of-vocab token id!", "allowed_token_ids", wrong)
        if settings.capacity.drafted and (self.min_p > 1e-5 or self.logit_bias):
            text = "The min_p and logit_bias sampling parameters are not yet supported"
            raise Invalid(f"{text} with speculative decoding.")


def _in_vocabulary(name: str, ids: Any, vocabulary: int) -> None:
    wrong = [id_ for id_ in ids if not 0 <= id_ < vocabulary]
    if wrong:
        text = f"token_id(s) {wrong} in {name} contain out-of-vocab token ids. Vocabulary size: {vocabulary}"
        raise Invalid(text, name, wrong)


def _bias(given: dict[str, float] | None) -> dict[int, float]:
    bias: dict[int, float] = {}
    wrong = []
    for key, value in (given or {}).items():
        try:
            bias[int(key)] = min(100.0, max(-100.0, value))
        except ValueError:
            wrong.append(key)
    if wrong:
        text = f"logit_bias contains key(s) that cannot be converted to integer token IDs: {wrong!r}"
        raise Invalid(text, "logit_bias", wrong)
    return bias
