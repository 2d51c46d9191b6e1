"""Facts of an explanation, and those of a layout of any family."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from layoutalg import convert
from layoutalg.cute import ComposedLayout, CuteLayout, Morphism, Swizzle, coalesce
from layoutalg.cute.symbolic import SymbolicLayout, normal_form
from layoutalg.draw.grid import cells_of, cells_text, written
from layoutalg.f2 import LinearLayout
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import LayoutError, RepresentabilityError, shown
from layoutalg.ground.layout import Layout, takes_offsets
from layoutalg.integer import IntegerLayout
from layoutalg.proofs.tile_map import extents_of
from layoutalg.targets.layouts.padding import PaddedShared

CHECK = Checker("LA414", "this cannot be explained")
GRID = 8
MAX_TABLE = 1 << 20


class Fact(NamedTuple):
    """A named fact: its lines, and the same as JSON-ready data; whether what is explained holds as far as it says."""

    name: str
    lines: tuple[str, ...]
    value: object
    holds: bool = True


def said(name: str, text: str | list[str], value: object = None, *, holds: bool = True) -> Fact:
    """Return a fact; without ``value``, its data are its lines."""
    lines = tuple(text.split("\n")) if isinstance(text, str) else tuple(text)
    given = (lines[0] if len(lines) == 1 else list(lines)) if value is None else value
    return Fact(name, lines, given, holds)


def layout_facts(layout: Any) -> Iterator[Fact]:
    """Yield the facts of a layout of any family.

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
    if layout.title:
        yield said("family", layout.title)
    if isinstance(layout, SymbolicLayout):
        yield said("size", f"{layout.size} elements")
        yield said("assumes", str(layout.assumptions))
        yield from symbolic_facts(layout)
        return
    of_cute = isinstance(layout, CuteLayout | ComposedLayout)
    if not isinstance(layout, Morphism | PaddedShared | Swizzle) and takes_offsets(layout):
        yield said("direction", "offset to coordinates; the forms below are its inverse's, coordinates to offset")
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
        yield from _other_families(layout, of_cute)


def symbolic_facts(layout: SymbolicLayout) -> Iterator[Fact]:
    """Yield the normal form of a symbolic layout, and what divides its offsets at all sizes.

    Example:
        >>> for fact in symbolic_facts(SymbolicLayout(("M", 64), ("K", 1), ("K % 8 == 0",))):
        ...     print(fact.name, "-", *fact.lines)
        normal form - (M,64):(K,1)
        multiples - strides of 8, 1; every offset of 1
        vectors - up to 8 elements along the mode of stride 1 are aligned at all sizes
        lattice - offsets are integer combinations of 1, K
    """
    form = normal_form(layout)
    yield said("normal form", str(form.layout))
    strides, most = ", ".join(map(str, form.gcds)), "" if form.exact else " at least"
    data = {"strides": list(form.gcds), "offsets": form.gcd, "exact": form.exact}
    yield said("multiples", f"strides of{most} {strides}; every offset of{most} {form.gcd}", data)
    text = "no vector of two or more elements is known to be contiguous and aligned at all sizes"
    if form.vector > 1:
        text = f"up to {form.vector} elements along the mode of stride 1 are aligned at all sizes"
    yield said("vectors", text, form.vector)
    if form.lattice is not None and form.generators:
        told = [str(each) for each in form.generators]
        yield said("lattice", f"offsets are integer combinations of {', '.join(told)}", told)


def _other_families(layout: Any, of_cute: bool) -> Iterator[Fact]:
    if of_cute:
        yield said("over F2", _tried(lambda: _columns(convert.to_linear(layout))))
    else:
        yield said("as CuTe", _tried(lambda: convert.to_cute(layout)))
        if not isinstance(layout, LinearLayout):
            yield said("over F2", _tried(lambda: convert.to_linear(layout)))
    if not isinstance(layout, IntegerLayout):
        yield said("over Z", _tried(lambda: convert.to_integer(layout)))


def _plain(data: dict[str, Any]) -> dict[str, object]:
    """Integers up to 2^53, which every JSON reader keeps exact; larger ones as text."""
    return {name: value if abs(value) < 2**53 else shown(value) for name, value in data.items()}


def _size(layout: Any) -> int | None:
    """The number of coordinates; None for swizzles and for partial or parametric layouts."""
    if isinstance(layout, PaddedShared):
        return int(layout.linear.size)
    try:
        return getattr(layout, "size", None)
    except LayoutError:
        return None


def _text(ask: Callable[[], object]) -> str:
    """The text of a value, if Python can write it: integers of more than 4300 digits raise ValueError."""
    try:
        return str(ask())
    except ValueError as error:
        if isinstance(error, LayoutError):
            raise
        return "a value with numbers too long to print"


def _tried(ask: Callable[[], object]) -> str:
    """The text of the answer, or the reason for the refusal."""
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
    """The number of distinct values, and the corner of the table."""
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
    """The corner of a two-dimensional table, otherwise its first entries."""
    try:
        extents = (
            extents_of(layout) if isinstance(layout, CuteLayout | ComposedLayout) else tuple(layout.in_dims.values())
        )
    except LayoutError:
        extents = ()
    if len(extents) == 2 and extents[0] * extents[1] == len(values):
        return cells_text(cells_of(layout, GRID), side=GRID).splitlines()
    first = [written(tuple(each) if isinstance(each, list) else each) for each in values[:32]]
    return [" ".join(first) + (" ..." if len(values) > 32 else "")]
