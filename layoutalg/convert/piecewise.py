"""Layouts as piecewise quasi-affine functions on their digits.

Main definitions: ``to_piecewise``.
"""

from __future__ import annotations

from layoutalg.affine import PiecewiseLayout
from layoutalg.affine.digits import digit_system, map_text, stage_text
from layoutalg.convert.linear import to_linear
from layoutalg.convert.operand import AnyLayout, checked
from layoutalg.cute import ComposedLayout
from layoutalg.errors import BudgetError, Diagnostic, RepresentabilityError


def to_piecewise(layout: AnyLayout) -> PiecewiseLayout:
    """Return the layout as a piecewise quasi-affine function on its digits; always possible in principle.

    The digits are the modes ``c0, c1, ...`` of a CuTe layout, and the input bits ``b0, b1, ...`` of a linear layout. A
    stack of swizzles that is affine over F2 gets input bits, any other the modes of its CuTe layout. The output is
    ``offset``; the flat coordinate is the same.

    Args:
        layout: Any layout with at least one point.

    Raises:
        BudgetError: LA222, ISL's operation quota ran out.
        RepresentabilityError: LA236, the layout is empty.
        MalformedError: LA234, not a layout.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> print(to_piecewise(CuteLayout((3, 8), (8, 1))))
        { [c0, c1] -> [(8c0 + c1)] : 0 <= c0 <= 2 and 0 <= c1 <= 7 }
    """
    where = f"to_piecewise({layout})"
    if isinstance(checked(layout, where), PiecewiseLayout):
        return layout  # type: ignore[return-value]
    if layout.size == 0:
        raise RepresentabilityError(
            Diagnostic(code="LA236", what="the layout is empty", where=(where,), because="it has no coordinate at all")
        )
    if isinstance(layout, ComposedLayout):
        try:
            linear = to_linear(layout)
        except (RepresentabilityError, BudgetError):
            return PiecewiseLayout(_chain_text(layout), ("offset",))
        return PiecewiseLayout(map_text(digit_system(linear)), ("offset",))
    return PiecewiseLayout(map_text(digit_system(layout)), ("offset",))  # type: ignore[arg-type]


def _chain_text(layout: ComposedLayout) -> str:
    """Return a stack of swizzles on the modes of its CuTe layout as ISL text."""
    from layoutalg.affine import isl

    names = [f"c{index}" for index in range(len(layout.base.flat))]
    point = f"[{', '.join(names)}]"
    value = " + ".join(["0", *(f"{stride}*{name}" for name, (_, stride) in zip(names, layout.base.flat, strict=True))])
    box = " and ".join(["0 = 0", *(f"0 <= {name} < {n}" for name, (n, _) in zip(names, layout.base.flat, strict=True))])
    stages = [stage_text(swizzle, offset) for swizzle, offset in reversed(layout.stages)]
    return isl.chain([f"{{ {point} -> [{value}] }}", *stages], f"{{ {point} : {box} }}")
