"""Kernels made of proved pipelines, and the check that a kernel does what its pipeline says."""
