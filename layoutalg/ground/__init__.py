"""Shared foundations of all families: limits, deadlines, memory, workers and solvers."""
