"""Every parser of a vLLM build put to the test, and the findings of it."""
