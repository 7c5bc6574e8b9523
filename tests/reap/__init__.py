"""Runs that are ended at every moment, by every means: nothing of theirs stays, nothing else goes."""
