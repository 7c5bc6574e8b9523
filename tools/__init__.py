"""What maintainers run in a checkout; nothing of it is shipped."""
