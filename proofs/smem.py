"""Write a layout of any family as strided digits per tile dimension followed by a hardware swizzle.

A layout maps tile coordinates, outermost dimension first, to element offsets in shared memory (``tile_map``: which axis
is which dimension). For a given swizzle, ``f(t) = swizzle(base + sum over digits of t of digit * stride)`` holds iff
swizzle(f(t)) (every swizzle is an involution) is its value at the origin plus one strided function per dimension. The
coalesced digits are unique, so a refusal after trying all swizzles is a proof.

CuTe modes under a hardware swizzle are used as they are and compared with a small layout's table. Any other layout is
read from its table, and the digits are compared with it at every element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.ground.digits import Flat, merge, table
from layoutalg.ground.errors import Diagnostic, LayoutError, RepresentabilityError
from layoutalg.ground.limits import SMEM_REACH
from layoutalg.ground.recognize import Departure, strided
from layoutalg.ground.record import Checked
from layoutalg.proofs.tensormap.swizzle import XORS, swizzled
from layoutalg.proofs.tile_map import CHECK, check_modes, extents_of, layout_of, offsets
from layoutalg.targets.nvidia.tensormap.fields import name_of_enumerator

IntArray: TypeAlias = npt.NDArray[np.int64]
TABLE_ELEMENTS = 2**20
"""Largest tile that is read from its table, or whose CuTe modes are compared with it."""


@dataclass(frozen=True, slots=True)
class SharedTile(Checked, code="LA374"):
    """A tile layout ``swizzle(base + sum of digit * stride)`` on byte addresses."""

    modes: tuple[Flat, ...]  # per tile dimension, coalesced ``(extent, element stride)`` digits, fastest first
    swizzle: str  # TensorMap swizzle name
    base: int = 0  # offset of the first element from the tile base, in elements, before the swizzle

    @property
    def tile(self) -> tuple[int, ...]:
        """The tile's extents."""
        return tuple([math.prod(extent for extent, _ in digits) for digits in self.modes])

    def addresses(self, element_bytes: int) -> IntArray:
        """Return the byte address of every tile element; shape: the tile."""
        total: IntArray = np.array(self.base, dtype=np.int64)
        for digits in self.modes:
            total = total[..., None] + table(digits)
        return swizzled(self.swizzle, total * element_bytes)


def shared_tile(
    smem: object,
    tile: Sequence[int] | None,
    element_bytes: int,
    swizzle: object = None,
    *,
    names: Sequence[str] = tuple(XORS),
    axes: Sequence[str] | None = None,
) -> SharedTile:
    """Return the digits and swizzle that equal a layout, or refuse.

    Args:
        smem: A layout of any family, or its text; None for the row-major tile.
        tile: Tile extents, outermost first; None for those of the layout.
        element_bytes: Bytes of an element.
        swizzle: A swizzle to apply after ``smem``, by name or as a ``Swizzle``; None if ``smem`` includes it.
        names: The swizzles allowed.
        axes: Names of the layout's axes, outermost dimension first; see ``tile_map``.

    Example:
        >>> shared_tile("Sw<3,3,3> o 0 o (8,64):(64,1)", None, 2)
        SharedTile(modes=(((8, 64),), ((64, 1),)), swizzle='128B', base=0)
    """
    after = None if swizzle is None else _stated(swizzle, element_bytes, names)
    extents = None if tile is None else CHECK.vector(tile, "tile")
    layout = layout_of(smem, extents, element_bytes)
    extents = extents_of(layout, axes) if extents is None else extents
    if not extents:
        raise CHECK.malformed("tile", "must have at least one dimension", extents)
    for place, extent in enumerate(extents):
        CHECK.integer(extent, f"tile[{place}]", 1)
    found = _from_modes(layout, extents, element_bytes, names) if axes is None else None
    if found is None:
        if math.prod(extents) > TABLE_ELEMENTS:
            raise CHECK.malformed("tile", f"must have at most {TABLE_ELEMENTS} elements for this layout", extents)
        values = _addresses(layout, extents, axes, element_bytes)
        found = _searched(layout, values, element_bytes, names if after is None else ("NONE",))
    elif math.prod(extents) <= TABLE_ELEMENTS:
        values = _addresses(layout, extents, None, element_bytes)
        if not np.array_equal(found.addresses(element_bytes), values):  # an internal error must not become an answer
            raise LayoutError(Diagnostic("LA378", "internal error: digits differ from the layout", (str(layout),)))
    if after is None or after == found.swizzle == "NONE":
        return found
    if found.swizzle != "NONE":
        raise CHECK.malformed("swizzle", f"must be None: smem already has the swizzle {found.swizzle}", swizzle)
    return SharedTile(found.modes, after, found.base)


def _addresses(layout: Any, tile: tuple[int, ...], axes: Sequence[str] | None, element_bytes: int) -> IntArray:
    """Return the byte addresses of the tile's elements, read from the layout's table."""
    values = offsets(layout, tile, axes)
    if int(values.min()) < 0 or int(values.max()) >= SMEM_REACH:
        worst = int(values.min()) if int(values.min()) < 0 else int(values.max())
        raise CHECK.malformed("smem", f"must have offsets in [0, {SMEM_REACH})", worst)
    return values * element_bytes


