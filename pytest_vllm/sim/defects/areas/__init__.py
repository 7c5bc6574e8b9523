"""The defects, one module per area; a module is found by being here."""
