"""Right inverses of integer layouts: on digits of the values, on the whole image box, or on exactly the image.

If every input axis moves one output and the strides of each output, sorted by size, start with a chain 1, s_1,
s_1 s_2, ..., the coordinates are the digits of a value along the chain; a negative stride reads its digit backwards. So
on digits the right inverse is again an integer layout, without division. If the layout is a bijection onto a box, an
affine map modulo the extents is tried, which inverts skews and rotations such as ``(i, j) -> (i + j mod 4, j)``.
Otherwise the inverse is quasi-affine with a guard.

One piece is found by linear algebra if no modulus wraps and the columns of the axes of extent above 1 are independent
over Q: with k independent rows R of A, ``x = adj(A_R) (y_R - b_R) / det(A_R)``. A point y is a value exactly when these
quotients are integers inside the box and the other rows of A agree with y.

Implementation notes: a guarded inverse of more pieces is that of the piecewise layout. Each answer is checked against
the layout. The piecewise family is imported on use, because it would double the import time of this package.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from layoutalg.ground import clock
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, LayoutError, RepresentabilityError
from layoutalg.ground.limits import ISL_SECONDS
from layoutalg.integer.axes import same_function
from layoutalg.integer.compose import compose
from layoutalg.integer.forms import sampled_coordinates
from layoutalg.integer.lattice import NoSolution, solve_mod
from layoutalg.integer.layout import IntegerLayout, layout_or_refuse
from layoutalg.integer.matrix import Matrix, Vector, transpose

if TYPE_CHECKING:
    from layoutalg.piecewise import PiecewiseLayout

POINTS = 2**12
"""Largest layout on digits that is checked at every point."""


@dataclass(frozen=True, slots=True)
class RightInverse:
    """A right inverse on digits: ``f(layout(c)) = values(c)`` for every c in the box of digits.

    Args:
        layout: Maps digits of the values to the input axes of f.
        values: Maps the digits bijectively onto ``[low, low + extent)`` per output of f.
        box: The inverted values, [low, high) per output of f.
        confirmed: How many digits were evaluated and compared.
    """

    layout: IntegerLayout
    values: IntegerLayout
    box: tuple[tuple[str, tuple[int, int]], ...]
    confirmed: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ImageInverse:
    """A right inverse on exactly the image: ``f(layout(y)) = y`` for every value y of f, undefined elsewhere.

    Args:
        layout: Maps the outputs of f to its input axes, with guards; of several preimages it picks the
            lexicographically least, first axis first.
        confirmed: How many points of f were evaluated and compared.
    """

    layout: PiecewiseLayout
    confirmed: str = field(default="", compare=False)


def right_inverse(layout: IntegerLayout) -> RightInverse | ImageInverse:
    """Return a right inverse, in the simplest family that can represent it.

    Mathematically: if every axis of extent above 1 moves at most one output and no modulus wraps, the digits of output
    j are named ``<output>0, <output>1, ...``, fastest first, one per axis of the chain; values start at the least value
    that the chain's axes reach with all other axes at zero. Else, if the image is a box and the inverse is affine
    modulo the extents, the values themselves are the digits. Else the inverse on the image has guards.

    Args:
        layout: At least one point.

    Returns:
        ``RightInverse``, checked by composition and evaluation; its box is ``[low, low + 1)`` for an output without a
        stride 1 or -1. Or ``ImageInverse``.

    Example:
        >>> found = right_inverse(IntegerLayout.from_strides({"i": 4, "j": 6}, (6, -1), 5))
        >>> print(found.layout)
        Z[offset0:6=(0,-1), offset1:4=(1,0) -> i, j] + (0,5)
        >>> found.box
        (('offset', (0, 24)),)
        >>> turn = IntegerLayout((("i", 4), ("j", 4)), (("row", 4), ("col", 0)), ((1, 1), (0, 1)), (0, 0))
        >>> print(right_inverse(turn).layout)
        Z[row0:4=(1,0), col0:4=(3,1) -> i%4, j%4]
        >>> skew = IntegerLayout((("i", 3), ("j", 4)), (("s", 0), ("t", 0)), ((1, 1), (0, 1)), (0, 0))
        >>> print(right_inverse(skew).layout)
        { [s, t] -> [(s - t), (t)] : t >= -2 + s and 0 <= t <= 3 and t <= s } as i, j
    """
    _check_points(layout)
    return _by_digits(layout) or _by_residues(layout) or image_inverse(layout)


def image_inverse(layout: IntegerLayout) -> ImageInverse:
    """Return the right inverse on exactly the image, as a guarded quasi-affine layout.

    Returns:
        ``ImageInverse``, checked by evaluation at all points up to 2^16, at samples above (see ``confirmed``).

    Example:
        >>> found = image_inverse(IntegerLayout.from_strides({"i": 5}, (3,), 1))
        >>> print(found.layout)
        { [offset] -> [(floor((-1 + offset)/3))] : (-1 + offset) mod 3 = 0 and 0 < offset <= 13 } as i
        >>> found.confirmed
        'all 5 points'
    """
    _check_points(layout)
    axes = tuple(layout.in_dims)
    try:
        with clock.within(2 * ISL_SECONDS):
            text = one_piece(layout, output_names(layout))
            found = guarded(layout).right_inverse() if text is None else from_text(text, axes)
            inverse = found.of(found.value, axes)
            return ImageInverse(inverse, confirmed(layout, inverse))
    except (BudgetError, AdmissibilityError) as error:  # errors of ISL itself say nothing about the operands
        because = f"{error.diagnostic.code} {error.diagnostic.what}"
        witness = {"points": layout.size}
        what = "no inverse of the layout was found"
        raise BudgetError(Diagnostic("LA741", what, (str(layout),), because, witness)) from None


def _check_points(layout: IntegerLayout) -> None:
    if not layout_or_refuse(layout).size:
        raise RepresentabilityError(
            Diagnostic(
                code="LA735",
                what="there is no right inverse",
                where=(str(layout),),
                because="the layout has no points",
                witness={"size": 0},
            )
        )


def _by_digits(layout: IntegerLayout) -> RightInverse | None:
    """Return the inverse along chains of strides; None if an axis moves several outputs or a modulus wraps."""
    forms, extents, width, height = layout.forms, layout.extents, len(layout.inputs), len(layout.outputs)
    if any(m for _, _, m in forms) or any(sum(1 for row, _, _ in forms if row[k]) > 1 for k in range(width)):
        return None
    digits: list[tuple[str, int]] = []
    points: list[Vector] = []
    weights: list[Vector] = []
    base, starts, box = [0] * width, [], []
    for place, ((name, _), (row, low, _)) in enumerate(zip(layout.outputs, forms, strict=True)):
        weight, used, least = 1, 0, low
        while found := [k for k, a in enumerate(row) if abs(a) == weight]:
            # the longest axis with this stride reaches furthest
            axis = max(found, key=lambda k: extents[k])
            extent, down = extents[axis], row[axis] < 0
            digits.append((f"{name}{used}", extent))
            points.append(_unit(width, axis, -1 if down else 1))
            weights.append(_unit(height, place, weight))
            if down:
                base[axis] = extent - 1
                least -= weight * (extent - 1)
            weight, used = weight * extent, used + 1
        starts.append(least)
        box.append((name, (least, least + weight)))
    if len(dict(digits)) < len(digits):
        digits = [(f"digit{place}", extent) for place, (_, extent) in enumerate(digits)]
    ins = tuple((name, 0) for name, _ in layout.inputs)
    inverse = IntegerLayout(tuple(digits), ins, transpose(tuple(points), width), tuple(base))
    values = IntegerLayout(tuple(digits), layout.outputs, transpose(tuple(weights), height), tuple(starts))
    return _compared(layout, inverse, values, tuple(box))


def _unit(size: int, place: int, entry: int = 1) -> Vector:
    return tuple([entry if k == place else 0 for k in range(size)])


def _compared(
    layout: IntegerLayout, inverse: IntegerLayout, values: IntegerLayout, box: tuple[tuple[str, tuple[int, int]], ...]
) -> RightInverse | None:
    """Check an inverse by composition and evaluation; None if it is wrong."""
    try:
        exact = same_function(compose(layout, inverse), values)
    except LayoutError:
        return None
    seen = _confirmed_on_digits(layout, inverse, values) if exact else None
    return None if seen is None else RightInverse(inverse, values, box, seen)


def _by_residues(layout: IntegerLayout) -> RightInverse | None:
    """Return the inverse that is affine modulo the extents, where the image is a box of as many values as points."""
    low = [0 if m else bottom for (bottom, _), m in zip(layout.spans(), layout.moduli, strict=True)]
    sizes = [m or top - bottom + 1 for (bottom, top), m in zip(layout.spans(), layout.moduli, strict=True)]
    if math.prod(sizes) != layout.size:
        return None
    # values of an output over Z differ by less than its side, so they are residues modulo the side
    order = _box_order(layout, sizes)
    if order is None:
        return None
    turned, width = _reordered(layout, order), len(order)
    units = [_unit(len(sizes), place) for place in range(len(sizes))]
    found: list[Vector] = []
    for step in ((0,) * len(sizes), *units):
        # the particular solution is reduced modulo the kernel lattice, which puts it inside the box
        target = [a - b + c for a, b, c in zip(low, layout.offset, step, strict=True)]
        answer = solve_mod(turned, target, sizes, columns=width)
        if isinstance(answer, NoSolution):
            return None
        found.append(tuple(answer.particular[order.index(k)] for k in range(width)))
    columns = tuple(tuple(x - y for x, y in zip(point, found[0], strict=True)) for point in found[1:])
    digits = tuple((f"{name}0", size) for name, size in zip(layout.out_dims, sizes, strict=True))
    if len(dict(digits)) < len(digits):
        return None
    inverse = IntegerLayout(digits, layout.inputs, transpose(columns, width), found[0])
    values = IntegerLayout(digits, layout.outputs, tuple(units), tuple(low))
    return _compared(
        layout,
        inverse,
        values,
        tuple((n, (a, a + size)) for n, a, size in zip(layout.out_dims, low, sizes, strict=True)),
    )


def _reordered(layout: IntegerLayout, order: Vector) -> Matrix:
    return tuple([tuple([row[k] for k in order]) for row in layout.matrix])


def _box_order(layout: IntegerLayout, sizes: list[int]) -> Vector | None:
    """Return an order of the axes in which the pivots of the kernel lattice are the extents; or None."""
    width = len(layout.inputs)
    orders = itertools.permutations(range(width)) if width <= 4 else (tuple(range(width)), tuple(range(width))[::-1])
    for order in orders:
        answer = solve_mod(_reordered(layout, order), [0] * len(sizes), sizes, columns=width)
        basis = answer.basis if not isinstance(answer, NoSolution) else ()
        if len(basis) == width and all(basis[k][k] == layout.extents[axis] for k, axis in enumerate(order)):
            return order
    return None


# guarded forms as ISL text

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


# confirmation


def confirmed(layout: IntegerLayout, inverse: PiecewiseLayout) -> str:
    """Check that ``inverse`` returns the least point of each value of ``layout``; return at how many points.

    Example:
        >>> from layoutalg.piecewise import PiecewiseLayout
        >>> f = IntegerLayout.from_strides({"i": 5}, (3,))
        >>> confirmed(f, PiecewiseLayout("{ [y] -> [floor(y/3)] : 0 <= y <= 12 and y mod 3 = 0 }"))
        'all 5 points'
    """
    from layoutalg.piecewise.confirm import DisagreementError, inverse_of

    try:
        count = inverse_of(inverse.value, guarded(layout).value, least=True)
    except DisagreementError as error:
        what, where = "the inverse that was found is wrong", (str(layout), inverse.text[:200])
        raise BudgetError(Diagnostic("LA742", what, where, f"{error}, so it was discarded", error.at)) from None
    return f"all {count} points" if count == layout.size else f"{count} of {layout.size} points"


def _confirmed_on_digits(layout: IntegerLayout, inverse: IntegerLayout, values: IntegerLayout) -> str | None:
    """Return at how many digits c ``layout(inverse(c)) = values(c)`` was checked; None if it fails."""
    index = sampled_coordinates(inverse.size, POINTS)
    points = [inverse.value(inverse.coordinate(int(k))) for k in index]
    box = layout.extents
    if any(not 0 <= x < extent for point in points for x, extent in zip(point, box, strict=True)):
        return None
    if any(layout.value(p) != values.value(values.coordinate(int(k))) for p, k in zip(points, index, strict=True)):
        return None
    return f"all {len(index)} points" if len(index) == inverse.size else f"{len(index)} of {inverse.size} points"
