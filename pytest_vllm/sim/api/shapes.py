"""Which keys an answer has in which version; keys come in the order in which they are given, vLLM's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_vllm.sim.versions import Version

#: Keys by object that not every version has: (from, until), an empty end is open.
SPANS: dict[str, dict[str, tuple[str, str]]] = {
    "answer": {
        "service_tier": ("0.10.0", ""),
        "system_fingerprint": ("0.10.0", ""),
        "prompt_token_ids": ("0.10.2", ""),
        "prompt_text": ("0.21.0", ""),
        "kv_transfer_params": ("0.9.0", ""),
        "ec_transfer_params": ("0.26.0", ""),
        "metrics": ("0.25.0", ""),
    },
    "chunk": {
        "system_fingerprint": ("0.21.0", ""),
        "prompt_token_ids": ("0.10.2", ""),
        "prompt_text": ("0.21.0", ""),
        "metrics": ("0.25.0", ""),
    },
    "choice": {
        "token_ids": ("0.10.2", ""),
        "prompt_token_ids": ("0.10.2", ""),
        "routed_experts": ("0.21.0", ""),
        "weight_versions": ("0.33.0", ""),
    },
    "message": {
        "refusal": ("0.10.0", ""),
        "annotations": ("0.10.0", ""),
        "audio": ("0.10.0", ""),
        "function_call": ("0.10.0", ""),
        "reasoning": ("0.11.1", ""),
        "reasoning_content": ("0.7.3", "0.16.0"),
    },
    "usage": {"completion_tokens_details": ("0.28.0", "")},
    "prompt_details": {"created_cache_tokens": ("0.26.0", ""), "multimodal_tokens": ("0.24.0", "")},
}


class Shapes:
    """The shapes of one version."""

    def __init__(self, version: Version) -> None:
        """Work out which keys are missing."""
        self._absent = {
            name: {key for key, span in spans.items() if not version.within(list(span))}
            for name, spans in SPANS.items()
        }

    def of(self, name: str, **keys: Any) -> dict[str, Any]:
        """An object of this kind without the keys that the version does not have."""
        absent = self._absent[name]
        return {key: value for key, value in keys.items() if key not in absent}

    def usage(
        self,
        prompt: int,
        completion: int | None,
        *,
        cached: int | None = None,
        reasoning: int | None = None,
        pictured: int = 0,
    ) -> dict[str, Any]:
        """Token counts; `cached` and `reasoning` None leave their details null, `pictured` 0 its own."""
        details = None
        if cached is not None:
            details = self.of(
                "prompt_details",
                cached_tokens=cached,
                created_cache_tokens=None,
                multimodal_tokens={"image": pictured} if pictured else None,
            )
        return self.of(
            "usage",
            prompt_tokens=prompt,
            total_tokens=prompt + (completion or 0),
            completion_tokens=completion,
            prompt_tokens_details=details,
            completion_tokens_details=None if reasoning is None else {"reasoning_tokens": reasoning},
        )


def without_null(value: Any) -> Any:
    """The value without null members, at any depth."""
    if isinstance(value, dict):
        return {key: without_null(inner) for key, inner in value.items() if inner is not None}
    return [without_null(inner) for inner in value] if isinstance(value, list) else value
