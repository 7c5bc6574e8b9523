"""The judgements of the suites for tool calls and reasoning."""
