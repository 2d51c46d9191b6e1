"""Integer and hierarchical layouts in the older families, wherever algebra alone shows that they belong there.

Main definitions: ``lowered``, ``excluded``, ``unwrapped``, ``total``.

Main statements: a digit map is an offset plus strides, a bit map is an affine map over F2, and a residue that does not
wrap on its box is affine over Z (``layoutalg.zmod.compose.residue_form``). An axis whose extent is a multiple of the
period m / gcd(stride, m) is two digits, the upper of stride 0; so periodic axes of any length unwrap as well.
"""

from __future__ import annotations

import math

from layoutalg.convert.operand import AnyFamily
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.errors import Diagnostic, LayoutError, RepresentabilityError
from layoutalg.f2 import LinearLayout
from layoutalg.hierarchy import BitMap, DigitMap, HierarchicalLayout
from layoutalg.hierarchy import bijection as maps
from layoutalg.inttuple import IntTuple
from layoutalg.zmod import IntegerLayout
from layoutalg.zmod.compose import residue_form

Modes = tuple[tuple[int, int], ...]


def excluded(layout: HierarchicalLayout) -> int | None:
    """Return a flat coordinate outside some guard, None for a total layout.

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


def total(layout: AnyFamily, where: str) -> None:
    """Refuse a partial tile (LA661): every other family is total on its box. The witness is a coordinate left out."""
    if not isinstance(layout, HierarchicalLayout) or layout.is_total:
        return
    at = excluded(layout)
    raise RepresentabilityError(
        Diagnostic(
            code="LA661",
            what="a partial tile has no form in another family",
            where=(where,),
            because=f"it has no value at {at}, which a guard excludes; the other families are total on their box",
            witness={"coordinate": at},
        )
    )


def unwrapped(layout: IntegerLayout) -> tuple[tuple[Modes, ...], int] | None:
    """Return digits over Z of every axis and the constant of the single output, or None where a modulus still wraps.

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


def lowered(layout: AnyFamily) -> AnyFamily:
    """Return an integer or hierarchical layout as a CuTe layout (behind an offset) or a linear layout; the same flat
    function, one top-level mode or input axis per axis.

    Left as they are: layouts with several outputs, wrapping moduli, partial tiles, tables, and numbers beyond 64 bits.

    Example:
        >>> print(lowered(IntegerLayout.from_strides({"i": 4, "j": 3}, (-1, 4), 3)))
        Sw<0,0,0> o 3 o (4,3):(-1,4)
    """
    if isinstance(layout, HierarchicalLayout) and layout.is_total:
        if isinstance(layout.map, DigitMap):
            by_axis = layout.digits()
            axes = tuple(by_axis.values()) if by_axis else tuple((mode,) for mode in layout.map.modes)
            return _strided(axes, layout.map.offset) or _digits(layout.map)
        if isinstance(layout.map, BitMap):
            inputs = tuple((name, extent.bit_length() - 1) for name, extent in layout.source.axes)
            outputs = (("offset", len(layout.map.columns)),)
            return LinearLayout(inputs, outputs, layout.map.columns, layout.map.constant)
    if isinstance(layout, IntegerLayout) and len(layout.outputs) == 1:
        if not layout.size:
            return CuteLayout(0, 0)
        form = unwrapped(layout)
        return layout if form is None else _strided(*form) or layout
    return layout


def _digits(mapping: DigitMap) -> IntegerLayout:
    """Return a digit map as an integer layout on its digits; there is no bound on the numbers."""
    inputs = [(f"c{place}", extent) for place, (extent, _) in enumerate(mapping.modes)]
    return IntegerLayout.from_strides(inputs, [stride for _, stride in mapping.modes], mapping.offset)


def _strided(axes: tuple[Modes, ...], offset: int) -> CuteLayout | ComposedLayout | None:
    """Return one mode per axis behind an offset, or None beyond 64 bits."""
    shapes: list[IntTuple] = []
    steps: list[IntTuple] = []
    for axis in axes or (((1, 0),),):
        # no point sees the stride of an extent 1, however large it is
        modes = tuple((extent, stride if extent > 1 else 0) for extent, stride in axis or ((1, 0),))
        shapes.append(modes[0][0] if len(modes) == 1 else tuple(extent for extent, _ in modes))
        steps.append(modes[0][1] if len(modes) == 1 else tuple(stride for _, stride in modes))
    try:
        plain = CuteLayout(*((shapes[0], steps[0]) if len(shapes) == 1 else (tuple(shapes), tuple(steps))))
        return ComposedLayout(Swizzle(0, 0, 0), offset, plain) if offset else plain
    except LayoutError:
        return None
