"""Exploration: searching and making simpler with fakes, the file of regressions, judging."""
