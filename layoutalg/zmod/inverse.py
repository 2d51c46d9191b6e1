"""Right inverses of integer layouts on mixed-radix digits of the values.

Main definitions: ``RightInverse``, ``right_inverse``.

Main statements: where every input axis moves one output, and the strides of each output, sorted by size, start with a
chain 1, s_1, s_1 s_2, ..., the digits of a value along the chain are the coordinates; a negative stride reads its digit
backwards. So the right inverse is again an integer layout, without division, once values are given by digits.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.errors import Diagnostic, RepresentabilityError
from layoutalg.zmod.axes import same_function
from layoutalg.zmod.compose import residue_form
from layoutalg.zmod.layout import IntegerLayout, layout_or_refuse
from layoutalg.zmod.matrix import Vector


@dataclass(frozen=True, slots=True)
class RightInverse:
    """A right inverse on digits: ``f(layout(c)) = values(c)`` for every c in the box of digits.

    Args:
        layout: From the digits of the values to the input axes of f.
        values: From the digits to the outputs of f: a bijection onto the box ``[low, low + extent)`` per output.
        box: Per output of f, low and high (half-open) of the values that are inverted.
    """

    layout: IntegerLayout
    values: IntegerLayout
    box: tuple[tuple[str, tuple[int, int]], ...]


def right_inverse(layout: IntegerLayout) -> RightInverse:
    """Return the right inverse onto the largest box of values that a chain of strides gives.

    Mathematically: the digits of output j are named ``<output>0, <output>1, ...``, fastest first, one per axis of the
    chain; values start at the least value that the chain's axes reach with all other axes at zero.

    Args:
        layout: Every axis of extent above 1 must move at most one output; outputs with a modulus must not wrap.

    Returns:
        The inverse, checked by composition before it is returned. Its box is ``[low, low + 1)`` for an output without
        a stride 1 or -1.

    Raises:
        RepresentabilityError: LA735, an axis moves several outputs or a modulus wraps (the witness names them).

    Example:
        >>> found = right_inverse(IntegerLayout.from_strides({"i": 4, "j": 6}, (6, -1), 5))
        >>> print(found.layout)
        Z[offset0:6=(0,-1), offset1:4=(1,0) -> i, j] + (0,5)
        >>> found.box
        (('offset', (0, 24)),)
    """
    live = [k for k, extent in enumerate(layout_or_refuse(layout).extents) if extent > 1]
    if not layout.size:
        raise _refused(layout, "the layout has no points", {"size": 0})
    rows: list[Vector] = []
    starts: list[int] = []
    for (name, m), row, b in zip(layout.outputs, layout.matrix, layout.offset, strict=True):
        form = residue_form(row, b, m, layout.extents)
        if form is None:
            raise _refused(layout, f"{name} wraps modulo {m}", {"output": name})
        rows.append(form[0])
        starts.append(form[1])
    for k in live:
        moved = [name for (name, _), row in zip(layout.outputs, rows, strict=True) if row[k]]
        if len(moved) > 1:
            axis = layout.inputs[k][0]
            raise _refused(layout, f"the axis {axis} moves {' and '.join(moved)}", {"axis": axis, "outputs": moved})
    digits: list[tuple[str, int]] = []
    inverse_columns: list[list[int]] = []
    value_columns: list[list[int]] = []
    base = [0] * len(layout.inputs)
    box = []
    for place, (name, _) in enumerate(layout.outputs):
        row, low, weight, used = rows[place], starts[place], 1, 0
        while True:
            # the longest axis with this stride reaches furthest
            found = [k for k in live if abs(row[k]) == weight]
            if not found:
                break
            k = max(found, key=lambda axis: layout.extents[axis])
            sign, extent = (1 if row[k] > 0 else -1), layout.extents[k]
            digits.append((f"{name}{used}", extent))
            inverse_columns.append([sign if axis == k else 0 for axis in range(len(layout.inputs))])
            value_columns.append([weight if other == place else 0 for other in range(len(layout.outputs))])
            if sign < 0:
                base[k] = extent - 1
                low -= weight * (extent - 1)
            weight, used = weight * extent, used + 1
        starts[place] = low
        box.append((name, (low, low + weight)))
    if len({name for name, _ in digits}) < len(digits):
        digits = [(f"digit{place}", extent) for place, (_, extent) in enumerate(digits)]
    count = len(digits)
    inverse = IntegerLayout(
        tuple(digits),
        tuple((name, 0) for name, _ in layout.inputs),
        tuple(tuple(inverse_columns[c][k] for c in range(count)) for k in range(len(layout.inputs))),
        tuple(base),
    )
    values = IntegerLayout(
        tuple(digits),
        layout.outputs,
        tuple(tuple(value_columns[c][j] for c in range(count)) for j in range(len(layout.outputs))),
        tuple(starts),
    )
    if not same_function(layout @ inverse, values):
        raise _refused(layout, "the composition check failed", {"inverse": str(inverse)})
    return RightInverse(inverse, values, tuple(box))


def _refused(layout: IntegerLayout, because: str, witness: dict[str, object]) -> RepresentabilityError:
    return RepresentabilityError(
        Diagnostic(
            code="LA735",
            what="no right inverse by digits",
            where=(str(layout),),
            because=because,
            witness=witness,
        )
    )
