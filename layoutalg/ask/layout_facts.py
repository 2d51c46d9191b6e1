"""What a layout does, whatever its family: size, image, table, normal form, the other families.

Implementation notes: numbers of a layout can be too long to be written in decimal; ``_text`` then says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from layoutalg import convert
from layoutalg.ask.fact import Fact, said
from layoutalg.bridges.normal import takes_offsets
from layoutalg.cute import ComposedLayout, CuteLayout, Morphism, Swizzle, coalesce
from layoutalg.cute.symbolic import SymbolicLayout
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import LayoutError, RepresentabilityError, shown
from layoutalg.ground.layout import Layout
from layoutalg.hierarchy import HierarchicalLayout
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.proofs.tile_map import extents_of
from layoutalg.targets.layouts.padding import PaddedShared

GRID = 8
MAX_TABLE = 1 << 20
_FAMILIES: tuple[tuple[type, str], ...] = (
    (LinearLayout, "linear over F2"),
    (CuteLayout, "CuTe shape:stride"),
    (ComposedLayout, "CuTe behind swizzles and offsets"),
    (IntegerLayout, "affine over Z on a box"),
    (PiecewiseLayout, "piecewise quasi-affine"),
    (HierarchicalLayout, "levels of a hierarchy"),
    (Morphism, "tuple morphism"),
    (PaddedShared, "shared memory with padding"),
    (Swizzle, "a swizzle alone"),
    (SymbolicLayout, "CuTe shape:stride with symbolic sizes"),
)


def layout_facts(layout: Any) -> Iterator[Fact]:
    """Yield what a layout does.

    Args:
        layout: A layout of any family.

    Example:
        >>> for fact in layout_facts(CuteLayout((4, 8), (1, 4))):
        ...     print(fact.name, "-", fact.lines[0])
        layout - (4,8):(1,4)
        family - CuTe shape:stride
        size - 32 elements, offsets below 32
        image - 32 distinct values, injective
        table -  0  4  8 12 16 20 24 28
        normal form - 32:1
        over F2 - linear: coordinate bits map to 1, 2, 4, 8, 16
        over Z - Z[c0:4=(1), c1:8=(4) -> offset]
    """
    yield said("layout", _text(lambda: layout))
    family = next((name for kind, name in _FAMILIES if isinstance(layout, kind)), None)
    if family is not None:
        yield said("family", family)
    if isinstance(layout, SymbolicLayout):
        yield said("size", f"{layout.size} elements")
        yield said("assumes", str(layout.assumptions))
        return
    of_cute = isinstance(layout, CuteLayout | ComposedLayout)
    if not isinstance(layout, Morphism | PaddedShared | Swizzle) and takes_offsets(layout):
        yield said("direction", "offset to coordinates; the forms below are of its inverse, coordinates to offset")
    size = _size(layout)
    if size is not None:
        reach = f", offsets below {shown(layout.cosize)}" if of_cute or isinstance(layout, PaddedShared) else ""
        data = {"elements": size, "cosize": layout.cosize} if reach else {"elements": size}
        yield said("size", f"{shown(size)} elements{reach}", _plain(data))
    if isinstance(layout, LinearLayout):
        text = f"{layout.rank} over F2; injective {layout.is_injective}, surjective {layout.is_surjective}"
        yield said("rank", text, layout.rank)
    yield from _image(layout, size)
    if isinstance(layout, CuteLayout):
        yield said("normal form", _text(lambda: coalesce(layout)))
    if isinstance(layout, Layout):
        yield from _families(layout, of_cute)


def _families(layout: Any, of_cute: bool) -> Iterator[Fact]:
    if not of_cute:
        yield said("as CuTe", _tried(lambda: convert.to_cute(layout)))
    if of_cute:
        yield said("over F2", _tried(lambda: _columns(convert.to_linear(layout))))
    elif not isinstance(layout, LinearLayout):
        yield said("over F2", _tried(lambda: convert.to_linear(layout)))
    if not isinstance(layout, IntegerLayout):
        yield said("over Z", _tried(lambda: convert.to_integer(layout)))


def _plain(data: dict[str, Any]) -> dict[str, object]:
    """Integers that JSON readers keep; longer ones as they are shown."""
    return {name: value if abs(value) < 2**53 else shown(value) for name, value in data.items()}


def _size(layout: Any) -> int | None:
    """The number of coordinates; None for a swizzle and for a layout that is partial or has parameters."""
    if isinstance(layout, PaddedShared):
        return int(layout.linear.size)
    try:
        return getattr(layout, "size", None)
    except LayoutError:
        return None


def _text(ask: Callable[[], object]) -> str:
    """The text of a value; Python refuses to write integers of more than 4300 digits."""
    try:
        return str(ask())
    except ValueError as error:
        if isinstance(error, LayoutError):
            raise
        return "a value with numbers too long to be written"


def _tried(ask: Callable[[], object]) -> str:
    """The text of the answer, or the first lines of the refusal."""
    try:
        return _text(ask)
    except RepresentabilityError as error:
        return f"no: {error.diagnostic.because or error.diagnostic.what}" + (
            f" (at {dict(error.diagnostic.witness)})" if error.diagnostic.witness else ""
        )
    except LayoutError as error:
        return f"not decided: {error.diagnostic.what}"


def _columns(linear: LinearLayout) -> str:
    images = [str(image[0]) for images in linear.bases.values() for image in images]
    constant = next(iter(linear.offset.values()))
    return f"linear: coordinate bits map to {', '.join(images) or 'nothing'}" + (
        f", xor {constant}" if constant else ""
    )


def _image(layout: Any, size: int | None) -> Iterator[Fact]:
    """How many values there are, and the corner of the table."""
    if size is None or not 0 < size <= MAX_TABLE or not isinstance(layout, Layout):
        return
    try:
        table = np.asarray(layout.table())
    except LayoutError as error:
        yield said("image", f"not decided: {error.diagnostic.what}")
        return
    rows = table.tolist()
    distinct = len({tuple(value) if isinstance(value, list) else value for value in rows})
    one_to_one = distinct == len(rows)
    data = {"distinct": distinct, "injective": one_to_one}
    yield said("image", f"{distinct} distinct values, {'' if one_to_one else 'not '}injective", data)
    yield said("table", _grid(layout, rows))


def _grid(layout: Any, values: list[Any]) -> list[str]:
    """The corner of the table over two dimensions, or its beginning."""
    try:
        extents = (
            extents_of(layout) if isinstance(layout, CuteLayout | ComposedLayout) else tuple(layout.in_dims.values())
        )
    except LayoutError:
        extents = ()
    if len(extents) != 2 or extents[0] * extents[1] != len(values):
        return [" ".join(_cell(value) for value in values[:32]) + (" ..." if len(values) > 32 else "")]
    corner = [
        [_cell(values[i + extents[0] * j]) for j in range(min(GRID, extents[1]))] for i in range(min(GRID, extents[0]))
    ]
    rows = [row + (["..."] if extents[1] > GRID else []) for row in corner]
    width = max((len(cell) for row in rows for cell in row), default=0)
    lines = [" ".join(cell.rjust(width) for cell in row) for row in rows]
    return lines + (["..."] if extents[0] > GRID else [])


def _cell(value: Any) -> str:
    return "(" + ",".join(map(str, value)) + ")" if isinstance(value, list) else str(value)
