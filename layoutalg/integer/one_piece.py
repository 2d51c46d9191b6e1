"""Inverses of integer layouts in one quasi-affine piece, by solving for the coordinates.

If no modulus wraps and the columns of the axes of extent above 1 are independent over Q, each value ``y = A x + b`` has
one preimage: with k independent rows R of A, ``x = adj(A_R) (y_R - b_R) / det(A_R)``. A point y is a value exactly when
these quotients are integers inside the box and the other rows of A agree with y.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from layoutalg.integer.layout import IntegerLayout


def one_piece(layout: IntegerLayout, names: Sequence[str]) -> str | None:
    """Return the inverse of a layout on its image as ISL text; None if the condition above fails.

    Args:
        layout: At least one point.
        names: Names of the outputs in the text.

    Example:
        >>> one_piece(IntegerLayout.from_strides({"i": 5}, (3,), 1), ("y",))
        '{ [y] -> [floor((1*y + -1)/3)] : 0 <= 1*y + -1 <= 12 and (1*y + -1) mod 3 = 0 }'
    """
    if any(m for _, _, m in layout.forms):
        return None
    rows, constants = [row for row, _, _ in layout.forms], [b for _, b, _ in layout.forms]
    live = [k for k, extent in enumerate(layout.extents) if extent > 1]
    solved = _left_inverse([[row[k] for k in live] for row in rows], len(live))
    if solved is None:
        return None
    conditions: list[str] = []
    values = ["0"] * len(layout.inputs)
    for k, line in zip(live, solved, strict=True):
        denominator = math.lcm(*[entry.denominator for entry in line])
        total = _sum([int(entry * denominator) for entry in line], names, constants)
        conditions.append(f"0 <= {total} <= {denominator * (layout.extents[k] - 1)}")
        if denominator > 1:
            conditions.append(f"({total}) mod {denominator} = 0")
        values[k] = f"floor(({total})/{denominator})" if denominator > 1 else total
    for place, row in enumerate(rows):
        # y - b must equal this row of A times the solved coordinates; for the rows used to solve the rest is 0
        rest = [Fraction(int(place == other)) for other in range(len(rows))]
        for k, line in zip(live, solved, strict=True):
            rest = [a - row[k] * entry for a, entry in zip(rest, line, strict=True)]
        if any(rest):
            scale = math.lcm(*[entry.denominator for entry in rest])
            conditions.append(f"{_sum([int(entry * scale) for entry in rest], names, constants)} = 0")
    return f"{{ [{', '.join(names)}] -> [{', '.join(values)}] : {' and '.join(conditions or ['0 = 0'])} }}"


def _sum(factors: Sequence[int], names: Sequence[str], constants: Sequence[int]) -> str:
    """Return ``sum of factor (name - constant)`` as text."""
    constant = -sum(a * b for a, b in zip(factors, constants, strict=True))
    return " + ".join([*[f"{a}*{name}" for a, name in zip(factors, names, strict=True) if a], str(constant)])


def _left_inverse(rows: list[list[int]], width: int) -> list[list[Fraction]] | None:
    """Return L with ``L A = I``, using only as many rows of A as it has columns; None if the columns are dependent."""
    work = [
        [*map(Fraction, row), *[Fraction(int(k == place)) for k in range(len(rows))]] for place, row in enumerate(rows)
    ]
    for column in range(width):
        pivot = next((k for k in range(column, len(work)) if work[k][column]), None)
        if pivot is None:
            return None
        work[column], work[pivot] = work[pivot], work[column]
        lead = work[column][column]
        work[column] = [entry / lead for entry in work[column]]
        for k, row in enumerate(work):
            if k != column and row[column]:
                factor = row[column]
                work[k] = [a - factor * b for a, b in zip(row, work[column], strict=True)]
    return [row[width:] for row in work[:width]]
