"""Starting, watching and ending servers: one file per launcher, all behind `protocol.py`."""
