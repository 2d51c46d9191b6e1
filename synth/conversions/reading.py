"""Read register layouts: by axis names, thread-value layouts by their modes, or as tables."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.check import Checker, integers
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.layout import Layout
from layoutalg.ground.recognize import Departure, linear
from layoutalg.notation.written import read_written
from layoutalg.proofs.conversion import Held
from layoutalg.synth.conversions.inside import Places
from layoutalg.targets.registry import lookup
from layoutalg.targets.target_model import Fact, model_of

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA933", "invalid argument to conversion() or gather()")
ROLES = ("register", "lane", "warp", "block")
VALUES = "values"
"""The single axis of a thread-value layout without a shape: it only numbers elements."""
BLOCKS = ("block", "cta", "cluster")
MOST = 1 << 20
"""Largest layout, in places."""
DEFAULT_SMEM_BYTES = 48 << 10
"""For targets whose limit is unknown."""


@dataclass(frozen=True, slots=True)
class Given:
    """A register layout after reading."""

    places: Places | None  # its columns; None for a table
    # [warp, lane, register], as a nested tuple; None if the layout is linear
    table: tuple[tuple[tuple[int, ...], ...], ...] | None
    blocks: tuple[int, ...]  # images of the block bits
    tensor: tuple[tuple[str, int], ...]  # axes of the tensor with their sizes
    counts: tuple[int, int, int]  # registers, lanes and warps
    named: bool = True  # whether the layout names its axes; if not, they match the other layout's by position
    clusters: int = 1  # number of blocks folded into the warps

    def clustered(self) -> Given:
        """Return the layout with its blocks as the high bits of the warp."""
        if self.places is None:
            return self
        places = replace(self.places, warps=(*self.places.warps, *self.blocks))
        blocks = 1 << len(self.blocks)
        counts = (*self.counts[:2], self.counts[2] * blocks)
        return replace(self, places=places, blocks=(), counts=counts, clusters=blocks)

    def held(self) -> Held:
        """Return the layout in the form plans use."""
        if self.places is None:
            return Held(None, self.table, *self.counts)
        names = zip(("register", "lane", "warp"), self.counts, strict=True)
        axes = tuple((name, count.bit_length() - 1) for name, count in names)
        wide = sum(extent.bit_length() - 1 for _, extent in self.tensor)
        layout = LinearLayout(axes, (("element", wide),), self.places.columns, self.places.constant)
        return Held(layout, None, *self.counts)


def parsed(source: object, destination: object, shape: tuple[int, ...] | None = None) -> tuple[object, object]:
    """Parse two layouts of one tensor if they are texts; sizes missing in one are taken from the other.

    Raises: MalformedError: those of ``layoutalg.parse``.
    """
    first = None
    with contextlib.suppress(MalformedError):  # it may lack sizes that the destination states
        first = parsed_one(source, shape, None)
    second = parsed_one(destination, shape, _extents(first))
    return (parsed_one(source, shape, _extents(second)) if first is None else first), second


def parsed_one(layout: object, shape: tuple[int, ...] | None, known: tuple[int, ...] | None = None) -> object:
    """Parse a layout if it is not a table of elements."""
    if isinstance(layout, np.ndarray | list):  # elements by warp, lane and register, not offsets of a tile
        return layout
    return read_written(layout, shape, known=known).layout


def _extents(layout: object) -> tuple[int, ...] | None:
    """The tensor's extents, for a layout with axes dim0, dim1, ...; otherwise None."""
    sizes = layout.out_dims if isinstance(layout, LinearLayout) else {}
    names = [f"dim{place}" for place in range(len(sizes))]
    return tuple(sizes[name] for name in names) if sizes and set(names) == set(sizes) else None


