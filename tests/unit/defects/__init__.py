"""Tools of the matrix and of false alarms."""
