"""Stored single-point mutants and what runs them."""
