"""What suites and own tests declare and see: checks, exchanges, measurements, answers."""
