"""Check inverses by evaluating the layout at the points they return, independently of the engine that found them.

Implementation notes: small layouts are checked at all points, larger ones at corners, unit points and random points. A
guarded inverse is checked in the final form that ISL printed.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.integer.layout import IntegerLayout
from layoutalg.integer.matrix import Vector

if TYPE_CHECKING:
    from layoutalg.piecewise import PiecewiseLayout

POINTS = 2**16
"""Largest layout that is checked at every point."""
SAMPLES = 2**11
VALUES = 2**14
"""Points at which z3's answers are checked."""
AROUND = 2**12
"""Largest box around the values that is checked whole; about as many neighbours of values are checked, too."""
Columns = list["npt.NDArray[Any]"]


def sampled_points(layout: IntegerLayout, most: int = POINTS, samples: int = SAMPLES) -> Columns:
    """Return all points of a box of at most ``most`` points, else corners, unit points and random ones; axis by axis.

    Example:
        >>> [axis.tolist() for axis in sampled_points(IntegerLayout.identity({"i": 2, "j": 2}))]
        [[0, 1, 0, 1], [0, 0, 1, 1]]
    """
    extents = layout.extents
    if layout.size <= most:
        index = np.arange(layout.size, dtype=np.int64)
        columns = []
        for extent in extents:
            columns.append(index % extent)
            index = index // extent
        return columns
    rng = random.Random(0)  # the same points on every call
    points = [[0] * len(extents), [extent - 1 for extent in extents]]
    points += [[int(k == place and extent > 1) for k, extent in enumerate(extents)] for place in range(len(extents))]
    points += [[rng.choice((0, extent - 1)) for extent in extents] for _ in range(64)]
    points += [[rng.randrange(extent) for extent in extents] for _ in range(samples)]
    return [_column([point[k] for point in points]) for k in range(len(extents))]


def sampled_values(layout: IntegerLayout) -> tuple[dict[Vector, Vector], int]:
    """Return the values at sample points, with a point of each, and the number of distinct points.

    Example:
        >>> sampled_values(IntegerLayout.from_strides({"i": 3}, (1,), modulus=2))
        ({(0,): (2,), (1,): (1,)}, 3)
    """
    points = set(zip(*[column.tolist() for column in sampled_points(layout, VALUES, VALUES)], strict=True))
    return {layout.value(point): point for point in sorted(points)}, len(points)


def confirmed(layout: IntegerLayout, inverse: PiecewiseLayout) -> str:
    """Check that ``inverse`` returns the least point of each value of ``layout``; return at how many points.

    The inverse must return a point of the box with the right value, no checked point with that value may be less, and
    neighbours of values where the inverse is defined must be values, too.

    Example:
        >>> from layoutalg.piecewise import PiecewiseLayout
        >>> f = IntegerLayout.from_strides({"i": 5}, (3,))
        >>> confirmed(f, PiecewiseLayout("{ [y] -> [floor(y/3)] : 0 <= y <= 12 and y mod 3 = 0 }"))
        'all 5 points'
    """
    points = sampled_points(layout)
    count = len(points[0]) if points else 1
    values = _values(layout, points, count)
    defined, found = _invert(inverse, values, count)
    if not defined.all():
        raise _wrong(layout, inverse, values, int(np.argmin(defined)))
    _agree(layout, inverse, values, found, count)
    wrong = _less(points, found, count)
    if wrong is not None:
        raise _wrong(layout, inverse, values, wrong)
    around = _around(layout, values)
    size = len(around[0]) if around else 0
    if size:
        inside, found = _invert(inverse, around, size)
        kept = [column[inside] for column in around]
        _agree(layout, inverse, kept, [column[inside] for column in found], int(inside.sum()))
    return f"all {count} points" if layout.size <= POINTS else f"{count} of {layout.size} points"


def confirmed_on_digits(layout: IntegerLayout, inverse: IntegerLayout, values: IntegerLayout) -> str | None:
    """Return at how many digits c ``layout(inverse(c)) = values(c)`` was checked; None if it fails.

    Example:
        >>> f = IntegerLayout.from_strides({"i": 4}, (-1,), 3)
        >>> g = IntegerLayout.from_strides({"d": 4}, (-1,), 3, "i")
        >>> confirmed_on_digits(f, g, IntegerLayout.identity({"d": 4}))
        'all 4 points'
    """
    digits = sampled_points(inverse)
    count = len(digits[0]) if digits else 1
    points = _values(inverse, digits, count)
    for column, extent in zip(points, layout.extents, strict=True):
        if bool(((column < 0) | (column >= extent)).any()):
            return None
    for one, other in zip(_values(layout, points, count), _values(values, digits, count), strict=True):
        if bool(np.asarray(one != other, dtype=bool).any()):
            return None
    return f"all {count} points" if inverse.size <= POINTS else f"{count} of {inverse.size} points"


