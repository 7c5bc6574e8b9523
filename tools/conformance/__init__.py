"""Published conformance of vLLM itself: what of each version does not hold, made from runs of the gate."""
