"""Normalise the operands of the bridges, and lower them to a narrower family where algebra alone can.

A plain digit map is an offset plus strides; one with mixed bits is affine over F2 if its size is a power of two; a
residue that does not wrap on its box is affine over Z (``layoutalg.integer.forms.residue_form``). An axis whose extent
is a multiple of the period m / gcd(stride, m) is two digits, the upper of stride 0, so periodic axes of any length
unwrap, too. ``g a x + g b + r - g m floor((a x + b)/m)`` with ``0 <= r < g`` is the residue of ``g a x + g b + r``
modulo ``g m``; this is how ISL prints residues whose terms have the common factor g.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.cute import ComposedLayout, CoordinateLayout, CuteLayout, Morphism, Swizzle
from layoutalg.cute.composed import IDENTITY
from layoutalg.cute.inttuple import IntTuple
from layoutalg.f2 import LinearLayout
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import BudgetError, Diagnostic, LayoutError, MalformedError, RepresentabilityError
from layoutalg.ground.listed import ListedLayout, listed
from layoutalg.hierarchy import DigitMap, HierarchicalLayout
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.mapping import unswizzled
from layoutalg.integer import IntegerLayout
from layoutalg.integer.forms import residue_form
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.piecewise.pieces import Form

AnyLayout: TypeAlias = "CuteLayout | ComposedLayout | LinearLayout | PiecewiseLayout"
AnyFamily: TypeAlias = "AnyLayout | IntegerLayout | HierarchicalLayout | ListedLayout"
Given: TypeAlias = "AnyFamily | CoordinateLayout | Morphism | Swizzle | npt.NDArray[Any] | list[Any]"
LinearForm: TypeAlias = tuple[tuple[int, ...], int]
Modes: TypeAlias = tuple[tuple[int, int], ...]

CONFIRM_POINTS = 2**20
"""Most points that are compared one by one if algebra does not decide."""
OFFSET_BITS = 62

FAMILIES = (CuteLayout, ComposedLayout, LinearLayout, PiecewiseLayout, IntegerLayout, HierarchicalLayout)
ONE_OF = ", ".join(kind.__name__ for kind in FAMILIES[:-1]) + f" or {FAMILIES[-1].__name__}"


class Call:
    """A call for error messages, formatted only if needed."""

    __slots__ = ("name", "operands")

    def __init__(self, name: str, *operands: object) -> None:
        self.name, self.operands = name, operands

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.operands))})"


def _one_period(swizzle: Swizzle) -> ComposedLayout:
    """Return a swizzle on one period, beyond which it repeats; byte-address swizzles are rejected (LA112)."""
    return ComposedLayout(swizzle, 0, CuteLayout(swizzle.period, 1))


def _outputs_of_leaves(layout: CoordinateLayout) -> IntegerLayout:
    """Return an integer layout on the leaves of the shape with one output per leaf of the value."""
    inputs = tuple((f"c{place}", extent) for place, (extent, _) in enumerate(layout.flat))
    rows = tuple(tuple(stride for _, stride in part.flat) for _, part in layout.components)
    return IntegerLayout(inputs, tuple((name, 0) for name in layout.out_dims), rows, (0,) * len(rows))


NORMAL: dict[type, Callable[[Any], AnyFamily]] = {
    **dict.fromkeys(FAMILIES, lambda layout: layout),
    Morphism: Morphism.to_layout,
    CoordinateLayout: _outputs_of_leaves,
    ListedLayout: lambda layout: layout,
    Swizzle: _one_period,
}


_READ = frozenset((*FAMILIES, ListedLayout))


def normal(layout: object) -> AnyFamily | None:
    """Return a layout in a family that the bridges accept, None for any other value.

    A morphism becomes its CuTe layout, a coordinate layout an integer layout with one output per leaf of the value, a
    swizzle a composed layout on one period (beyond which it repeats). Tables are unchanged.

    Raises: AdmissibilityError: LA112. RepresentabilityError: LA237.

    Example:
        >>> print(normal(Swizzle(1, 0, 1)), normal(3))
        Sw<1,0,1> o 0 o 4:1 None
    """
    if type(layout) in _READ:
        return layout  # type: ignore[return-value]
    make = next((NORMAL[kind] for kind in type(layout).__mro__ if kind in NORMAL), None)
    if make is None and type(layout).__name__ == "SymbolicLayout":  # by name, to avoid the import
        because = "other families need concrete sizes: call .subs({...}) first"
        raise RepresentabilityError(
            Diagnostic("LA237", "the sizes of this layout are symbolic", (str(layout),), because)
        )
    return None if make is None else make(layout)


def read(value: object) -> object:
    """Convert an array or a list to a table; return any other value unchanged.

    Raises: MalformedError: LA802.

    Example:
        >>> print(read([[0, 1], [2, 3]]), read(3))
        a table of 4 offsets over 2x2 3
    """
    return listed(value) if isinstance(value, np.ndarray | list) else value


def checked(layout: object, where: str) -> AnyFamily:
    """Return a layout or an array in normal form; raise on any other value (LA234)."""
    found = normal(read(layout))
    if found is None:
        raise malformed(where, f"must be a {ONE_OF}", layout)
    return found


def one_output(layout: AnyFamily, where: Call | str) -> None:
    """Raise unless a piecewise or integer layout has one output (LA234); other families have one flat output."""
    if isinstance(layout, PiecewiseLayout | IntegerLayout) and len(layout.out_dims) != 1:
        raise malformed(str(where)[:80], "must have one output", list(layout.out_dims))


check = Checker("LA234", "this cannot be converted")
malformed = check.malformed


def undecided(layout: AnyFamily, because: str) -> BudgetError:
    """Return the error for a question that was not decided (LA233)."""
    because = f"{because}; {layout.size} points, the limit is {CONFIRM_POINTS}"
    what = "could not decide whether the layout has this form"
    return BudgetError(Diagnostic("LA233", what, (str(layout)[:200],), because, {"size": layout.size}))


def excluded(layout: HierarchicalLayout) -> int | None:
    """Return a flat coordinate that a guard excludes, None for a total layout.

    Example:
        >>> from layoutalg.hierarchy import Box, Guard
        >>> box = Box.of(i=4)
        >>> guard = Guard(DigitMap(((4, 1),)), box, (3,))
        >>> excluded(HierarchicalLayout(box, box, DigitMap(((4, 1),)), (guard,)))
        3
    """
    for guard in layout.guards:
        weight = 1
        for bound, (_, extent) in zip(guard.bounds, guard.box.axes, strict=True):
            if bound < extent:
                return maps.inverse(guard.map).at(bound * weight)
            weight *= extent
    return None


def total(layout: AnyFamily, where: Call) -> None:
    """Raise on a partial tile, with a missing coordinate, and on pieces that are partial or have parameters (LA661)."""
    if not isinstance(layout, HierarchicalLayout | PiecewiseLayout) or layout.is_total:
        return
    witness: dict[str, object] = {}
    if isinstance(layout, HierarchicalLayout):
        witness = {"coordinate": excluded(layout)}
        because = f"a guard excludes the coordinate {witness['coordinate']}"
    else:
        try:
            because = f"it is defined on {layout.inputs}"
        except MalformedError as error:
            because = error.diagnostic.because.partition(";")[0]
    because += "; other families are total on their box"
    what = "a partial layout cannot be converted to another family"
    raise RepresentabilityError(Diagnostic("LA661", what, (str(where),), because, witness or None))


def unwrapped(layout: IntegerLayout) -> tuple[tuple[Modes, ...], int] | None:
    """Return digits over Z of every axis and the constant of the single output; None if a modulus still wraps.

    Example:
        >>> unwrapped(IntegerLayout.from_strides({"i": 12}, (3,), 1, modulus=9))
        ((((3, 3), (4, 0)),), 1)
    """
    row, m = layout.matrix[0], layout.moduli[0]
    axes: list[list[tuple[int, int]]] = []
    for extent, stride in zip(layout.extents, row, strict=True):
        period = m // math.gcd(stride, m) if m else 0
        if m and extent > period and extent % period == 0:
            axes.append([(period, stride), (extent // period, 0)])
        else:
            axes.append([(extent, stride)])
    flat = [mode for axis in axes for mode in axis]
    form = residue_form([stride for _, stride in flat], layout.offset[0], m, [extent for extent, _ in flat])
    if form is None:
        return None
    strides = iter(form[0])
    return tuple(tuple((extent, next(strides)) for extent, _ in axis) for axis in axes), form[1]


def one_piece(layout: PiecewiseLayout) -> IntegerLayout | None:
    """Convert a one-piece piecewise layout whose outputs are affine or residues, on its own box; else None.

    Example:
        >>> print(one_piece(PiecewiseLayout("{ [i] -> [(4i + 1) mod 16] : 0 <= i < 9 }")))
        Z[i:9=(4) -> y0%16] + (1)
    """
    if ";" in layout.text:
        return None
    whole = layout.value.pieces
    forms = [_affine_or_residue(*output) for output in whole[0].outputs] if len(whole) == 1 else [None]
    read = [form for form in forms if form is not None]
    if len(read) != len(forms):
        return None
    outputs = tuple((name, modulus) for name, (_, modulus) in zip(layout.out_dims, read, strict=True))
    return IntegerLayout(
        layout.inputs, outputs, tuple(form.dims for form, _ in read), tuple(form.constant for form, _ in read)
    )


def _affine_or_residue(floors: tuple[Form, ...], value: Form) -> tuple[Form, int] | None:
    """Return an affine form and its modulus (0 for none), or None."""
    used = [place for place, factor in enumerate(value.floors) if factor]
    if value.denominator != 1 or len(used) > 1:
        return None
    if not used:
        return value, 0
    inner, modulus = floors[used[0]], -value.floors[used[0]]
    factor, rest = divmod(modulus, inner.denominator)
    matches = (
        modulus > 0
        and rest == 0
        and not any(inner.floors)
        and value.dims == tuple(factor * a for a in inner.dims)
        and 0 <= value.constant - factor * inner.constant < factor
    )
    return (value, modulus) if matches else None


def lowered(layout: AnyFamily) -> AnyFamily:
    """Lower an integer, hierarchical or one-piece layout to a CuTe layout (with an offset) or a linear layout.

    The flat function is the same, with one top-level mode or input axis per axis. Unchanged: layouts with several
    outputs, wrapping moduli, partial tiles, tables, mixed bits in a size that is not a power of two, and numbers beyond
    64 bits; of these, one piece becomes an integer layout.

    Example:
        >>> print(lowered(IntegerLayout.from_strides({"i": 4, "j": 3}, (-1, 4), 3)))
        3 + (4,3):(-1,4)
    """
    if isinstance(layout, HierarchicalLayout) and layout.is_total and isinstance(layout.map, DigitMap):
        return _from_digits(layout, layout.map)
    if isinstance(layout, PiecewiseLayout):
        layout = one_piece(layout) or layout
    if isinstance(layout, IntegerLayout) and len(layout.outputs) == 1:
        if not layout.size:
            return CuteLayout(0, 0)
        form = unwrapped(layout)
        return layout if form is None else _strided(*form) or layout
    return layout


def _from_digits(layout: HierarchicalLayout, mapping: DigitMap) -> AnyFamily:
    """Lower a digit map to strides, to F2, or to a swizzle of strides; unchanged if none applies."""
    if not mapping.is_plain:
        columns = mapping.columns
        if columns is None:
            return _from_swizzle(layout, mapping)
        inputs = tuple((name, extent.bit_length() - 1) for name, extent in layout.source.axes)
        return LinearLayout(inputs, (("offset", len(columns)),), columns, mapping.offset)
    axes = tuple(_plain(modes) for modes in (layout.digits() or {}).values()) or tuple(
        (mode,) for mode in _plain(mapping.modes)
    )
    found = _strided(axes, mapping.offset)
    if found is not None:
        return found
    # numbers beyond 64 bits fit only an integer layout
    modes = _plain(mapping.modes)
    inputs = tuple((f"c{place}", extent) for place, (extent, _) in enumerate(modes))
    return IntegerLayout.from_strides(inputs, [stride for _, stride in modes], mapping.offset)


def _from_swizzle(layout: HierarchicalLayout, mapping: DigitMap) -> AnyFamily:
    """Return a swizzle applied to strides if that is how the bits are mixed, else the layout unchanged."""
    found = unswizzled(mapping)
    if found is None:
        return layout
    swizzle, plain = found
    inner = _from_digits(HierarchicalLayout(layout.source, layout.target, plain), plain)
    if isinstance(inner, CuteLayout):
        return ComposedLayout(swizzle, 0, inner)
    return ComposedLayout(swizzle, inner.offset, inner.inner) if isinstance(inner, ComposedLayout) else layout


def _plain(modes: Iterable[tuple[int, int | tuple[int, ...]]]) -> Modes:
    """Return the modes of a plain digit map, whose strides are all integers."""
    return tuple((extent, stride) for extent, stride in modes if isinstance(stride, int))


def of_axes(axes: Sequence[Modes], offset: int = 0, swizzle: Swizzle = IDENTITY) -> CuteLayout | ComposedLayout:
    """Return ``[swizzle o offset o] shape:stride`` with one top-level mode per axis; a single one is not wrapped.

    Raises: MalformedError: LA101, LA102: The numbers overflow 64 bits.

    Example:
        >>> print(of_axes([((2, 4), (3, 1)), ((5, 9),)]), of_axes([((4, 2),)]), of_axes([]))
        ((2,3),5):((4,1),9) 4:2 1:0
    """
    shapes: list[IntTuple] = []
    steps: list[IntTuple] = []
    for axis in axes or (((1, 0),),):
        # the stride of an extent 1 is irrelevant, and could be too large
        modes = tuple((extent, stride if extent > 1 else 0) for extent, stride in axis or ((1, 0),))
        shapes.append(modes[0][0] if len(modes) == 1 else tuple(extent for extent, _ in modes))
        steps.append(modes[0][1] if len(modes) == 1 else tuple(stride for _, stride in modes))
    plain = CuteLayout(*((shapes[0], steps[0]) if len(shapes) == 1 else (tuple(shapes), tuple(steps))))
    return ComposedLayout(swizzle, offset, plain) if offset or swizzle.bits else plain


def _strided(axes: Sequence[Modes], offset: int) -> CuteLayout | ComposedLayout | None:
    """Return one mode per axis with an offset, or None beyond 64 bits."""
    try:
        return of_axes(axes, offset)
    except LayoutError:
        return None
