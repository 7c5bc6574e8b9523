"""Tests of tools.conformance."""
