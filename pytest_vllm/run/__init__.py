"""One run against a server: boot, probe, record, measure, restart, and what is known of it."""
