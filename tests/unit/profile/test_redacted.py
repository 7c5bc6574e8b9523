"""What people are shown of a text that may hold secrets."""

from __future__ import annotations

import pytest

from pytest_vllm.profile.secrets import redacted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("login --token abc", "login --token ***"),
        ("login --token=abc x", "login --token=*** x"),
        ("-e HF_TOKEN=abc -e A=1", "-e HF_TOKEN=*** -e A=1"),
        ('{"password": "abc"}', '{"password": "***"}'),
        ("redis://:abc@redis:6379", "redis://:***@redis:6379"),
        ("http://me:abc@host/x", "http://me:***@host/x"),
        ("http://host/x?token=abc&y=1", "http://host/x?token=***&y=1"),
        ("curl -H 'Authorization: Bearer abc' x", "curl -H 'Authorization: ***' x"),
        ("OTEL_EXPORTER_OTLP_HEADERS=api-key=abc", "OTEL_EXPORTER_OTLP_HEADERS=***"),
        ("hf_AAAABBBBCCCCDDDDEEEE", "***"),
        ("--hf-token $HF_TOKEN", "--hf-token $HF_TOKEN"),
        ("HF_TOKEN is written down there", "HF_TOKEN is written down there"),
        ("DO_NOT_TRACK=1 --port 8000", "DO_NOT_TRACK=1 --port 8000"),
        ("--api-key none", "--api-key none"),
    ],
)
def test_a_text(text: str, shown: str) -> None:
    """Values go, names and references stay."""
    assert redacted(text) == shown
