"""Integer layouts as guarded quasi-affine layouts, for the questions that only ISL decides.

Main definitions: ``isl_text``, ``guarded``, ``output_names``, ``first_missed``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from layoutalg.integer.layout import IntegerLayout

if TYPE_CHECKING:
    from layoutalg.piecewise import ParametricLayout

# names that ISL's text form keeps for itself
_ISL_WORDS = frozenset(
    {"and", "or", "not", "implies", "exists", "all", "mod", "div", "floor", "floord", "ceil", "ceild", "min", "max"}
    | {"rat", "true", "false", "infty", "infinity", "nan", "vec", "if", "then", "else", "given"}
)


def isl_text(layout: IntegerLayout, axes: Sequence[str]) -> str:
    """Return the layout on its box as ISL text, with these names of axes and outputs without names.

    Example:
        >>> isl_text(IntegerLayout.from_strides({"i": 5}, (3,), 1, modulus=7), ["c0"])
        '{ [c0] -> [(1 + 3*c0) mod 7] : 0 = 0 and 0 <= c0 < 5 }'
    """
    values = []
    for row, b, m in zip(layout.matrix, layout.offset, layout.moduli, strict=True):
        total = " + ".join([str(b), *[f"{a}*{axis}" for a, axis in zip(row, axes, strict=True) if a]])
        values.append(f"({total}) mod {m}" if m else total)
    box = " and ".join(["0 = 0", *[f"0 <= {axis} < {e}" for axis, e in zip(axes, layout.extents, strict=True)]])
    return f"{{ [{', '.join(axes)}] -> [{', '.join(values)}] : {box} }}"


def guarded(layout: IntegerLayout) -> ParametricLayout:
    """Return the layout with its box as the guard; outputs keep their names where ISL can print them.

    Raises: BudgetError: LA222.

    Example:
        >>> print(guarded(IntegerLayout.from_strides({"i": 5}, (3,), 1)))
        { [x0] -> [(1 + 3x0)] : 0 <= x0 <= 4 }
    """
    from layoutalg.piecewise import ParametricLayout

    axes = [f"x{k}" for k in range(len(layout.inputs))]
    return ParametricLayout(isl_text(layout, axes), outputs=output_names(layout))


def output_names(layout: IntegerLayout) -> tuple[str, ...]:
    """Return the names of the outputs where ISL can print them beside the axes ``x0, x1, ...``, else ``y0, y1, ...``.

    Example:
        >>> output_names(IntegerLayout.from_strides({"i": 5}, (3,), output="mod"))
        ('y0',)
    """
    words, axes = [*layout.out_dims], {f"x{k}" for k in range(len(layout.inputs))}
    plain = all(word.isascii() and word.lower() not in _ISL_WORDS and word not in axes for word in words)
    return tuple(words if plain else [f"y{k}" for k in range(len(words))])


def first_missed(layout: IntegerLayout, sides: Sequence[tuple[int, int]]) -> list[int] | None:
    """Return a point of a box of outputs (low, high) that is no value of the layout, None where there is none.

    Raises: BudgetError: LA222.

    Example:
        >>> first_missed(IntegerLayout.from_strides({"i": 2, "j": 2}, (1, 3)), [(0, 5)])
        [2]
    """
    from layoutalg.piecewise.points import ParametricSet

    image = guarded(layout).image
    box = " and ".join(f"{low} <= {axis} < {high}" for axis, (low, high) in zip(image.axes, sides, strict=True))
    point = ParametricSet(f"{{ [{', '.join(image.axes)}] : {box} }}").subtract(image).sample()
    return None if point is None else [int(str(point[axis])) for axis in image.axes]
