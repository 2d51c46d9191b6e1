"""Compose tables with layouts of every family by lookup, and invert tables by listing.

Notation: a table is a function of flat coordinates, dimension 0 fastest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.bridges.normal import checked
from layoutalg.bridges.values import values_at
from layoutalg.cute import ComposedLayout, CoordinateLayout, CuteLayout, Morphism, Swizzle
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, RepresentabilityError, shown
from layoutalg.ground.layout import composes
from layoutalg.ground.limits import POINTS
from layoutalg.ground.listed import ListedLayout
from layoutalg.hierarchy import HierarchicalLayout
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout

OTHERS = (
    CuteLayout, ComposedLayout, CoordinateLayout, Morphism, Swizzle, LinearLayout, IntegerLayout, HierarchicalLayout,
    PiecewiseLayout,
)  # fmt: skip


def looked_up(outer: Any, inner: Any) -> ListedLayout:
    """Return ``outer`` after ``inner`` as a table over the dimensions of ``inner``; at least one of them is a table.

    Mathematically: c -> outer(inner(c)) on flat coordinates; several outputs of ``inner`` are coordinates of ``outer``,
    by name if the names match its axes, else by position.

    Raises: AdmissibilityError: LA650, LA651. RepresentabilityError: LA643. BudgetError: LA653. MalformedError: LA234.

    Example:
        >>> from layoutalg.ground.listed import listed
        >>> looked_up(listed([5, 3, 8, 1]), CuteLayout((2, 2), (2, 1))).table().tolist()
        [5, 8, 3, 1]
    """
    first = ComposedLayout(inner, 0, CuteLayout(outer.size, 1)) if isinstance(inner, Swizzle) else _checked(inner)
    if first.size > POINTS or first.size < 1:
        because = f"a table has 1 to {POINTS} entries, not {first.size}"
        raise BudgetError(Diagnostic("LA653", "no family was found for the composition", (), because))
    middle = values_at(first, np.arange(first.size, dtype=np.int64))
    if isinstance(outer, Swizzle):
        last: Any = ComposedLayout(outer, 0, CuteLayout(max(1, int(middle.max()) + 1), 1))
    else:
        last = _checked(outer)
    names = dict(first.out_dims)
    if middle.shape[1] == 1 < len(names) and set(names) == set(last.in_dims):  # flat values of several outputs
        middle = np.stack(np.unravel_index(middle[:, 0], tuple(names.values()), order="F"), axis=-1)
    flat = middle[:, 0] if middle.shape[1] == 1 else _flat(middle, list(names), last)
    outside = np.flatnonzero((flat < 0) | (flat >= last.size))
    if len(outside):
        at = int(outside[0])
        witness = {"coordinate": at, "value": int(flat[at]), "size": last.size}
        because = f"coordinate {at} maps to {int(flat[at])}, the outer layout has {last.size} points"
        raise AdmissibilityError(
            Diagnostic("LA651", "the inner layout leaves the domain of the outer one", (), because, witness)
        )
    values = values_at(last, flat)
    if values.shape[1] != 1:
        because = f"a table has one output, not {list(last.out_dims)}"
        raise RepresentabilityError(Diagnostic("LA643", "the composition is not a table", (), because))
    return ListedLayout(_extents(first), tuple(int(value) for value in values[:, 0]))


for _kind in OTHERS:
    composes(ListedLayout, _kind)(looked_up)
    composes(_kind, ListedLayout)(looked_up)
composes(ListedLayout, ListedLayout)(looked_up)


def left_table(layout: ListedLayout) -> ListedLayout:
    """Return R on 0..max with R(layout(c)) = c, the smallest such c; 0 for numbers the layout never takes.

    Raises: AdmissibilityError: LA649. BudgetError: LA653.

    Example:
        >>> from layoutalg.ground.listed import listed
        >>> left_table(listed([4, 0, 2])).table().tolist()
        [1, 0, 2, 0, 0]
    """
    place = _places(layout)
    return ListedLayout((len(place),), tuple(np.maximum(place, 0).tolist()))


def right_table(layout: ListedLayout) -> ListedLayout:
    """Return the longest R with layout(R(i)) = i for all i below its size, with the least coordinates.

    Raises: AdmissibilityError: LA131, LA649. BudgetError: LA653.

    Example:
        >>> from layoutalg.ground.listed import listed
        >>> right_table(listed([4, 0, 2, 1])).table().tolist()
        [1, 3, 2]
    """
    place = _places(layout)
    if place[0] < 0:
        because = "no coordinate has the value 0, where a right inverse starts"
        raise AdmissibilityError(Diagnostic("LA131", "the table has no right inverse", (str(layout),), because))
    missing = np.flatnonzero(place < 0)
    size = int(missing[0]) if len(missing) else len(place)
    return ListedLayout((size,), tuple(place[:size].tolist()))


def _places(layout: ListedLayout) -> npt.NDArray[np.int64]:
    """Return the least coordinate of each value from 0 to the greatest, -1 where there is none."""
    values = layout.table()
    if int(values.min()) < 0:
        at = int(values.argmin())
        because = f"the value at {at} is {int(values[at])}"
        raise AdmissibilityError(Diagnostic("LA649", "an inverse needs values >= 0", (str(layout),), because))
    top = int(values.max()) + 1
    if top > POINTS:
        because = f"the inverse has {top} entries, a table at most {POINTS}"
        raise BudgetError(Diagnostic("LA653", "no family was found for the inverse", (str(layout),), because))
    place = np.full(top, -1, dtype=np.int64)
    place[values[::-1]] = np.arange(len(values) - 1, -1, -1)
    return place


def _checked(layout: Any) -> Any:
    return checked(layout, "compose")


def _flat(middle: npt.NDArray[Any], names: list[str], outer: Any) -> npt.NDArray[Any]:
    """Return the flat coordinates of points, one column per output."""
    axes = dict(outer.in_dims)
    if len(axes) != len(names):
        because = f"{len(names)} outputs {names} for {list(axes)}"
        raise AdmissibilityError(Diagnostic("LA650", "outputs and axes do not match", (shown(outer, 80),), because))
    order = [names.index(axis) for axis in axes] if set(names) == set(axes) else range(len(names))
    flat, weight = np.zeros(len(middle), dtype=np.int64), 1
    for place, extent in zip(order, axes.values(), strict=True):
        column = middle[:, place]
        if ((column < 0) | (column >= extent)).any():
            at = int(np.flatnonzero((column < 0) | (column >= extent))[0])
            witness = {"coordinate": at, "value": int(column[at]), "size": extent}
            because = f"coordinate {at} maps to {names[place]} = {int(column[at])}, the extent is {extent}"
            raise AdmissibilityError(
                Diagnostic("LA651", "the inner layout leaves the domain of the outer one", (), because, witness)
            )
        flat, weight = flat + column * weight, weight * extent
    return flat


def _extents(layout: Any) -> tuple[int, ...]:
    """Return the extent of each mode or axis of a layout."""
    if isinstance(layout, ListedLayout):
        return layout.extents
    if isinstance(layout, CuteLayout | ComposedLayout):
        shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
        found = tuple(CuteLayout(mode).size for mode in shape)
    else:
        found = tuple(layout.in_dims.values())
    return found or (1,)
