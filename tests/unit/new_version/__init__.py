"""Tests of tools.new_version."""
