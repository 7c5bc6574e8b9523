"""What holds of every answer of a run, whichever check asked for it: no list of faults is needed for that."""
