"""Integer layouts as guarded quasi-affine layouts, for questions that only ISL decides and for inverses in pieces.

Implementation notes: the piecewise family is imported on use, because it would double the import time of this package.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from layoutalg.integer.layout import IntegerLayout
from layoutalg.integer.matrix import Vector

if TYPE_CHECKING:
    from layoutalg.piecewise import PiecewiseLayout

# reserved words of ISL's text form
_ISL_WORDS = frozenset(
    {"and", "or", "not", "implies", "exists", "all", "mod", "div", "floor", "floord", "ceil", "ceild", "min", "max"}
    | {"rat", "true", "false", "infty", "infinity", "nan", "vec", "if", "then", "else", "given"}
)


def isl_text(layout: IntegerLayout, axes: Sequence[str]) -> str:
    """Return the layout on its box as ISL text with these axis names and unnamed outputs.

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


def guarded(layout: IntegerLayout) -> PiecewiseLayout:
    """Return the layout with its box as the guard; outputs keep their names if ISL can print them.

    Example:
        >>> print(guarded(IntegerLayout.from_strides({"i": 5}, (3,), 1)))
        { [x0] -> [(1 + 3x0)] : 0 <= x0 <= 4 } as offset
    """
    return from_text(isl_text(layout, [f"x{k}" for k in range(len(layout.inputs))]), output_names(layout))


def from_text(text: str, outputs: tuple[str, ...]) -> PiecewiseLayout:
    """Return the layout of an ISL text, with these output names."""
    from layoutalg.piecewise import PiecewiseLayout

    return PiecewiseLayout(text, outputs=outputs)


def output_names(layout: IntegerLayout) -> tuple[str, ...]:
    """Return the output names if ISL can print them next to the axes ``x0, x1, ...``, else ``y0, y1, ...``.

    Example:
        >>> output_names(IntegerLayout.from_strides({"i": 5}, (3,), output="mod"))
        ('y0',)
    """
    words, axes = [*layout.out_dims], {f"x{k}" for k in range(len(layout.inputs))}
    plain = all(word.isascii() and word.lower() not in _ISL_WORDS and word not in axes for word in words)
    return tuple(words if plain else [f"y{k}" for k in range(len(words))])


def first_missed(layout: IntegerLayout, sides: Sequence[tuple[int, int]]) -> list[int] | None:
    """Return a point of a box of outputs (low, high) that is not a value of the layout, or None.

    Example:
        >>> first_missed(IntegerLayout.from_strides({"i": 2, "j": 2}, (1, 3)), [(0, 5)])
        [2]
    """
    from layoutalg.piecewise import PointSet

    image = guarded(layout).image
    box = " and ".join(f"{low} <= {axis} < {high}" for axis, (low, high) in zip(image.axes, sides, strict=True))
    point = PointSet(f"{{ [{', '.join(image.axes)}] : {box} }}").subtract(image).sample()
    return None if point is None else [int(str(point[axis])) for axis in image.axes]


def listed(layout: IntegerLayout, names: tuple[str, ...]) -> str:
    """Return the map from each value to its least point, first axis compared first, as ISL text in few runs.

    Args:
        layout: At least one point; time is quadratic in the number of points.
        names: Names of the outputs in the text.

    Example:
        >>> listed(IntegerLayout.from_strides({"i": 3}, (4,), 1), ("y",))
        '{ [y] -> [0 + 1*floor((y - 1)/4)] : 0 <= y - 1 <= 8 and (y - 1) mod 4 = 0 }'
    """
    from layoutalg.piecewise.runs import runs_text

    least: dict[Vector, Vector] = {}
    rows = layout.table().reshape(layout.size, -1).tolist()
    for point, row in zip(itertools.product(*[range(extent) for extent in layout.extents[::-1]]), rows, strict=True):
        value, turned = tuple(row), point[::-1]
        least[value] = min(turned, least.get(value, turned))
    return runs_text(least, names)


def chained(layout: IntegerLayout, names: Sequence[str]) -> str | None:
    """Return the inverse as ISL text if the outputs are chains of digits, else None."""
    if any(sum(map(bool, column)) > 1 for column in layout.columns):
        return None
    from layoutalg.piecewise.inverse import chain_inverse

    found = chain_inverse(guarded(layout).value, names)
    return None if found is None else found.text
