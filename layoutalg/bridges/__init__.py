"""Conversions, equality, composition and inverses across families."""

from layoutalg.bridges import families  # noqa: F401  fills the table of families
