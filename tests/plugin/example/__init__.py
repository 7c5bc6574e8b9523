"""A project's own tests of every kind, as people write them; `tests/plugin/test_example.py` runs a copy."""
