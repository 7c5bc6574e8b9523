"""Builders of the facts about vLLM per version."""
