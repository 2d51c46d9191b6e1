"""Conversions, equality and composition across layout families."""
