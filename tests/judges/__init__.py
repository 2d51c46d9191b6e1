"""Judges of the tests: models and searches that share no code with the library."""
