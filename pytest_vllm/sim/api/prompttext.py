"""Log probabilities of the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.generation import logprobs

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.check.sampling import Sampling


def prompt_logprobs(
    prompt: list[int], sampling: Sampling, server: Server
) -> list[dict[str, Any] | None] | None:
    """One entry per prompt token, the first null; None when not asked for."""
    number = sampling.prompt_logprobs
    if number is None:
        return None
    tokens = server.tokens
    texts = tokens.pieces(prompt, skip_specials=False)
    entries: list[dict[str, Any] | None] = [None]
    for position in range(1, len(prompt)):
        found = logprobs(prompt, position, tokens.size if number == -1 else number, tokens, server.settings)
        entries.append(
            {
                str(id_): {
                    "logprob": chance,
                    "rank": rank,
                    "decoded_token": texts[position] if id_ == prompt[position] else tokens.token_text(id_),
                }
                for id_, (chance, rank) in found.items()
            }
        )
    return entries