def _column(numbers: Sequence[int]) -> npt.NDArray[Any]:
    small = all(-(2**62) < number < 2**62 for number in numbers)
    return np.array(numbers, dtype=np.int64 if small else object)


def _values(layout: IntegerLayout, points: Sequence[npt.NDArray[Any]], count: int) -> Columns:
    """Return the outputs at points inside the box."""
    answers = layout.apply(dict(zip(layout.in_dims, points, strict=True)))
    return [np.broadcast_to(np.asarray(answer), (count,)) for answer in answers.values()]


def _invert(inverse: PiecewiseLayout, values: Columns, count: int) -> tuple[npt.NDArray[np.bool_], Columns]:
    """Return where the inverse is defined, and its values there (0 elsewhere)."""
    coords = dict(zip(inverse.axes, values, strict=True))
    inside = np.broadcast_to(inverse.contains(coords), (count,))
    kept = {name: column[inside] for name, column in coords.items()}
    answers = []
    for answer in inverse.apply(kept).values() if inside.any() else ():
        column = np.zeros(count, dtype=np.asarray(answer).dtype)
        column[inside] = answer
        answers.append(column)
    return inside, answers or [np.zeros(count, dtype=np.int64) for _ in inverse.out_dims]


def _agree(layout: IntegerLayout, inverse: PiecewiseLayout, values: Columns, found: Columns, count: int) -> None:
    """Raise if the inverse returns a point outside the box or with another value."""
    if not count:
        return
    good = np.ones(count, dtype=bool)
    for column, extent in zip(found, layout.extents, strict=True):
        good &= np.asarray((column >= 0) & (column < extent), dtype=bool)
    if good.all():
        for wanted, got in zip(values, _values(layout, found, count), strict=True):
            good &= np.asarray(wanted == got, dtype=bool)
    if not good.all():
        raise _wrong(layout, inverse, values, int(np.argmin(good)))


def _less(points: Columns, found: Columns, count: int) -> int | None:
    """Return a position where a checked point is less than the one found, first axis compared first."""
    decided, wrong = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    for one, other in zip(points, found, strict=True):
        wrong |= ~decided & np.asarray(one < other, dtype=bool)
        decided |= np.asarray(one != other, dtype=bool)
    return int(np.argmax(wrong)) if wrong.any() else None


def _around(layout: IntegerLayout, values: Columns) -> Columns:
    """Return the box around the values if it is small, and unit and stride neighbours of some values."""
    if not values:
        return []
    bounds = [(int(column.min()) - 1, int(column.max()) + 2) for column in values]
    places = [[int(k == place) for k in range(len(values))] for place in range(len(values))]
    strides = [column for column, extent in zip(layout.columns, layout.extents, strict=True) if extent > 1]
    steps = [[sign * a for a in step] for step in (*places, *strides) for sign in (-1, 1)]
    if any(abs(a) >= 2**62 for step in steps for a in step):
        values = [column.astype(object) for column in values]
    some = max(1, AROUND // len(steps))
    near = [
        np.concatenate([column[:some] + step[k] for step in steps] + [column[-some:] + step[k] for step in steps])
        for k, column in enumerate(values)
    ]
    if math.prod(high - low for low, high in bounds) > AROUND:
        return near
    box = list(itertools.product(*[range(low, high) for low, high in bounds]))
    return [np.concatenate([column, _column([place[k] for place in box])]) for k, column in enumerate(near)]


def _wrong(layout: IntegerLayout, inverse: PiecewiseLayout, values: Columns, place: int) -> BudgetError:
    value = tuple(int(column[place]) for column in values)
    return BudgetError(
        Diagnostic(
            code="LA742",
            what="the inverse that was found is wrong",
            where=(str(layout), inverse.text[:200]),
            because=f"at the value {value} it does not return the least point, so it was discarded",
            witness={"value": value},
        )
    )
