"""An imported deployment is expected to do what its arguments ask for, and nothing that they do not."""

from __future__ import annotations

import pytest

from pytest_vllm.profile.importers import imported


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", []),
        ("--enable-prefix-caching --max-num-seqs 8", []),
        ("--enable-auto-tool-choice --tool-call-parser hermes", ["chat", "tools"]),
        ("--tool-call-parser hermes", []),
        ("--enable-auto-tool-choice", []),
        ("--no-enable-auto-tool-choice --tool-call-parser hermes", []),
        ("--reasoning-parser qwen3", ["chat", "reasoning"]),
        ("--reasoning_parser=qwen3", ["chat", "reasoning"]),
        ("--chat-template /t.jinja", ["chat"]),
        ("--api-key sk-abcdefghijklmnop", ["auth"]),
        ("--api-key $KEY", ["auth"]),
        ("--api-key none", []),
        ("--enable-lora --lora-modules a=/a b=/b", ["lora"]),
        ("--no-enable-lora", []),
        ("--enable-prompt-tokens-details", ["cached-tokens"]),
        ("--task embed", ["embeddings"]),
        ("--runner pooling --convert embed", ["embeddings"]),
        ("--runner pooling --convert classify", ["classify"]),
        ("--task score --api-key sk-abcdefghijklmnop", ["score", "auth"]),
        ("--runner pooling", []),
        ("--task embed --enable-auto-tool-choice --tool-call-parser hermes", ["embeddings"]),
        ("--task transcription", ["transcription"]),
        ("--task generate --reasoning-parser qwen3", ["chat", "reasoning"]),
        ("--runner generate --tool-call-parser hermes --enable-auto-tool-choice", ["chat", "tools"]),
        ("--enable-sleep-mode", []),
    ],
)
def test_the_arguments_of_a_serve_line(words: str, expected: list[str]) -> None:
    found = imported(f"vllm serve org/model {words}", environ={"KEY": "sk-abcdefghijklmnop"})

    assert found.profile.expect.capabilities == expected


def test_a_key_of_the_environment_and_sleep_mode_in_compose() -> None:
    text = """
services:
  llm:
    image: vllm/vllm-openai:v0.11.0
    command: --model org/model --enable-sleep-mode
    environment:
      VLLM_API_KEY: ${VLLM_API_KEY}
      VLLM_SERVER_DEV_MODE: "1"
"""
    assert imported(text).profile.expect.capabilities == ["auth", "sleep"]
