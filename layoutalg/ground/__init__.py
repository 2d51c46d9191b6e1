"""What every family stands on: limits, the clock, memory, workers and solvers."""
