"""Exact composition of integer layouts, or the first coordinate where it is not an integer layout.

If a residue of the inner layout is not affine on the box (``forms.residue_form``), the composition can still be affine,
because the outer layout may cancel the wraps; this is decided point by point over the axes that wrap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from layoutalg.ground import memory
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, RepresentabilityError
from layoutalg.ground.layout import composes
from layoutalg.integer.forms import first_at_least, grid
from layoutalg.integer.layout import IntegerLayout
from layoutalg.integer.matrix import Form, Vector

if TYPE_CHECKING:
    import numpy.typing as npt

WALK_POINTS = 2**20


@composes(IntegerLayout, IntegerLayout)
def compose(outer: IntegerLayout, inner: IntegerLayout) -> IntegerLayout:
    """Return ``outer`` after ``inner``: the outputs of ``inner`` are the input axes of ``outer``, by name.

    Example:
        >>> rows = IntegerLayout.from_strides({"row": 4, "col": 8}, (10, 1))
        >>> turn = IntegerLayout((("x", 8),), (("col", 0), ("row", 0)), ((-1,), (0,)), (7, 2))
        >>> str(rows @ turn)
        'Z[x:8=(-1) -> offset] + (27)'
    """
    names = [name for name, _ in inner.outputs]
    if set(names) != set(outer.in_dims):
        only = sorted(set(names) ^ set(outer.in_dims))
        raise AdmissibilityError(
            Diagnostic(
                code="LA728",
                what="the integer layouts do not compose",
                where=(str(outer), f"after {inner}"),
                because=f"the inner layout has the outputs {names}, the outer one the axes {list(outer.in_dims)}",
                witness={"names": only},
            )
        )
    extents, forms = inner.extents, inner.forms
    _check_box(outer, inner, forms)
    places = [names.index(name) for name, _ in outer.inputs]
    # the values at the origin and the unit points determine the only affine candidate
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
    _check_wraps(outer, inner, [(place, forms[place]) for place in places], candidate)
    return candidate


def _check_box(outer: IntegerLayout, inner: IntegerLayout, forms: Sequence[Form]) -> None:
    """Raise if the inner layout has a value outside the outer box; the witness is the first such point."""
    if not inner.size:
        return
    box = outer.in_dims
    worst: tuple[Vector, Vector, str, int] | None = None
    for place, (name, (row, b, wrap)) in enumerate(zip(inner.out_dims, forms, strict=True)):
        limit = box[name]
        if not wrap:
            candidates = [
                first_at_least(row, b, inner.extents, limit),
                first_at_least([-a for a in row], -b, inner.extents, 1),
            ]
        elif wrap <= limit:
            continue
        else:
            candidates = [_first_value_at_least(inner, place, limit)]
        for point in candidates:
            # in flat index order the slowest axis decides
            if point is not None and (worst is None or point[::-1] < worst[0]):
                worst = (point[::-1], point, name, inner.value(point)[place])
    if worst is not None:
        _, point, name, value = worst
        raise AdmissibilityError(
            Diagnostic(
                code="LA729",
                what="a value of the inner layout is out of bounds for the outer one",
                where=(str(outer), f"after {inner}"),
                because=f"{name} = {value} is not in [0, {box[name]})",
                witness={"coordinate": dict(zip(inner.in_dims, point, strict=True)), "axis": name, "value": value},
            )
        )


def _swept(layout: IntegerLayout, axes: Sequence[int], where: tuple[str, ...]) -> list[npt.NDArray[Any]]:
    """Return each output over the box of some axes, in flat order, the others at 0; raise on too many points."""
    box = [extent if axis in axes else 1 for axis, extent in enumerate(layout.extents)]
    points = math.prod(box)
    if points > WALK_POINTS:
        raise BudgetError(
            Diagnostic(
                code="LA734",
                what="too many points to decide",
                where=where,
                because=f"the wrapping axes span {points} points; the limit is {WALK_POINTS}",
                witness={"points": points, "limit": WALK_POINTS},
            )
        )
    return [value.reshape(-1) for value in layout._arrays(grid(box), tuple(box[::-1]))]


def _first(layout: IntegerLayout, axes: Sequence[int], bad: npt.NDArray[np.bool_]) -> Vector | None:
    """Return the first point where an array over the box of some axes is true, or None."""
    place = int(bad.argmax()) if bad.size else 0
    if not bad.size or not bad[place]:
        return None
    point = [0] * len(layout.inputs)
    for axis in axes:
        place, point[axis] = divmod(place, layout.extents[axis])
    return tuple(point)


def _first_value_at_least(inner: IntegerLayout, place: int, limit: int) -> Vector | None:
    axes = [axis for axis, a in enumerate(inner.forms[place][0]) if a]
    return _first(inner, axes, np.asarray(_swept(inner, axes, (str(inner),))[place] >= limit, dtype=bool))


def _check_wraps(
    outer: IntegerLayout, inner: IntegerLayout, taken: Sequence[tuple[int, Form]], candidate: IntegerLayout
) -> None:
    """Raise unless the candidate, the only affine one, equals the composition everywhere.

    ``taken`` has, per axis of the outer layout, position and form of the inner output that feeds it.
    """
    wrapping: list[Vector] = []
    for row, modulus in zip(outer.matrix, outer.moduli, strict=True):
        for a, (_, (strides, _, wrap)) in zip(row, taken, strict=True):
            # the wrap of an inner output matters only if the outer layout does not cancel it
            if a * wrap % modulus if modulus else a * wrap:
                wrapping.append(strides)
    if not wrapping or not inner.size:
        return
    axes = [axis for axis in range(len(inner.inputs)) if any(strides[axis] for strides in wrapping)]
    where = (str(outer), f"after {inner}")
    count = math.prod([inner.extents[axis] for axis in axes])
    memory.reserve(f"{outer} after {inner}", min(count, WALK_POINTS), inner.bytes_per_point + 2 * outer.bytes_per_point)
    middle, found = _swept(inner, axes, where), _swept(candidate, axes, where)
    bad = np.zeros(count, dtype=bool)
    for wanted, value in zip(outer._arrays([middle[place] for place, _ in taken], bad.shape), found, strict=True):
        bad |= np.asarray(wanted != value, dtype=bool)
    point = _first(inner, axes, bad)
    if point is None:
        return
    exact = outer.value([inner.value(point)[place] for place, _ in taken])
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
