"""Composition of integer layouts, exact or refused with the first coordinate.

Main definitions: ``compose``, ``residue_form``, ``first_at_least``.

Main statements: a residue ``(a x + b) mod m`` is an affine function on a box exactly when the affine function through
its values at the origin and at the unit points stays in [0, m) on the box. Where it does not, the composition can still
be affine, because the outer layout may cancel the wraps; that is decided point by point on the axes that wrap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from layoutalg.ground import memory
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, RepresentabilityError
from layoutalg.integer.layout import IntegerLayout, grid, span
from layoutalg.integer.matrix import Vector

if TYPE_CHECKING:
    import numpy.typing as npt

WALK_POINTS = 2**20


def residue_form(row: Sequence[int], constant: int, modulus: int, extents: Sequence[int]) -> tuple[Vector, int] | None:
    """Return the affine form over Z that a residue is on a box, or None where it is not affine.

    Args:
        row: Coefficients; 0 modulus means that the form is already over Z.
        constant: The constant.
        modulus: The modulus.
        extents: The box.

    Example:
        >>> residue_form((7,), 3, 8, (4,)), residue_form((7,), 3, 8, (5,))
        (((-1,), 3), None)
    """
    if not modulus:
        return tuple(row), constant
    base = constant % modulus
    lifted = tuple(
        [(constant + a) % modulus - base if extent > 1 else 0 for a, extent in zip(row, extents, strict=True)]
    )
    if not math.prod(extents):
        return lifted, base
    low, high = span(lifted, base, extents)
    return (lifted, base) if low >= 0 and high < modulus else None


def first_at_least(row: Sequence[int], constant: int, extents: Sequence[int], bound: int) -> Vector | None:
    """Return the first point of a box, in the order of the flat index, where an affine form reaches ``bound``.

    Example:
        >>> first_at_least((1, 4), 0, (4, 3), 6)
        (2, 1)
    """
    if not math.prod(extents) or span(row, constant, extents)[1] < bound:
        return None
    # the slowest axis decides first: the least digit for which the faster axes can still reach the bound
    point = [0] * len(extents)
    for place in range(len(extents) - 1, -1, -1):
        reach = span(row[:place], constant, extents[:place])[1]
        missing = bound - reach
        step = row[place]
        if missing > 0:
            point[place] = -(-missing // step)
            constant += step * point[place]
    return tuple(point)


def _order(layout: IntegerLayout, point: Sequence[int]) -> int:
    """Return the flat index of a point."""
    index, weight = 0, 1
    for x, extent in zip(point, layout.extents, strict=True):
        index, weight = index + x * weight, weight * extent
    return index


def compose(outer: IntegerLayout, inner: IntegerLayout) -> IntegerLayout:
    """Return ``outer`` after ``inner``; see ``IntegerLayout.__matmul__``."""
    names = [name for name, _ in inner.outputs]
    if set(names) != set(outer.in_dims):
        only = sorted(set(names) ^ set(outer.in_dims))
        raise AdmissibilityError(
            Diagnostic(
                code="LA728",
                what="the integer layouts do not compose",
                where=(str(outer), f"after {inner}"),
                because=f"the inner layout leaves {names}, the outer one takes {list(outer.in_dims)}",
                witness={"names": only},
            )
        )
    extents = inner.extents
    forms = [
        residue_form(row, b, m, extents) for row, b, m in zip(inner.matrix, inner.offset, inner.moduli, strict=True)
    ]
    _check_box(outer, inner, forms)
    places = [names.index(name) for name, _ in outer.inputs]
    # values at the origin and at the unit points fix the only affine candidate
    origin = inner.value([0] * len(extents))
    units = [
        inner.value([int(k == place) for k in range(len(extents))]) if extent > 1 else None
        for place, extent in enumerate(extents)
    ]
    columns = inner.columns
    constant, rows = [], []
    for row, b in zip(outer.matrix, outer.offset, strict=True):
        constant.append(b + sum(a * origin[place] for a, place in zip(row, places, strict=True)))
        line = []
        for axis, unit in enumerate(units):
            values = columns[axis] if unit is None else [u - v for u, v in zip(unit, origin, strict=True)]
            line.append(sum(a * values[place] for a, place in zip(row, places, strict=True)))
        rows.append(tuple(line))
    candidate = IntegerLayout(inner.inputs, outer.outputs, tuple(rows), tuple(constant))
    _check_wraps(outer, inner, forms, places, candidate)
    return candidate


def _check_box(outer: IntegerLayout, inner: IntegerLayout, forms: Sequence[tuple[Vector, int] | None]) -> None:
    """Refuse an inner layout with a value outside the outer box; the witness is the first such point."""
    if not inner.size:
        return
    box = outer.in_dims
    worst: tuple[int, Vector, str, int] | None = None
    for place, ((name, modulus), form) in enumerate(zip(inner.outputs, forms, strict=True)):
        limit = box[name]
        if form is not None:
            row, b = form
            candidates = [
                first_at_least(row, b, inner.extents, limit),
                first_at_least([-a for a in row], -b, inner.extents, 1),
            ]
        elif modulus <= limit:
            continue
        else:
            candidates = [_first_value_at_least(inner, place, limit)]
        for point in candidates:
            if point is not None and (worst is None or _order(inner, point) < worst[0]):
                worst = (_order(inner, point), point, name, inner.value(point)[place])
    if worst is not None:
        _, point, name, value = worst
        raise AdmissibilityError(
            Diagnostic(
                code="LA729",
                what="the inner layout leaves the box of the outer one",
                where=(str(outer), f"after {inner}"),
                because=f"{name} = {value} is not in [0, {box[name]})",
                witness={"coordinate": dict(zip(inner.in_dims, point, strict=True)), "axis": name, "value": value},
            )
        )


def _walk(inner: IntegerLayout, axes: Sequence[int], where: tuple[str, ...]) -> list[Any]:
    """Return coordinate arrays over the given axes, zero elsewhere, or refuse by budget."""
    points = math.prod(inner.extents[axis] for axis in axes)
    if points > WALK_POINTS:
        raise BudgetError(
            Diagnostic(
                code="LA734",
                what="too many points to decide",
                where=where,
                because=f"the axes that wrap hold {points} points, the limit is {WALK_POINTS}",
                witness={"points": points, "limit": WALK_POINTS},
            )
        )
    return list(grid([extent if axis in axes else 1 for axis, extent in enumerate(inner.extents)]))


def _first(inner: IntegerLayout, axes: Sequence[int], bad: npt.NDArray[Any]) -> Vector | None:
    """Return the first point where an array over ``_walk`` is true."""
    flat = bad.reshape(-1)
    place = int(flat.argmax()) if flat.size else 0
    if not flat.size or not flat[place]:
        return None
    point = []
    for axis, extent in enumerate(inner.extents):
        place, digit = divmod(place, extent if axis in axes else 1)
        point.append(digit)
    return tuple(point)


def _first_value_at_least(inner: IntegerLayout, place: int, limit: int) -> Vector | None:
    axes = [axis for axis, a in enumerate(inner.matrix[place]) if a and inner.extents[axis] > 1]
    points = _walk(inner, axes, (str(inner),))
    shape = tuple(inner.extents[axis] if axis in axes else 1 for axis in range(len(inner.extents)))[::-1]
    values = inner._arrays(points, shape)[place]
    return _first(inner, axes, np.asarray(values >= limit))


def _check_wraps(
    outer: IntegerLayout,
    inner: IntegerLayout,
    forms: Sequence[tuple[Vector, int] | None],
    places: Sequence[int],
    candidate: IntegerLayout,
) -> None:
    """Refuse unless the candidate equals the composition everywhere."""
    if not inner.size:
        return
    wrapping: set[int] = set()
    for row, modulus in zip(outer.matrix, outer.moduli, strict=True):
        for a, place in zip(row, places, strict=True):
            turn = a * inner.moduli[place]
            # a whole turn of the inner output must be invisible to the outer one
            if forms[place] is None and (turn % modulus if modulus else turn):
                wrapping.add(place)
    if not wrapping:
        return
    axes = [
        axis
        for axis, extent in enumerate(inner.extents)
        if extent > 1 and any(inner.matrix[place][axis] for place in wrapping)
    ]
    where = (str(outer), f"after {inner}")
    points = _walk(inner, axes, where)
    count = math.prod(inner.extents[axis] for axis in axes)
    memory.reserve(f"{outer} after {inner}", count, inner.bytes_per_point + 2 * outer.bytes_per_point)
    shape = tuple(inner.extents[axis] if axis in axes else 1 for axis in range(len(inner.extents)))[::-1]
    middle = inner._arrays(points, shape)
    wanted = outer._arrays([middle[place] for place in places], shape)
    found = candidate._arrays(points, shape)
    bad = np.zeros(shape, dtype=bool)
    for w, f in zip(wanted, found, strict=True):
        bad |= np.asarray(w != f, dtype=bool)
    point = _first(inner, axes, bad)
    if point is None:
        return
    exact = outer.value([inner.value(point)[place] for place in places])
    raise RepresentabilityError(
        Diagnostic(
            code="LA730",
            what="the composition is not an integer layout",
            where=where,
            because=f"a modulus of the inner layout wraps: the value is {exact}, the affine map through the origin and "
            f"the unit points gives {candidate.value(point)}",
            witness={
                "coordinate": dict(zip(inner.in_dims, point, strict=True)),
                "value": exact,
                "affine": candidate.value(point),
            },
        )
    )
