"""What a constraint leaves as the only text comes as it is spelt: each blank, line break, mark and letter."""
