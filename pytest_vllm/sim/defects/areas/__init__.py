"""Defects, one module per area."""
