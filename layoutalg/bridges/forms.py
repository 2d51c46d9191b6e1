"""Equality by normal forms: coalesced strides below common swizzles, maps over F2, guards of partial tiles.

The coalesced form of a CuTe or integer layout (including several outputs and moduli), the columns and constant of a map
over F2, and the map of a hierarchical layout are complete: unequal forms mean unequal functions, and a coordinate where
they differ can be read off.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from layoutalg.bridges.linear import linear_form
from layoutalg.bridges.normal import AnyFamily, excluded
from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.cute.swizzle import bottom
from layoutalg.ground.digits import merge
from layoutalg.ground.listed import ListedLayout
from layoutalg.ground.recognize import Departure
from layoutalg.ground.verdict import Proved
from layoutalg.hierarchy import HierarchicalLayout
from layoutalg.integer import IntegerLayout, coalesced
from layoutalg.integer.forms import residue_form
from layoutalg.piecewise import PiecewiseLayout

Answer: TypeAlias = "Proved | int | str"
"""A proof of equality, a coordinate where the values should differ, or why there is neither."""


def partial_tiles(f: AnyFamily, g: AnyFamily) -> Answer:
    """Compare two layouts, at least one of them a partial tile."""
    both = isinstance(f, HierarchicalLayout) and isinstance(g, HierarchicalLayout)
    if both and (f.map, f.guards) == (g.map, g.guards):  # type: ignore[union-attr]
        return Proved("normal-form", {"map": f.map, "guards": f.guards})  # type: ignore[union-attr]
    for tile, other in ((f, g), (g, f)):
        at = excluded(tile) if isinstance(tile, HierarchicalLayout) else None
        if at is not None and (not isinstance(other, HierarchicalLayout) or other.holds(at)):
            return at
    return "the guards differ, or the maps under equal guards"


def by_form(f: AnyFamily, g: AnyFamily) -> Answer:
    """Compare normal forms of total layouts: strided below common swizzles, then over F2.

    Example:
        >>> by_form(CuteLayout(4, 1), CuteLayout((2, 2), (1, 3)))
        2
    """
    if isinstance(f, PiecewiseLayout) or isinstance(g, PiecewiseLayout):
        return "a piecewise layout has no normal form"
    if isinstance(f, ListedLayout) or isinstance(g, ListedLayout):
        return "a table has no normal form"
    if isinstance(f, HierarchicalLayout) and isinstance(g, HierarchicalLayout) and f.map == g.map:
        return Proved("normal-form", {"map": f.map})
    found = _strided(f, g)
    if found is None and (isinstance(f, IntegerLayout) or isinstance(g, IntegerLayout)):
        found = _modular(f, g)
    if found is not None:
        return found
    if isinstance(f, IntegerLayout) and len(f.outputs) != 1:
        return "the moduli differ and wrap"
    return _affine(f, g)


def _strided(f: AnyFamily, g: AnyFamily) -> Answer | None:
    """Decide if both are strided after stripping their common outer swizzles; else None."""
    if not isinstance(f, CuteLayout | ComposedLayout) or not isinstance(g, CuteLayout | ComposedLayout):
        return None
    left = list(f.stages) if isinstance(f, ComposedLayout) else []
    right = list(g.stages) if isinstance(g, ComposedLayout) else []
    # swizzles and offsets are bijections, so equal outer ones cancel
    while left and right and left[0] == right[0]:
        del left[0], right[0]
    if any(swizzle.bits for swizzle, _ in (*left, *right)):
        return None
    offset = sum(offset for _, offset in left)
    if offset != sum(offset for _, offset in right):
        return 0
    modes = merge(bottom(f).flat)
    at = _break(modes, merge(bottom(g).flat))
    return Proved("normal-form", {"coalesced": modes, "offset": offset}) if at is None else at


def _modular(f: AnyFamily, g: AnyFamily) -> Answer | None:
    """Compare coalesced forms over the integers if both sides have the same moduli; else None."""
    left, right = _over_z(f), _over_z(g)
    if left is None or right is None or left.moduli != right.moduli:
        return None
    if left.offset != right.offset:
        return 0
    modes = coalesced(left)
    at = _break(modes, coalesced(right))
    if at is not None:
        return at
    return Proved("normal-form", {"coalesced": modes, "offset": left.offset, "moduli": left.moduli})


def _break(left: Iterable[tuple[int, Any]], right: Iterable[tuple[int, Any]]) -> int | None:
    """Return the first coordinate where coalesced modes of equal size differ, or None."""
    position = 1
    for (extent, stride), (other, step) in zip(left, right, strict=False):
        if stride != step:
            return position
        position *= min(extent, other)
        if extent != other:
            return position
    return None


def _over_z(layout: AnyFamily) -> IntegerLayout | None:
    """Return an integer or strided layout, over Z wherever a modulus does not wrap; None for other families."""
    if isinstance(layout, CuteLayout | ComposedLayout):
        stages = layout.stages if isinstance(layout, ComposedLayout) else ()
        if any(swizzle.bits for swizzle, _ in stages):
            return None
        modes = merge(bottom(layout).flat)
        inputs = [(f"c{place}", extent) for place, (extent, _) in enumerate(modes)]
        return IntegerLayout.from_strides(inputs, [stride for _, stride in modes], sum(offset for _, offset in stages))
    if not isinstance(layout, IntegerLayout):
        return None
    outputs, rows, constants = [], [], []
    for (name, modulus), row, constant in zip(layout.outputs, layout.matrix, layout.offset, strict=True):
        form = residue_form(row, constant, modulus, layout.extents)
        outputs.append((name, 0 if form else modulus))
        rows.append(form[0] if form else row)
        constants.append(form[1] if form else constant)
    return IntegerLayout(layout.inputs, tuple(outputs), tuple(rows), tuple(constants))


def _affine(f: AnyFamily, g: AnyFamily) -> Answer:
    """Compare two layouts of which at least one is affine over F2."""
    if f.size & (f.size - 1):
        return "swizzles differ and the size is not a power of two"
    left, right = linear_form(f), linear_form(g)
    if not isinstance(left, Departure) and left == right:
        return Proved("normal-form", {"columns": left[0], "constant": left[1]})
    # an affine map is determined by 0 and the unit coordinates; a departure breaks a relation among four coordinates
    suspects = {0, *(1 << bit for bit in range(f.size.bit_length() - 1))}
    for form in (left, right):
        if isinstance(form, Departure):
            top = 1 << (form.coordinate.bit_length() - 1)
            suspects |= {form.coordinate, top, form.coordinate ^ top}
    found = next((at for at in sorted(suspects) if f.at(at) != g.at(at)), None)
    return "neither layout is affine over F2" if found is None else found
