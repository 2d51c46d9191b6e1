"""What the bridges ask of every family: its names, its normal form, its form over F2 and its pieces.

``FAMILIES`` has one row per family, filled by ``layoutalg.bridges.families``; what a row leaves out is answered from
the table of values. Everything else in this package asks the row.

A plain digit map is an offset plus strides; one with mixed bits is affine over F2 if its size is a power of two; a
residue that does not wrap on its box is affine over Z (``layoutalg.integer.forms.residue_form``). An axis whose extent
is a multiple of the period m / gcd(stride, m) is two digits, the upper of stride 0, so periodic axes of any length
unwrap, too. ``g a x + g b + r - g m floor((a x + b)/m)`` with ``0 <= r < g`` is the residue of ``g a x + g b + r``
modulo ``g m``; this is how ISL prints residues whose terms have the common factor g.

Directions: Triton's shared layouts map the axes ``offset`` and ``block`` to the coordinates ``dim0``, ``dim1``, ... of
a tensor; shared layouts of all other families map coordinates to the offset. Each is the inverse of the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.cute.inttuple import IntTuple
from layoutalg.cute.swizzle import IDENTITY
from layoutalg.f2 import LinearLayout, transpose_ins
from layoutalg.ground import recognize as tables
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import (
    AdmissibilityError,
    BudgetError,
    Diagnostic,
    LayoutError,
    MalformedError,
    RepresentabilityError,
)
from layoutalg.ground.layout import read, takes_offsets
from layoutalg.ground.listed import ListedLayout
from layoutalg.hierarchy import DigitMap, HierarchicalLayout
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.build import unswizzled
from layoutalg.integer import IntegerLayout
from layoutalg.integer.forms import residue_form
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.piecewise.pieces import Form

AnyLayout: TypeAlias = "CuteLayout | ComposedLayout | LinearLayout | PiecewiseLayout"
AnyFamily: TypeAlias = "AnyLayout | IntegerLayout | HierarchicalLayout | ListedLayout"
Given: TypeAlias = object
"""A layout in any form that ``layoutalg.layout`` reads."""
LinearForm: TypeAlias = tuple[tuple[int, ...], int]
Modes: TypeAlias = tuple[tuple[int, int], ...]

CONFIRM_POINTS = 2**20
"""Most points that are compared one by one if algebra does not decide."""
OFFSET_BITS = 62
ONE_OF = "CuteLayout, ComposedLayout, LinearLayout, PiecewiseLayout, IntegerLayout or HierarchicalLayout"

check = Checker("LA234", "this cannot be converted")
malformed = check.malformed


class Call:
    """A call for error messages, formatted only if needed."""

    __slots__ = ("name", "operands")

    def __init__(self, name: str, *operands: object) -> None:
        self.name, self.operands = name, operands

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.operands))})"


def _by_table(layout: Any) -> LinearForm | tables.Departure:
    return tables.linear(layout.table())


@dataclass(frozen=True, slots=True)
class Family:
    """What the bridges ask of a family."""

    name: str  # its name in verdicts
    # returns a layout in normal form, in a family that the bridges accept
    normal: Callable[[Any], Any] = lambda layout: layout
    # returns the same function in a narrower family if algebra alone finds it, else the layout
    lower: Callable[[Any], Any] = lambda layout: layout
    # returns the columns and constant over F2 of a layout of 2**n points, or the first departure from any
    form: Callable[[Any], LinearForm | tables.Departure] = _by_table
    # returns the layout over the integers if its family is affine over them, else None
    strides: Callable[[Any], IntegerLayout | None] = lambda _: None
    # returns the layout as a piecewise one; None for the recognised form of its table, or its runs
    pieces: Callable[[Any], PiecewiseLayout] | None = None
    # ``right_inverse`` and ``left_inverse`` within the family
    inverses: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    # returns a complete normal form of the function as a certificate; None if the family has none
    key: Callable[[Any], dict[str, object] | None] = lambda _: None
    by_points: str = ""  # why a layout of more than ``CONFIRM_POINTS`` points is refused where algebra does not decide
    formless: str = ""  # what its layouts are called where equality says that they have no normal form
    algebra: str = ""  # its name where a composition says which family was tried first
    swizzled: bool = False  # whether its layouts are strides under swizzles and offsets
    by_name: bool = False  # whether its layouts compose by the names of axes
    named_outputs: bool = False  # whether it has several outputs without extents, so that they cannot be flattened


FAMILIES: dict[type, Family] = {}
"""The rows of ``layoutalg.bridges.families``."""


def family(layout: object) -> Family | None:
    """Return what the bridges know of the family of a layout, None for other values."""
    return next((FAMILIES[kind] for kind in type(layout).__mro__ if kind in FAMILIES), None)


def family_of(layout: AnyFamily) -> Family:
    """Return the row of a layout in normal form."""
    return FAMILIES.get(type(layout)) or family(layout)  # type: ignore[return-value]


def normal(layout: object) -> AnyFamily | None:
    """Return a layout in a family that the bridges accept, None for any other value.

    A morphism becomes its CuTe layout, a coordinate layout an integer layout with one output per leaf of the value, a
    swizzle a composed layout on one period (beyond which it repeats). Tables are unchanged.

    Example:
        >>> print(normal(Swizzle(1, 0, 1)), normal(3))
        Sw<1,0,1> o 0 o 4:1 None
    """
    kind = family(layout)
    if kind is None and (because := getattr(type(layout), "no_bridge", "")):
        raise RepresentabilityError(
            Diagnostic("LA237", "the sizes of this layout are symbolic", (str(layout),), because)
        )
    found: AnyFamily | None = None if kind is None else kind.normal(layout)
    return found


def checked(layout: object, where: str) -> AnyFamily:
    """Return a layout, given in any form, in normal form; raise on any other value (LA234)."""
    found = normal(read(layout))
    if found is None:
        raise malformed(where, f"must be a {ONE_OF}", layout)
    return found


def one_output(layout: AnyFamily, where: Call | str) -> None:
    """Raise unless the layout has one output (LA234); most families have one flat output."""
    if outputs(layout) != 1:
        raise malformed(str(where)[:80], "must have one output", list(layout.out_dims))


def outputs(layout: AnyFamily) -> int:
    """Return the number of outputs, 1 for families that flatten theirs."""
    return len(layout.out_dims) if family_of(layout).named_outputs else 1


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
    if layout.is_total:
        return
    witness: dict[str, object] = {}
    if isinstance(layout, HierarchicalLayout):
        witness = {"coordinate": excluded(layout)}
        because = f"a guard excludes the coordinate {witness['coordinate']}"
    else:
        try:
            because = f"it is defined on {layout.inputs}"  # type: ignore[union-attr]
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
    found: AnyFamily = family_of(layout).lower(layout)
    return found


def lower_integer(layout: IntegerLayout) -> AnyFamily:
    """``lowered`` of an integer layout: strides if it has one output whose modulus does not wrap."""
    if len(layout.outputs) != 1:
        return layout
    if not layout.size:
        return CuteLayout(0, 0)
    form = unwrapped(layout)
    return layout if form is None else _strided(*form) or layout


def lower_piecewise(layout: PiecewiseLayout) -> AnyFamily:
    """``lowered`` of a piecewise layout: that of its only piece."""
    found = one_piece(layout)
    return layout if found is None else lower_integer(found)


def lower_digits(layout: HierarchicalLayout) -> AnyFamily:
    """``lowered`` of a hierarchical layout: that of its digits unless a guard excludes points."""
    return _from_digits(layout, layout.map) if layout.is_total and isinstance(layout.map, DigitMap) else layout


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


# values


def value_at(layout: Given, index: int) -> int:
    """Return the value of a layout at a flat coordinate, as its ``at`` does.

    Args:
        layout: A layout with one output.
        index: In [0, size).

    Example:
        >>> value_at(CuteLayout((2, 2), (1, 8)), 3)
        9
    """
    found = checked(layout, "value_at")
    one_output(found, "value_at")
    value: int = found.at(check.integer(index, "index", 0, found.size))  # type: ignore[assignment]
    return value


def values_at(layout: AnyFamily, index: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the outputs at flat coordinates, one row each; -1 at points that a guard of a partial tile excludes.

    Args:
        layout: A layout.
        index: Flat coordinates in [0, size), one-dimensional.

    Example:
        >>> values_at(CuteLayout((2, 2), (1, 8)), np.arange(4)).tolist()
        [[0], [1], [8], [9]]
    """
    if layout.size <= 2**OFFSET_BITS:
        values = np.asarray(layout.apply(index))
        return values if values.ndim == 2 else values.reshape(len(index), 1)
    if family_of(layout).named_outputs:
        coords, rest = {}, index
        for name, extent in layout.in_dims.items():
            coords[name], rest = rest % extent, rest // extent
        answers = [np.broadcast_to(np.asarray(a), (len(index),)) for a in layout.apply(coords).values()]
        return np.stack(answers, axis=-1) if answers else np.empty((len(index), 0), dtype=np.int64)
    found = [layout.at(int(i)) if layout.is_total or layout.holds(int(i)) else -1 for i in index]  # type: ignore[union-attr]
    return np.array(found, dtype=object).reshape(len(index), 1)


