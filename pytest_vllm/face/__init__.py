"""Everything of ours that touches pytest: options, collection, fixtures, hooks, what a run prints."""