def _from_modes(layout: Any, tile: tuple[int, ...], element_bytes: int, names: Sequence[str]) -> SharedTile | None:
    """Return the digits of CuTe modes under at most one hardware swizzle; None for any other layout."""
    if not isinstance(layout, CuteLayout | ComposedLayout):
        return None
    check_modes(layout, tile)
    base, name = 0, "NONE"
    if isinstance(layout, ComposedLayout):
        moving = [place for place, (swizzle, _) in enumerate(layout.stages) if swizzle.bits]
        if moving not in ([], [0]):
            return None
        base = sum(offset for _, offset in layout.stages)
        found = _name_of(layout.stages[0][0], element_bytes, names) if moving else "NONE"
        if found is None:
            return None
        name, layout = found, layout.base
    parts = [layout] if len(tile) == 1 else list(layout) if len(tile) == layout.rank else []
    modes = tuple([merge(part.flat) for part in parts])
    reach = base + sum((extent - 1) * stride for digits in modes for extent, stride in digits)
    if not 0 <= base <= reach < SMEM_REACH or len(modes) != len(tile):
        return None
    if any(stride < 0 for digits in modes for _, stride in digits):
        return None
    return SharedTile(modes, name, base)


def _searched(layout: Any, values: IntArray, element_bytes: int, names: Sequence[str]) -> SharedTile:
    """Return the first swizzle with digits that give these byte addresses, preferring those without a base."""
    based: SharedTile | None = None
    departure: dict[str, object] = {}
    for name in names:
        modes, at = _digits(swizzled(name, values) // element_bytes)
        if modes is None:
            departure = departure or at
            continue
        found = SharedTile(modes, name, int(swizzled(name, values.reshape(-1)[:1])[0]) // element_bytes)
        if not np.array_equal(found.addresses(element_bytes), values):
            raise LayoutError(Diagnostic("LA378", "internal error: digits differ from the layout", (str(layout),)))
        if not found.base:
            return found
        based = based or found
    if based is None:
        raise _refused(layout, element_bytes, names, departure)
    return based


def _digits(linear: IntArray) -> tuple[tuple[Flat, ...] | None, dict[str, object]]:
    """Return the digits per dimension, or None and where the offsets stop being strided."""
    first = int(linear.reshape(-1)[0])
    total: IntArray = np.array(first, dtype=np.int64)
    modes: list[Flat] = []
    for dim in range(linear.ndim):
        line = linear[(0,) * dim + (slice(None),) + (0,) * (linear.ndim - dim - 1)]
        digits = strided(line)
        if isinstance(digits, Departure):
            at = (0,) * dim + (digits.coordinate,) + (0,) * (linear.ndim - dim - 1)
            return None, {"coordinate": at, "offset": digits.value, "strided": digits.forced}
        back = [stride for _, stride in digits if stride < 0]
        if back:
            return None, {"dimension": dim, "stride": back[0]}
        modes.append(digits)
        total = total[..., None] + (line - first)
    wrong = np.argwhere(total != linear)
    if len(wrong):
        at = tuple(wrong[0].tolist())
        return None, {"coordinate": at, "offset": int(linear[at]), "strided": int(total[at])}
    return tuple(modes), {}


def _name_of(swizzle: Swizzle, element_bytes: int, names: Sequence[str]) -> str | None:
    """Return the hardware name of a swizzle of elements or bytes; None if it has none."""
    if not swizzle.bits:
        return "NONE"
    exact = swizzle if swizzle.unit == "byte" else swizzle.recast_bytes(element_bytes)
    return next((name for name in names if XORS[name] == ((exact.bits, exact.base, exact.shift),)), None)


def _stated(swizzle: object, element_bytes: int, names: Sequence[str]) -> str:
    """Return the name of a swizzle passed separately from the layout."""
    name = (
        _name_of(swizzle, element_bytes, names)
        if isinstance(swizzle, Swizzle)
        else name_of_enumerator("swizzle", swizzle)
    )
    if not isinstance(name, str) or name not in names:
        hint = f"; {_nearest(swizzle, element_bytes, names)}" if isinstance(swizzle, Swizzle) else ""
        raise CHECK.malformed("swizzle", f"must be one of {', '.join(names)} or an equal Swizzle", swizzle, hint)
    return name


def _nearest(swizzle: Swizzle, element_bytes: int, names: Sequence[str]) -> str:
    """Return a hint naming the closest hardware swizzle."""
    exact = swizzle if swizzle.unit == "byte" else swizzle.recast_bytes(element_bytes)
    known = {name: Swizzle(*XORS[name][0], "byte") for name in names if len(XORS[name]) == 1}

    def distance(name: str) -> int:
        other = known[name]
        return abs(other.bits - exact.bits) + abs(other.base - exact.base) + abs(other.shift - exact.shift)

    name = min(known, key=distance)
    best = known[name]
    text = str(best) if swizzle.unit == "byte" else str(best.recast_elements(element_bytes))
    return f"on {element_bytes}-byte elements {swizzle} is {exact}; the closest hardware swizzle is {text}, {name}"


def _refused(
    layout: Any, element_bytes: int, names: Sequence[str], departure: dict[str, object]
) -> RepresentabilityError:
    """Return the refusal: where the layout stops being strided, and the closest hardware swizzle."""
    if "dimension" in departure:
        because = f"dimension {departure['dimension']} has a negative stride in shared memory"
    else:
        because = (
            f"not strided: at coordinate {departure['coordinate']} the offset is {departure['offset']}, the strides "
            f"give {departure['strided']}"
        )
    others = ", ".join(name for name in names if name != "NONE")
    because += f"; undoing a swizzle ({others}) does not make it strided" * bool(others)
    stages = layout.stages if isinstance(layout, ComposedLayout) else ()
    foreign = [swizzle for swizzle, _ in stages if swizzle.bits and _name_of(swizzle, element_bytes, names) is None]
    if foreign and others:
        because += f"; {_nearest(foreign[0], element_bytes, names)}"
    what = "not strides followed by a hardware swizzle"
    return RepresentabilityError(Diagnostic("LA377", what, (str(layout)[:200],), because, departure))
