"""Affine maps over F2: linear layouts, their matrices and their text."""

from layoutalg.f2.layout import LinearLayout
from layoutalg.f2.notation import parse_linear

__all__ = ["LinearLayout", "parse_linear"]
