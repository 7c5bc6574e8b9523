"""A server that is stopped and started again is the same server."""