def read(layout: object, argument: str, lanes: int, shape: tuple[int, ...] | None = None) -> Given:
    """Read a register layout.

    Args:
        layout: A layout of any family from register, lane, warp (and block) to a tensor; a CuTe layout of two modes,
            thread and value, possibly swizzled, to the elements of the tensor, first axis fastest; or a table of
            elements by warp, lane and register.
        argument: Name for messages.
        lanes: Lanes of a warp.
        shape: Extents of the tensor, outermost first.
    """
    if isinstance(layout, LinearLayout):
        found = _linear(layout, argument, lanes)
    elif isinstance(layout, CuteLayout | ComposedLayout):
        found = _tabled(_valued(layout, argument, lanes), _counted(shape), argument, lanes, named=False)
    elif isinstance(layout, Layout):
        found = _tabled(*_by_names(layout, argument), argument, lanes)
    else:
        table = None if isinstance(layout, np.ma.MaskedArray) else integers(layout, argument)
        if table is None or table.ndim != 3 or not table.size:
            rule = "must be a layout of register, lane, warp or of thread, value, or a table [warp, lane, register]"
            raise CHECK.malformed(argument, rule, layout)
        found = _tabled(table.astype(np.int64), _counted(shape), argument, lanes, named=False)
    if shape is not None and tuple(extent for _, extent in found.tensor) != shape:
        raise CHECK.malformed(argument, f"must be of a tensor of shape {shape}", dict(found.tensor))
    return found


def _counted(sizes: tuple[int, ...] | None) -> tuple[tuple[str, int], ...] | None:
    """The axes of a tensor of known sizes."""
    return None if sizes is None else tuple((f"dim{place}", extent) for place, extent in enumerate(sizes))


def _linear(layout: LinearLayout, argument: str, lanes: int) -> Given:
    parts: dict[str, tuple[int, ...]] = {}
    first = 0
    for name, bits in layout.in_axes:
        role = "block" if name in BLOCKS else name
        if role not in ROLES or role in parts:
            raise CHECK.malformed(argument, "must have the axes register, lane and warp", name)
        parts[role] = layout.columns[first : first + bits]
        first += bits
    held = parts.get("lane", ())
    if 1 << len(held) != lanes:
        raise CHECK.malformed(argument, f"must have {lanes} lanes, like a warp of the target", 1 << len(held))
    places = Places(parts.get("register", ()), held, parts.get("warp", ()), layout.constant)
    counts = (1 << len(places.registers), lanes, 1 << len(places.warps))
    if counts[0] * counts[1] * counts[2] > MOST:
        raise CHECK.malformed(argument, f"must have at most {MOST} places", counts)
    tensor = tuple(layout.out_dims.items())
    return Given(places, None, parts.get("block", ()), tensor, counts)


def _valued(layout: CuteLayout | ComposedLayout, argument: str, lanes: int) -> IntArray:
    """The values by warp, lane and register."""
    shape = layout.shape
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise CHECK.malformed(argument, "must have two modes, thread and value", str(layout))
    threads, values = (int(CuteLayout(mode).size) for mode in shape)
    if threads % lanes or threads * values > MOST:
        raise CHECK.malformed(argument, f"must have a multiple of {lanes} threads, at most {MOST} places", threads)
    flat = layout.table().astype(np.int64)
    return np.asarray(flat.reshape(values, threads).T.reshape(-1, lanes, values))


def _by_names(layout: Layout, argument: str) -> tuple[IntArray, tuple[tuple[str, int], ...] | None]:
    """The elements by warp, lane and register, and the tensor if the layout states it."""
    sizes = {"block" if name in BLOCKS else name: extent for name, extent in layout.in_dims.items()}
    if not {"lane"} <= set(sizes) <= set(ROLES) or len(sizes) < len(layout.in_dims):
        raise CHECK.malformed(argument, "must have the axes register, lane and warp", tuple(layout.in_dims))
    if sizes.pop("block", 1) > 1:
        raise CHECK.malformed(argument, "must be linear over F2 if it has blocks", str(layout))
    if prod(sizes.values()) > MOST:
        raise CHECK.malformed(argument, f"must have at most {MOST} places", sizes)
    table = np.asarray(layout.table())
    if table.ndim != 1:
        raise CHECK.malformed(argument, "must have one output or known output extents", dict(layout.out_dims))
    extents = tuple(layout.out_dims.items())
    cube = table.astype(np.int64).reshape(tuple(reversed(sizes.values())))
    names = list(reversed(sizes))
    for name in ("warp", "lane", "register"):
        if name not in sizes:
            cube, names = cube[..., None], [*names, name]
    turned = cube.transpose([names.index(name) for name in ("warp", "lane", "register")])
    return turned, None if any(extent is None for _, extent in extents) else extents


