"""Compose layouts, in their own family or in the narrowest wider one that can represent the result.

Within a family, its own ``@`` decides, by axis names if the family has them. Across families, ``outer`` after ``inner``
is c -> outer(inner(c)) on flat coordinates (outputs of ``inner`` match the axes of ``outer`` in order if there are as
many), and families are tried from narrow to wide: cute, linear (matrix product), piecewise (pullback in ISL on digits).
Every answer is exact; only compositions that are undefined somewhere are refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg import cute
from layoutalg.bridges.affine import to_linear
from layoutalg.bridges.normal import (
    FAMILIES,
    OFFSET_BITS,
    ONE_OF,
    AnyFamily,
    Call,
    checked,
    family,
    family_of,
    lowered,
    normal,
    outputs,
    values_at,
)
from layoutalg.bridges.piecewise import LISTED as TABLED
from layoutalg.bridges.piecewise import RUNS, arithmetic_runs, in_pieces, runs_text
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.cute.composition import require_inside
from layoutalg.cute.fit import affine_after, first_leaving
from layoutalg.cute.inttuple import product_each
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground import clock
from layoutalg.ground import recognize as tables
from layoutalg.ground.errors import (
    AdmissibilityError,
    BudgetError,
    Diagnostic,
    LayoutError,
    MalformedError,
    RepresentabilityError,
    shown,
)
from layoutalg.ground.layout import Layout, after, composes, read, rule_for
from layoutalg.ground.limits import POINTS
from layoutalg.ground.listed import ListedLayout
from layoutalg.hierarchy import HierarchicalLayout
from layoutalg.integer import IntegerLayout, permute
from layoutalg.integer.forms import sampled_coordinates
from layoutalg.piecewise import PiecewiseLayout

Value: TypeAlias = "AnyFamily | Swizzle"
SMALL = 128
"""Compositions up to this many points are always listed in runs (at most 64)."""
FEW_RUNS = 16
"""A larger composition with at most this many runs is listed, too; one with more only if ISL gives up on its digits."""
SECONDS = 1.0
"""ISL time limit for an answer that can be listed instead."""
CONFIRMED = 2**16
"""Largest composition that is checked at every point."""


@dataclass(frozen=True, slots=True)
class Widened:
    """A layout, and why no narrower family can represent it."""

    value: Value  # the layout
    passed: tuple[str, ...] = ()  # one line per family that was tried first

    @property
    def family(self) -> str:
        """The family of the layout: cute, composed, swizzle, linear, integer, hierarchical or piecewise."""
        return _family(self.value)

    def __str__(self) -> str:
        return f"{self.family}: {self.value}"


def compose(outer: object, inner: object, *, widen: bool = False) -> Layout | Swizzle:
    """Return ``outer`` after ``inner``.

    Mathematically: c -> outer(inner(c)) on the coordinates c of ``inner``.

    Args:
        outer: A layout of any family, a table or an array of its values, or a swizzle.
        inner: Likewise; its values are coordinates of ``outer``. A table composes with every family, giving a table.
        widen: False: both are in one family, whose ``@`` returns the result or says why the family cannot represent it.
            True: any two families; the result is in the narrowest family that can represent it (``widened`` says why).

    Example:
        >>> print(compose(CuteLayout((6, 8), (1, 10)), CuteLayout(2, 4)))
        2:4
        >>> print(compose(CuteLayout((6, 2), (1, 7)), CuteLayout((3, 2), (2, 3)), widen=True).table().tolist())
        [0, 2, 4, 3, 5, 8]
        >>> print(compose(Swizzle(1, 0, 1), Swizzle(1, 1, 1), widen=True))
        F2[i=(1)(3)(7) -> offset:8]
    """
    if widen:
        return widened(outer, inner).value
    first = read(inner)
    found: Layout | Swizzle = after(read(outer, like=_reached(first)), first)
    return found


def _reached(inner: object) -> tuple[int, ...] | None:
    """Return the least extent that holds the values of a layout with one output, for a function that follows it."""
    found = normal(inner) if isinstance(inner, Layout) else None
    if found is None or not found.is_total or outputs(found) != 1 or found.size < 1 or found.size > POINTS:
        return None
    return (int(np.max(found.table())) + 1,)


def logical_divide(layout: object, tile: object, *, widen: bool = False) -> Layout | Swizzle:
    """Return ``layout`` after (tile, complement of the tile in the layout's size); ``widen`` as in ``compose``.

    Args:
        layout: A CuTe or composed layout, a table or an array of its values.
        tile: A CuTe layout that has a complement in ``layout.size``; or a tuple of tilers, one of each mode, as for
            ``cute.logical_divide``, which ``widen`` does not apply to.

    Example:
        >>> print(logical_divide(CuteLayout((6, 2), (1, 7)), CuteLayout(3)))
        (3,(2,2)):(1,(3,7))
        >>> logical_divide(CuteLayout((6, 2), (1, 7)), CuteLayout(4, 1), widen=True).table().tolist()
        [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12]
    """
    kinds = CuteLayout | ComposedLayout | ListedLayout
    whole = layout if isinstance(layout, Swizzle) else normal(read(layout))
    if isinstance(tile, tuple) and isinstance(whole, CuteLayout | ComposedLayout) and not widen:
        return cute.logical_divide(whole, tile)
    if not isinstance(whole, kinds) or not isinstance(tile, CuteLayout):
        wrong = tile if isinstance(whole, kinds) else layout
        because = f"expected a CuteLayout, ComposedLayout or table divided by a CuteLayout, not {shown(wrong)}"
        raise MalformedError(Diagnostic("LA652", "this operand is not a layout", ("logical_divide",), because))
    return compose(whole, cute.make_layout(tile, cute.complement(tile, whole.size)), widen=widen)


def widened(outer: object, inner: object) -> Widened:
    """Return ``outer`` after ``inner`` in the narrowest family that can represent it, and why no narrower one can.

    Within a family, its ``@`` is tried first. Layouts of different families, or without a common axis name, are
    composed on flat coordinates. A product of two swizzles that is not a swizzle is the linear layout on one period,
    beyond which it repeats.

    Example:
        >>> print(widened(Swizzle(1, 0, 1), Swizzle(1, 1, 1)))
        linear: F2[i=(1)(3)(7) -> offset:8]
    """
    inner = read(inner)
    last, first = _operand(read(outer, like=_reached(inner))), _operand(inner)
    if isinstance(last, ListedLayout) or isinstance(first, ListedLayout):
        table = looked_up(last, first)  # raises if undefined
        try:
            found = _narrowest(last, first)
        except BudgetError as error:
            return Widened(table, (f"piecewise: {error.diagnostic.because}",))
        value: Any = found.value
        values = values_at(value, np.arange(table.size, dtype=np.int64))  # by flat coordinates, not by name
        return found if np.array_equal(values[:, 0], table.table()) else Widened(table)
    return _narrowest(last, first)


def _narrowest(last: Any, first: Any) -> Widened:
    """Return the composition in the narrowest formula-based family."""
    tabled = isinstance(last, ListedLayout) or isinstance(first, ListedLayout)
    where = Call("compose", last, first)
    passed: list[str] = []
    if not tabled and rule_for(type(last), type(first)) is not None and _share_names(last, first):
        try:
            return Widened(after(last, first))
        except (RepresentabilityError, BudgetError) as error:
            kind = family(last)
            own = kind.algebra if kind is not None and kind.algebra else _family(last)
            passed.append(f"{own}: {error.diagnostic.code} {error.diagnostic.because}")
    near = _lowered(last), _lowered(first)
    if not isinstance(near[1], Swizzle) and outputs(near[1]) != 1:
        near = _facing(last, near[1], where), near[1]
    elif near[0] is not last or near[1] is not first:
        found = widened(*near)
        return Widened(found.value, (*passed, *found.passed))
    final, start = near
    if isinstance(final, Swizzle):
        if isinstance(start, Swizzle):
            return Widened(_period(final, start), tuple(passed))
        final = _on_values(final, start)
    elif isinstance(start, Swizzle):
        start = _permutation(start, final.size, where)
    return _wider(final, start, passed, where)


def _facing(outer: Any, inner: Any, where: Call) -> IntegerLayout | PiecewiseLayout:
    """Return ``outer`` with its axes in the order of the outputs of ``inner`` if the names match; else unchanged."""
    names = tuple(inner.out_dims)
    if isinstance(outer, IntegerLayout) and set(outer.in_dims) == set(names):
        return permute(outer, names)
    if not isinstance(outer, IntegerLayout | PiecewiseLayout) or len(outer.inputs) != len(names):
        axes = list(outer.in_dims) if hasattr(outer, "in_dims") else [str(outer)]
        because = f"{len(names)} outputs {list(names)} for {axes}"
        raise AdmissibilityError(Diagnostic("LA650", "outputs and axes do not match", (str(where),), because))
    return outer


def _family(value: object) -> str:
    kind = family(value)
    return type(value).__name__ if kind is None else kind.name


def _share_names(outer: Any, inner: Any) -> bool:
    """Return whether two layouts of one family compose by axis name: some output of ``inner`` is an axis of ``outer``.

    CuTe layouts, morphisms and piecewise layouts always compose by position.
    """
    kind = family(outer)
    return kind is None or not kind.by_name or bool({*outer.in_dims} & {*inner.out_dims})


def _lowered(value: Any) -> Value:
    """Lower a layout to a narrower family if algebra alone can; swizzles are unchanged."""
    if isinstance(value, Swizzle):
        return value
    found = checked(value, "compose")
    return lowered(found) if isinstance(found, IntegerLayout | HierarchicalLayout) else found


def linear_layout(columns: tuple[int, ...], constant: int) -> LinearLayout | str:
    """Return the linear layout ``i -> offset``, or why there is none."""
    if min(constant, *columns, 0) < 0:
        return "some values are negative"
    bits = max((value.bit_length() for value in (constant, *columns)), default=0)
    return LinearLayout((("i", len(columns)),), (("offset", bits),), tuple(columns), constant)


def _period(outer: Swizzle, inner: Swizzle) -> LinearLayout:
    bits = max(outer.period, inner.period).bit_length() - 1
    columns = tuple(outer(inner(1 << bit)) for bit in range(bits))
    return LinearLayout((("i", bits),), (("offset", bits),), columns)


def _permutation(swizzle: Swizzle, size: int, where: Call) -> ComposedLayout:
    """Return a swizzle as a permutation of a layout's coordinates; raise if it maps one out of bounds."""
    leaving = first_leaving(swizzle, size, size)
    if leaving is not None:
        what = "the swizzle maps a coordinate outside the layout's domain"
        because = f"{swizzle} maps {leaving} to {swizzle(leaving)}, the layout has {size} points"
        raise AdmissibilityError(
            Diagnostic(
                "LA641", what, (str(where),), because, {"coordinate": leaving, "value": swizzle(leaving), "size": size}
            )
        )
    return ComposedLayout(swizzle, 0, CuteLayout(size, 1))


def _on_values(swizzle: Swizzle, inner: AnyFamily) -> ComposedLayout:
    """Return a swizzle as a layout on an interval that contains the values of a layout."""
    if isinstance(inner, LinearLayout):
        return ComposedLayout(swizzle, 0, CuteLayout(1 << inner.out_bits, 1))
    top = max(0, int(inner.table().max())) if inner.size else 0
    return ComposedLayout(swizzle, 0, CuteLayout(top + 1, 1))


def _wider(outer: AnyFamily, inner: AnyFamily, passed: list[str], where: Call) -> Widened:
    """Return the composition as a linear or a piecewise layout."""
    if family_of(outer).swizzled and family_of(inner).swizzled:
        require_inside(outer, inner, str(where))  # type: ignore[arg-type]
    found = _affine(outer, inner)
    index = np.arange(inner.size, dtype=np.int64) if inner.size <= CONFIRMED else sampled_coordinates(inner.size)
    wanted = None if isinstance(found, LinearLayout) else _values_after(outer, inner, index)
    whole = wanted[:, 0] if wanted is not None and len(index) == inner.size and wanted.shape[1] == 1 else None
    if isinstance(found, str) and whole is not None and len(whole) and not len(whole) & (len(whole) - 1):
        found = _affine_table(whole)
    if isinstance(found, LinearLayout):
        return Widened(found, tuple(passed))
    passed.append(f"linear: {found}")
    runs = arithmetic_runs(whole) if whole is not None and len(whole) <= TABLED else None
    listable = runs is not None and len(runs) <= RUNS
    if runs is not None and (len(runs) <= FEW_RUNS or inner.size <= SMALL):
        value = PiecewiseLayout(runs_text(runs), ("offset",))
    else:
        try:
            with clock.within(SECONDS if listable else math.inf):
                value = _digits(outer) @ in_pieces(inner)
        except BudgetError as error:
            if runs is None or not listable:
                because = "; ".join([*passed, f"piecewise: {error.diagnostic.because}"])
                what = "no family was found for the composition"
                raise BudgetError(Diagnostic("LA653", what, (str(where),), because)) from error
            value = PiecewiseLayout(runs_text(runs), ("offset",))
    if wanted is None or value.size <= int(index[-1]) or (values_at(value, index) != wanted).any():
        raise unconfirmed(where)
    return Widened(value, tuple(passed))


def unconfirmed(where: Call | str) -> BudgetError:
    """Return the error for a wrong answer of ISL (LA745)."""
    because = "it disagrees with direct evaluation of the operands and was discarded"
    return BudgetError(Diagnostic("LA745", "ISL's result is wrong", (str(where),), because))


def _values_after(outer: AnyFamily, inner: AnyFamily, index: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Return ``outer`` after ``inner`` at flat coordinates, None if a value is outside the domain of ``outer``."""
    middle = values_at(inner, index)
    extents = [outer.size] if middle.shape[1] == 1 else list(outer.in_dims.values())
    if len(extents) != middle.shape[1]:
        return None
    middle = middle.astype(object) if outer.size >= 2**OFFSET_BITS else middle
    flat = _flat(middle, extents)
    return values_at(outer, flat) if isinstance(flat, np.ndarray) else None


def _flat(middle: npt.NDArray[Any], extents: Sequence[int]) -> npt.NDArray[Any] | tuple[int, int]:
    """Return the flat coordinates of points, one column per axis, or the first point and axis outside the box."""
    flat, weight = 0 * middle[:, 0], 1
    for place, extent in enumerate(extents):
        column = middle[:, place]
        outside = np.flatnonzero((column < 0) | (column >= extent))
        if len(outside):
            return int(outside[0]), place
        flat, weight = flat + column * weight, weight * extent
    return flat


def _digits(layout: AnyFamily) -> PiecewiseLayout:
    """Return a layout as a piecewise one, coalescing a CuTe layout first."""
    return in_pieces(cute.coalesce(layout) if isinstance(layout, CuteLayout) else layout)


def _affine(outer: AnyFamily, inner: AnyFamily) -> LinearLayout | str:
    """Return the composition as a linear layout found by algebra, or why there is none."""
    if inner.size < 1 or inner.size & (inner.size - 1):
        return f"an F2 map has 2**n points, the right operand has {inner.size}"
    because = "the operands are not both affine over F2"
    if isinstance(outer, CuteLayout | ComposedLayout) and isinstance(inner, CuteLayout | ComposedLayout):
        form = affine_after(outer, inner)
        return because if form is None else linear_layout(*form)
    try:
        left, right = to_linear(outer), to_linear(inner)
    except LayoutError as error:
        return error.diagnostic.because or because
    reach = right.constant
    for column in right.columns:
        reach |= column
    if reach >> left.in_bits:
        return because
    columns = matrix.multiply(left.columns, right.columns)
    return linear_layout(columns, left.constant ^ matrix.apply(left.columns, right.constant))


def _affine_table(values: npt.NDArray[Any]) -> LinearLayout | str:
    """Return 2**n values as a linear layout, or a point where they are not affine over F2."""
    if values.dtype == object:
        return "the values have more than 64 bits"
    form = tables.linear(values)
    if isinstance(form, tables.Departure):
        return f"the value at {form.coordinate} is {form.value}, an affine map over F2 would give {form.forced}"
    return linear_layout(*form)


def _operand(operand: object) -> Any:
    """Return a layout or a swizzle; raise on any other value (LA652)."""
    operand = read(operand)
    if not isinstance(operand, Layout | Swizzle) and normal(operand) is None:
        because = f"operands must be {ONE_OF} or Swizzle, not {shown(operand)}"
        raise MalformedError(Diagnostic("LA652", "this operand is not a layout", because=because))
    return operand


# tables


def looked_up(outer: Any, inner: Any) -> ListedLayout:
    """Return ``outer`` after ``inner`` as a table over the dimensions of ``inner``; at least one of them is a table.

    Mathematically: c -> outer(inner(c)) on flat coordinates; several outputs of ``inner`` are coordinates of ``outer``,
    by name if the names match its axes, else by position.

    Example:
        >>> from layoutalg.ground.listed import listed
        >>> looked_up(listed([5, 3, 8, 1]), CuteLayout((2, 2), (2, 1))).table().tolist()
        [5, 8, 3, 1]
    """
    first = (
        ComposedLayout(inner, 0, CuteLayout(outer.size, 1)) if isinstance(inner, Swizzle) else checked(inner, "compose")
    )
    if first.size > POINTS or first.size < 1:
        because = f"a table has 1 to {POINTS} entries, not {first.size}"
        raise BudgetError(Diagnostic("LA653", "no family was found for the composition", (), because))
    middle = values_at(first, np.arange(first.size, dtype=np.int64))
    if isinstance(outer, Swizzle):
        last: Any = ComposedLayout(outer, 0, CuteLayout(max(1, int(middle.max()) + 1), 1))
    else:
        last = checked(outer, "compose")
    names = dict(first.out_dims)
    if middle.shape[1] == 1 < len(names) and set(names) == set(last.in_dims):  # flat values of several outputs
        middle = np.stack(np.unravel_index(middle[:, 0], tuple(names.values()), order="F"), axis=-1)
    axes = {"the outer layout": last.size} if middle.shape[1] == 1 else dict(last.in_dims)
    if len(axes) != middle.shape[1]:
        because = f"{middle.shape[1]} outputs {list(names)} for {list(axes)}"
        raise AdmissibilityError(Diagnostic("LA650", "outputs and axes do not match", (shown(last, 80),), because))
    if set(names) == set(axes):
        middle = middle[:, [list(names).index(axis) for axis in axes]]
    flat = _flat(middle, list(axes.values()))
    if not isinstance(flat, np.ndarray):
        at, place = flat
        axis, extent = list(axes.items())[place]
        value = int(middle[at, place])
        because = f"coordinate {at} maps to {value}, {axis} has {extent} points"
        raise AdmissibilityError(
            Diagnostic(
                "LA651",
                "the inner layout leaves the domain of the outer one",
                because=because,
                witness={"coordinate": at, "value": value, "size": extent},
            )
        )
    values = values_at(last, flat)
    if values.shape[1] != 1:
        because = f"a table has one output, not {list(last.out_dims)}"
        raise RepresentabilityError(Diagnostic("LA643", "the composition is not a table", (), because))
    return ListedLayout(_extents(first), tuple(int(value) for value in values[:, 0]))


for _kind in FAMILIES:
    composes(ListedLayout, _kind)(looked_up)
    if _kind is not ListedLayout:
        composes(_kind, ListedLayout)(looked_up)


def _extents(layout: Any) -> tuple[int, ...]:
    """Return the extent of each mode or axis of a layout."""
    found = product_each(layout.shape) if family_of(layout).swizzled else tuple(layout.in_dims.values())
    return found or (1,)
