"""Real clients against the server: SDKs, frameworks and coding agents, each in a process of its own."""
