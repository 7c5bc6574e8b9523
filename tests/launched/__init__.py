"""Stand-ins that launchers start: a server of a hundred lines instead of a vLLM."""
