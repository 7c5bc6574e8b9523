"""The logits processor of the scripted engine: a real vLLM says exactly what a request tells it to say.

    PYTHONPATH=FOLDER vllm serve … --logits-processors processor:ScriptedProcessor

It runs inside vLLM and imports nothing of ours, so that the file alone can be mounted into a container. A
request carries its script in `vllm_xargs`: `{"script": "text"}`, or a list of texts that are tokenised one by
one, which sets the token boundaries. At every step only the next token of the script can be sampled, then the
end-of-sequence token. Requests without a script are left alone.

The position in the script is the number of output tokens, which vLLM hands over by reference: batching,
moves, preemption, several choices and prefix caching leave it right. vLLM refuses custom processors beside
speculative decoding. A token that the request's grammar forbids is forced nevertheless: vLLM then ends that
request with an error. Such a token is masked when processors come to see it, so it is known here what a
grammar forbade: a request with `{"forbidden": 1}` is answered with that, `DIGEST:TOKEN` for each script,
counted from 0, or `none`. Interface: `vllm/v1/sample/logits_processor`, vLLM 0.10.2 and later.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vllm.v1.sample.logits_processor import (  # type: ignore[import-not-found]
    LogitsProcessor,
    MoveDirectionality,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

SCRIPT, FORBIDDEN = "script", "forbidden"
#: Above any other logit, also after penalties and biases; finite, so that log probabilities stay numbers.
CERTAIN = 1e6
MASKED = float("-inf")


class ScriptedProcessor(LogitsProcessor):  # type: ignore[misc]
    """Forces every request that carries a script to say it."""

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuse what is not a script. Raises ValueError, which the server answers with 400."""
        pieces_of(sampling_params.extra_args)

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:
        """Load the served tokenizer."""
        del device, is_pin_memory
        from transformers import AutoTokenizer  # type: ignore[import-not-found] # noqa: PLC0415

        model = vllm_config.model_config
        self._tokenizer = AutoTokenizer.from_pretrained(
            model.tokenizer, trust_remote_code=model.trust_remote_code, revision=model.tokenizer_revision
        )
        self._encode = lru_cache(maxsize=4096)(self._encoded)
        #: Row of the batch -> (script, its token ids, the request's running output, whether under a grammar).
        self._rows: dict[int, tuple[tuple[str, ...], tuple[int, ...], Sequence[int], bool]] = {}
        #: Digest of a script -> the first of its tokens that a grammar forbade.
        self._forbidden: dict[str, int] = {}

    def is_argmax_invariant(self) -> bool:
        """It decides the argmax."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follow the batch: what left, what came, what moved, in this order."""
        if batch_update is None:
            return
        rows = self._rows
        for row in batch_update.removed:
            rows.pop(row, None)
        for row, params, _, output in batch_update.added:
            asks = bool((params.extra_args or {}).get(FORBIDDEN))
            pieces = (self._told(),) if asks else pieces_of(params.extra_args)
            if pieces is None:
                rows.pop(row, None)
            else:
                rows[row] = (pieces, self._encode(pieces), output, under_grammar(params))
        for one, other, direction in batch_update.moved:
            there, here = rows.pop(other, None), rows.pop(one, None)
            if here is not None:
                rows[other] = here
            if there is not None and direction == MoveDirectionality.SWAP:
                rows[one] = there

    def apply(self, logits: Any) -> Any:
        """Leave each scripted row one token to say. `logits` is [rows, vocabulary]."""
        if self._rows:
            rows = list(self._rows)
            wanted = [self._next(ids, output) for _, ids, output, _ in self._rows.values()]
            if any(bound for *_, bound in self._rows.values()):
                self._note((logits[rows, wanted] == MASKED).tolist())
            logits[rows, wanted] = CERTAIN
        return logits

    def _note(self, masked: Sequence[bool]) -> None:
        for (pieces, _, output, bound), no in zip(self._rows.values(), masked, strict=True):
            if no and bound:
                self._forbidden.setdefault(digest(pieces), len(output))

    def _told(self) -> str:
        return " ".join(f"{one}:{at}" for one, at in self._forbidden.items()) or "none"

    def _next(self, script: tuple[int, ...], output: Sequence[int]) -> int:
        at = len(output)
        return script[at] if at < len(script) else int(self._tokenizer.eos_token_id)

    def _encoded(self, pieces: tuple[str, ...]) -> tuple[int, ...]:
        encode = self._tokenizer.encode
        return tuple(id_ for piece in pieces for id_ in encode(piece, add_special_tokens=False))


def under_grammar(params: Any) -> bool:
    """Whether a grammar holds the request to a form: a mask without one is another processor's."""
    return any(getattr(params, name, None) is not None for name in ("structured_outputs", "guided_decoding"))


def digest(pieces: Sequence[str]) -> str:
    """A script's name in what is told of it."""
    return hashlib.sha256("\0".join(pieces).encode()).hexdigest()[:12]


def pieces_of(extra_args: Any) -> tuple[str, ...] | None:
    """The texts of a request's script, None without one. Raises ValueError for what is none."""
    script = (extra_args or {}).get(SCRIPT)
    if script is None:
        return None
    if isinstance(script, str):
        return (script,)
    if isinstance(script, list | tuple) and all(isinstance(piece, str) for piece in script):
        return tuple(script)
    raise ValueError(f"vllm_xargs.{SCRIPT} is {script!r:.80}: a text or a list of texts")
