"""The gate against servers that misbehave on purpose."""
