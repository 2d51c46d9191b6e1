"""Piecewise quasi-affine layouts; ISL is loaded when one is built."""

from layoutalg.affine.layout import PiecewiseLayout

__all__ = ["PiecewiseLayout"]