# directions

TURNED = "{} maps offsets to coordinates, so its inverse is compared"


def opposite(f: Any, g: Any) -> bool:
    """Return whether one layout maps offsets to coordinates and the other coordinates to a single offset.

    Example:
        >>> shared = LinearLayout.from_bases({"offset": [(0, 1), (1, 1)]}, {"dim0": 2, "dim1": 2})
        >>> opposite(shared, CuteLayout((2, 2), (2, 1))), opposite(shared, shared)
        (True, False)
    """
    if takes_offsets(f) == takes_offsets(g):
        return False
    other = g if takes_offsets(f) else f
    outputs = other.out_dims
    return sum(extent != 1 for extent in outputs.values()) <= 1 and not any(name[:3] == "dim" for name in outputs)


def from_coordinates(layout: AnyFamily, like: AnyFamily | None = None) -> AnyFamily:
    """Invert a linear layout that maps offsets to coordinates; return any other layout unchanged.

    Args:
        layout: A layout.
        like: Another layout; if it has the same axes as the inverse, its axis order is used.

    Raises: MalformedError: LA234: An element is at several offsets or at none.

    Example:
        >>> print(from_coordinates(LinearLayout.from_bases({"offset": [(0, 1), (1, 1)]}, {"dim0": 2, "dim1": 2})))
        F2[dim0=(3), dim1=(1) -> offset:4]
    """
    if not isinstance(layout, LinearLayout) or not takes_offsets(layout):
        return layout
    try:
        inverse = layout.inverse()
    except AdmissibilityError as error:
        rule = "must place every element at exactly one offset, because it is inverted"
        raise malformed("layout", rule, str(layout)[:200], f": {error.diagnostic.because}") from None
    axes = tuple(like.in_dims) if isinstance(like, LinearLayout) else ()
    return transpose_ins(inverse, axes) if set(axes) == set(inverse.in_dims) else inverse
