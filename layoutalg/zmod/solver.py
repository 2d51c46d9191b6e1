"""Questions about integer layouts for z3, asked only when the cheaper engines are exhausted.

Main definitions: ``collision``, ``common_value``.

Implementation notes: linear integer arithmetic on the coordinates (the digits), never on a flat index; one free
multiple of the modulus per output that has one. Each call has its own context and a time budget. z3 is imported on use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from layoutalg.zmod.layout import IntegerLayout
from layoutalg.zmod.matrix import Vector


def _ask(build: Callable[[Any, Any, Any], list[list[Any]]], milliseconds: int) -> list[list[int]] | None:
    """Return values of the variables (empty where there are none), or None where z3 gave up."""
    import z3

    context = z3.Context()
    solver = z3.Solver(ctx=context)
    solver.set("timeout", milliseconds)
    groups = build(z3, context, solver)
    answer = solver.check()
    if answer == z3.unsat:
        return []
    if answer != z3.sat:
        return None
    model = solver.model()
    return [[model.eval(name, model_completion=True).as_long() for name in group] for group in groups]


def collision(layout: IntegerLayout, milliseconds: int) -> tuple[()] | tuple[Vector, Vector] | None:
    """Return two points with one value, () where there are none, None where z3 gave up.

    Example:
        >>> x, y = collision(IntegerLayout.from_strides({"i": 4, "j": 4}, (2, 3)), 2000)
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

    found = _ask(build, milliseconds)
    if not found:
        return None if found is None else ()
    return tuple(max(d, 0) for d in found[0]), tuple(max(-d, 0) for d in found[0])


def common_value(
    first: IntegerLayout, second: IntegerLayout, milliseconds: int
) -> tuple[()] | tuple[Vector, Vector] | None:
    """Return a point of each layout with the same value, () where there is none, None where z3 gave up.

    Example:
        >>> f = IntegerLayout.from_strides({"i": 4}, (2,))
        >>> common_value(f, IntegerLayout.from_strides({"i": 4}, (2,), 1), 2000)
        ()
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

    found = _ask(build, milliseconds)
    if not found:
        return None if found is None else ()
    return tuple(found[0]), tuple(found[1])
