"""The logits processor of the scripted engine: a real vLLM says exactly what a request tells it to say.

    PYTHONPATH=FOLDER vllm serve … --logits-processors processor:ScriptedProcessor

It runs inside vLLM and imports nothing of ours, so that the file alone can be mounted into a container. A
request carries its script in `vllm_xargs`: `{"script": "text"}`, or a list of texts that are tokenised one by
one, which sets the token boundaries. At every step only the next token of the script can be sampled, then the
end-of-sequence token. Requests without a script are left alone.

The position in the script is the number of output tokens, which vLLM hands over by reference: batching,
moves, preemption, several choices and prefix caching leave it right. vLLM refuses custom processors beside
speculative decoding. A token that the request's grammar forbids is forced nevertheless: vLLM then ends that
request with an error. Interface: `vllm/v1/sample/logits_processor`, vLLM 0.10.2 and later.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vllm.v1.sample.logits_processor import (  # type: ignore[import-not-found]
    LogitsProcessor,
    MoveDirectionality,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

SCRIPT = "script"
#: Above any other logit, also after penalties and biases; finite, so that log probabilities stay numbers.
CERTAIN = 1e6


class ScriptedProcessor(LogitsProcessor):  # type: ignore[misc]
    """Forces every request that carries a script to say it."""

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuse what is no script. Raises ValueError, which the server answers with 400."""
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
        #: Row of the batch -> (token ids of the script, the request's running output).
        self._rows: dict[int, tuple[tuple[int, ...], Sequence[int]]] = {}

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
            pieces = pieces_of(params.extra_args)
            if pieces is None:
                rows.pop(row, None)
            else:
                rows[row] = (self._encode(pieces), output)
        for one, other, direction in batch_update.moved:
            there, here = rows.pop(other, None), rows.pop(one, None)
            if here is not None:
                rows[other] = here
            if there is not None and direction == MoveDirectionality.SWAP:
                rows[one] = there

    def apply(self, logits: Any) -> Any:
        """Leave each scripted row one token to say. `logits` is [rows, vocabulary]."""
        if self._rows:
            wanted = [self._next(*script) for script in self._rows.values()]
            logits[list(self._rows), wanted] = CERTAIN
        return logits

    def _next(self, script: tuple[int, ...], output: Sequence[int]) -> int:
        at = len(output)
        return script[at] if at < len(script) else int(self._tokenizer.eos_token_id)

    def _encoded(self, pieces: tuple[str, ...]) -> tuple[int, ...]:
        encode = self._tokenizer.encode
        return tuple(id_ for piece in pieces for id_ in encode(piece, add_special_tokens=False))


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
