"""Questions about integer layouts for z3, after the cheaper engines.

Main definitions: ``collision``, ``common_value``, ``point_of_value``.

Implementation notes: linear integer arithmetic on the coordinates (the digits), never on a flat index; one free
multiple of the modulus per output that has one. Sessions, time and the check of models are those of ``ground.solver``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from layoutalg.ground import solver
from layoutalg.integer.layout import IntegerLayout
from layoutalg.integer.matrix import Vector


def _solved(build: Callable[[Any, Any, Any], list[list[Any]]], seconds: float) -> list[list[int]] | None:
    """Return values of the variables, group by group, or None where there are none."""
    session = solver.session()
    groups = build(session.z3, session.context, session.solver)
    found = solver.solve(session, "values of integer layouts", [name for group in groups for name in group], seconds)
    if found is None:
        return None
    rest = iter(found)
    return [[next(rest) for _ in group] for group in groups]


def collision(layout: IntegerLayout, seconds: float) -> tuple[Vector, Vector] | None:
    """Return two points with one value, None where there are none.

    Raises: BudgetError: LA001.

    Example:
        >>> x, y = collision(IntegerLayout.from_strides({"i": 4, "j": 4}, (2, 3)), 2)
        >>> 2 * x[0] + 3 * x[1] == 2 * y[0] + 3 * y[1], x != y
        (True, True)
    """

    def build(z3: Any, context: Any, solver: Any) -> list[list[Any]]:
        names = [z3.Int(f"d{k}", context) for k in range(len(layout.inputs))]
        for name, extent in zip(names, layout.extents, strict=True):
            solver.add(name > -extent, name < extent)
        solver.add(z3.Or([z3.BoolVal(False, context), *[name != 0 for name in names]]))
        for place, (row, m) in enumerate(zip(layout.matrix, layout.moduli, strict=True)):
            total = z3.Sum([z3.IntVal(0, context), *[name * a for name, a in zip(names, row, strict=True)]])
            solver.add(total == (z3.Int(f"k{place}", context) * m if m else 0))
        return [names]

    found = _solved(build, seconds)
    return None if found is None else (tuple(max(d, 0) for d in found[0]), tuple(max(-d, 0) for d in found[0]))


def point_of_value(layout: IntegerLayout, value: Sequence[int], seconds: float) -> Vector | None:
    """Return a point where a layout takes a value, None where there is none.

    Raises: BudgetError: LA001.

    Example:
        >>> point_of_value(IntegerLayout.from_strides({"i": 4, "j": 4}, (2, 3)), (7,), 2)
        (2, 1)
    """
    constant = IntegerLayout((), layout.outputs, ((),) * len(layout.outputs), tuple(value))
    if constant.offset != tuple(value):  # not a residue
        return None
    found = common_value(layout, constant, seconds)
    return None if found is None else found[0]


def common_value(first: IntegerLayout, second: IntegerLayout, seconds: float) -> tuple[Vector, Vector] | None:
    """Return a point of each layout with the same value, None where there is none.

    Raises: BudgetError: LA001.

    Example:
        >>> f = IntegerLayout.from_strides({"i": 4}, (2,))
        >>> common_value(f, IntegerLayout.from_strides({"i": 4}, (2,), 1), 2) is None
        True
    """

    def build(z3: Any, context: Any, solver: Any) -> list[list[Any]]:
        groups = []
        for letter, layout in (("x", first), ("y", second)):
            names = [z3.Int(f"{letter}{k}", context) for k in range(len(layout.inputs))]
            for name, extent in zip(names, layout.extents, strict=True):
                solver.add(name >= 0, name < extent)
            groups.append(names)
        for place, m in enumerate(first.moduli):
            sides = [
                z3.Sum(
                    [
                        z3.IntVal(layout.offset[place], context),
                        *[name * a for name, a in zip(names, layout.matrix[place], strict=True)],
                    ]
                )
                for layout, names in ((first, groups[0]), (second, groups[1]))
            ]
            solver.add(sides[0] - sides[1] == (z3.Int(f"k{place}", context) * m if m else 0))
        return groups

    found = _solved(build, seconds)
    return None if found is None else (tuple(found[0]), tuple(found[1]))
