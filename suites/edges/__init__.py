"""What lies at the edge: a text's first and last blank, the last turn, the token zero, the seed zero."""
