"""Takes in a new version of vLLM: reads its sources, runs nothing, extends what is known per version."""