def _tabled(
    table: IntArray, tensor: tuple[tuple[str, int], ...] | None, argument: str, lanes: int, *, named: bool = True
) -> Given:
    """A layout given by its table; stored as columns if it is linear over F2."""
    counts = (table.shape[2], table.shape[1], table.shape[0])
    if counts[1] != lanes or table.size > MOST:
        raise CHECK.malformed(argument, f"must have {lanes} lanes and at most {MOST} places", counts)
    low, high = int(table.min()), int(table.max())
    size = high + 1 if tensor is None else prod(extent for _, extent in tensor)
    if tensor is not None and (low < 0 or high >= size):
        beyond = low if low < 0 else high
        raise CHECK.malformed(argument, f"must hold elements of the tensor {dict(tensor)}, {size} in all", beyond)
    axes = ((VALUES, size),) if tensor is None else tensor
    flat = table.reshape(-1)
    powers = (*counts, *(extent for _, extent in tensor or ()))
    if low >= 0 and not any(extent & (extent - 1) for extent in powers):
        fit = linear(flat)
        if not isinstance(fit, Departure):
            columns, constant = fit
            first, second = counts[0].bit_length() - 1, (counts[0] * lanes).bit_length() - 1
            places = Places(columns[:first], columns[first:second], columns[second:], constant)
            axes = ((VALUES, 1 << high.bit_length()),) if tensor is None else tensor
            return Given(places, None, (), axes, counts, named)
    nested = tuple(tuple(tuple(row) for row in warp) for warp in table.tolist())
    return Given(None, nested, (), axes, counts, named)


def same_tensor(source: Given, wanted: Given) -> Given:
    """Return the destination with its tensor axes in the source's order.

    Raises: MalformedError: LA933, naming the axis that is missing or has another size.
    """
    if source.counts[2] != wanted.counts[2]:
        raise CHECK.malformed("destination", f"must have {source.counts[2]} warps, like the source", wanted.counts[2])
    mine, theirs = dict(source.tensor), dict(wanted.tensor)
    if VALUES in mine or VALUES in theirs:
        return wanted
    if not (source.named and wanted.named):
        if tuple(mine.values()) != tuple(theirs.values()):
            raise CHECK.malformed("destination", f"must be a layout of the source's tensor {mine}", f"of {theirs}")
        return wanted
    for name in (*theirs, *mine):
        if name not in mine or name not in theirs:
            got = f"of {theirs}: only one of them has the axis {name}"
            raise CHECK.malformed("destination", f"must be a layout of the source's tensor {mine}", got)
        if mine[name] != theirs[name]:
            raise CHECK.malformed("destination", f"must have extent {mine[name]} along {name}", theirs[name])
    if list(mine) == list(theirs):
        return wanted
    if wanted.places is None:
        return _turned_table(wanted, mine)
    starts = first_bits(mine)
    order = [1 << starts[name] + bit for name, extent in theirs.items() for bit in range(extent.bit_length() - 1)]
    turned = wanted.places.mapped(lambda element: matrix.apply(order, element))
    blocks = tuple(matrix.apply(order, column) for column in wanted.blocks)
    return replace(wanted, places=turned, blocks=blocks, tensor=source.tensor)


def first_bits(sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the first bit of each axis in an element's number."""
    bits = [size.bit_length() - 1 for size in sizes.values()]
    return dict(zip(sizes, accumulate(bits, initial=0), strict=False))


def _turned_table(wanted: Given, mine: dict[str, int]) -> Given:
    """A table of tensor elements, renumbered for another axis order."""
    theirs = dict(wanted.tensor)
    parts = dict(zip(theirs, np.unravel_index(np.array(wanted.table), tuple(theirs.values()), order="F"), strict=True))
    turned = np.ravel_multi_index([parts[name] for name in mine], tuple(mine.values()), order="F")
    nested = tuple(tuple(tuple(row) for row in warp) for warp in turned.tolist())
    return replace(wanted, table=nested, tensor=tuple(mine.items()))


def shared_bytes(target: str) -> int:
    """Return the maximum shared memory of a block on a target, in bytes."""
    name = "shared_bytes_per_block_optin" if lookup(target).vendor == "nvidia" else "lds_bytes_per_block"
    fact = model_of(target).limit(name)
    return int(fact.value) if isinstance(fact, Fact) and isinstance(fact.value, int) else DEFAULT_SMEM_BYTES
