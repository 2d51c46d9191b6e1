"""Layouts as piecewise quasi-affine functions on their digits.

Main definitions: ``to_piecewise``.
"""

from __future__ import annotations

import numpy as np

from layoutalg.affine import PiecewiseLayout
from layoutalg.affine.digits import digit_system, map_text, stage_text
from layoutalg.convert.linear import to_linear
from layoutalg.convert.lower import lowered, total
from layoutalg.convert.operand import AnyFamily, checked
from layoutalg.convert.strided import recognize
from layoutalg.cute import ComposedLayout
from layoutalg.errors import BudgetError, Diagnostic, RepresentabilityError
from layoutalg.hierarchy import HierarchicalLayout
from layoutalg.zmod import IntegerLayout

RUNS = 64
"""Most runs of a table that become pieces."""


def to_piecewise(layout: AnyFamily) -> PiecewiseLayout:
    """Return the layout as a piecewise quasi-affine function on its digits; always possible in principle.

    The digits are the modes ``c0, c1, ...`` of a CuTe layout, and the input bits ``b0, b1, ...`` of a linear layout. A
    stack of swizzles that is affine over F2 gets input bits, any other the modes of its CuTe layout. An integer layout
    keeps its box as ``c0, c1, ...``, its outputs and moduli. A hierarchical layout gets its digits or bits; a table the
    modes it is recognised to have, else one piece per arithmetic run of its flat coordinate. The output is ``offset``
    unless the layout names its own; the flat coordinate is the same.

    Args:
        layout: Any total layout with at least one point.

    Raises:
        BudgetError: LA222, ISL's operation quota ran out; LA662, a table of more than 64 arithmetic runs.
        RepresentabilityError: LA236, the layout is empty; LA661, a partial tile has no value at the witness.
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
    if isinstance(layout, IntegerLayout):
        return _from_integer(layout)
    if isinstance(layout, HierarchicalLayout):
        total(layout, where)
        return (
            _from_table(layout, where)
            if isinstance(lowered(layout), HierarchicalLayout)
            else to_piecewise(lowered(layout))
        )
    if isinstance(layout, ComposedLayout):
        try:
            linear = to_linear(layout)
        except (RepresentabilityError, BudgetError):
            return PiecewiseLayout(_chain_text(layout), ("offset",))
        return PiecewiseLayout(map_text(digit_system(linear)), ("offset",))
    return PiecewiseLayout(map_text(digit_system(layout)), ("offset",))  # type: ignore[arg-type]


def _from_integer(layout: IntegerLayout) -> PiecewiseLayout:
    """Return an integer layout with the same box, outputs and moduli."""
    names = [f"c{place}" for place in range(len(layout.inputs))]
    values = []
    for row, constant, (_, modulus) in zip(layout.matrix, layout.offset, layout.outputs, strict=True):
        total_text = " + ".join([str(constant), *(f"{a}*{name}" for a, name in zip(row, names, strict=True) if a)])
        values.append(f"({total_text}) mod {modulus}" if modulus else total_text)
    box = " and ".join(["0 = 0", *(f"0 <= {name} < {n}" for name, n in zip(names, layout.extents, strict=True))])
    return PiecewiseLayout(f"{{ [{', '.join(names)}] -> [{', '.join(values)}] : {box} }}", tuple(layout.out_dims))


def _from_table(layout: HierarchicalLayout, where: str) -> PiecewiseLayout:
    """Return a tabulated bijection as a swizzle, strides or bits where it has them, else run by run."""
    table = layout.table()
    try:
        return to_piecewise(recognize(table))
    except RepresentabilityError:
        pass
    runs = []
    start, size = 0, len(table)
    steps = np.diff(table)
    while start < size:
        step = int(steps[start]) if start < size - 1 else 0
        broken = np.flatnonzero(steps[start:] != step)
        stop = size if not broken.size else start + int(broken[0]) + 1
        runs.append((start, stop, step, int(table[start]) - step * start))
        if len(runs) > RUNS:
            raise BudgetError(
                Diagnostic(
                    code="LA662",
                    what="the table has too many pieces",
                    where=(where[:200],),
                    because=f"more than {RUNS} arithmetic runs on its first {stop} of {size} points",
                    witness={"runs": len(runs), "points": stop},
                )
            )
        start = stop
    text = "; ".join(f"[i] -> [{step}*i + {base}] : {start} <= i < {stop}" for start, stop, step, base in runs)
    return PiecewiseLayout(f"{{ {text} }}", ("offset",))


def _chain_text(layout: ComposedLayout) -> str:
    """Return a stack of swizzles on the modes of its CuTe layout as ISL text."""
    from layoutalg.affine import isl

    names = [f"c{index}" for index in range(len(layout.base.flat))]
    point = f"[{', '.join(names)}]"
    value = " + ".join(["0", *(f"{stride}*{name}" for name, (_, stride) in zip(names, layout.base.flat, strict=True))])
    box = " and ".join(["0 = 0", *(f"0 <= {name} < {n}" for name, (n, _) in zip(names, layout.base.flat, strict=True))])
    stages = [stage_text(swizzle, offset) for swizzle, offset in reversed(layout.stages)]
    return isl.chain([f"{{ {point} -> [{value}] }}", *stages], f"{{ {point} : {box} }}")
