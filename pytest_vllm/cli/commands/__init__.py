"""The commands, some to a file; every file here is found by itself."""
