"""Questions about integer layouts that only z3 decides.

Implementation notes: each question asks for a solution of a linear system inside a box: linear integer arithmetic on
the coordinates (the digits), never on a flat index, with one free multiple of the modulus per modular output.
``ground.solver`` handles sessions, timeouts and model checking.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.ground import solver
from layoutalg.integer.layout import IntegerLayout
from layoutalg.integer.matrix import Vector


def collision(layout: IntegerLayout, seconds: float) -> tuple[Vector, Vector] | None:
    """Return two points with the same value, or None.

    Example:
        >>> x, y = collision(IntegerLayout.from_strides({"i": 4, "j": 4}, (2, 3)), 2)
        >>> 2 * x[0] + 3 * x[1] == 2 * y[0] + 3 * y[1], x != y
        (True, True)
    """
    sides = [(1 - extent, extent) for extent in layout.extents]
    found = _solution(layout.matrix, (0,) * len(layout.outputs), layout.moduli, sides, True, seconds)
    return None if found is None else (tuple(max(d, 0) for d in found), tuple(max(-d, 0) for d in found))


def common_value(first: IntegerLayout, second: IntegerLayout, seconds: float) -> tuple[Vector, Vector] | None:
    """Return a point of each layout with the same value, or None.

    Example:
        >>> f = IntegerLayout.from_strides({"i": 4}, (2,))
        >>> common_value(f, IntegerLayout.from_strides({"i": 4}, (2,), 1), 2) is None
        True
    """
    rows = [(*one, *[-a for a in other]) for one, other in zip(first.matrix, second.matrix, strict=True)]
    constants = [a - b for a, b in zip(first.offset, second.offset, strict=True)]
    sides = [(0, extent) for extent in (*first.extents, *second.extents)]
    found = _solution(rows, constants, first.moduli, sides, False, seconds)
    count = len(first.inputs)
    return None if found is None else (tuple(found[:count]), tuple(found[count:]))


def point_of_value(layout: IntegerLayout, value: Sequence[int], seconds: float) -> Vector | None:
    """Return a point where a layout takes a value, or None.

    Example:
        >>> point_of_value(IntegerLayout.from_strides({"i": 4, "j": 4}, (2, 3)), (7,), 2)
        (2, 1)
    """
    if any(m and not 0 <= x < m for x, m in zip(value, layout.moduli, strict=True)):
        return None
    constants = [b - x for b, x in zip(layout.offset, value, strict=True)]
    sides = [(0, extent) for extent in layout.extents]
    found = _solution(layout.matrix, constants, layout.moduli, sides, False, seconds)
    return None if found is None else tuple(found)


@solver.whole
def _solution(
    matrix: Sequence[Sequence[int]],
    constants: Sequence[int],
    moduli: Sequence[int],
    sides: Sequence[tuple[int, int]],
    nonzero: bool,
    seconds: float,
) -> list[int] | None:
    """Return x in a box with ``A x + b = 0``, each row modulo its modulus, x optionally nonzero; or None."""
    session = solver.session()
    z3, context = session.z3, session.context
    names = [z3.Int(f"x{k}", context) for k in range(len(sides))]
    for name, (low, high) in zip(names, sides, strict=True):
        session.solver.add(name >= low, name < high)
    if nonzero:
        session.solver.add(z3.Or([z3.BoolVal(False, context), *[name != 0 for name in names]]))
    for place, (row, b, m) in enumerate(zip(matrix, constants, moduli, strict=True)):
        total = z3.Sum([z3.IntVal(b, context), *[name * a for name, a in zip(names, row, strict=True) if a]])
        session.solver.add(total == (z3.Int(f"k{place}", context) * m if m else 0))
    return solver.solve(session, "values of integer layouts", names, seconds)
