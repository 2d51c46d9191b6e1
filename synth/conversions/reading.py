"""Reading layouts of registers: linear layouts by the names of their axes, thread-value layouts by their modes.

Main definitions: ``Given``, ``read``, ``same_tensor``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from layoutalg.cute import CuteLayout
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.check import Checker
from layoutalg.notation import parse
from layoutalg.proofs.conversion import Held
from layoutalg.synth.conversions.inside import Places

CHECK = Checker("LA933", "this is not a question about a conversion")
ROLES = ("register", "lane", "warp", "block")
VALUES = "values"
"""The axis of what a thread-value layout counts."""
BLOCKS = ("block", "cta", "cluster")
MOST = 1 << 20
"""Places of a layout."""


@dataclass(frozen=True, slots=True)
class Given:
    """A layout of registers, as it was read.

    Args:
        places: Its columns; None where it is a table.
        table: [warp, lane, register], as a nested tuple; None where it is linear.
        blocks: Images of the bits of the block.
        tensor: Axes of the tensor with their sizes.
        counts: Registers, lanes and warps.
    """

    places: Places | None
    table: tuple[tuple[tuple[int, ...], ...], ...] | None
    blocks: tuple[int, ...]
    tensor: tuple[tuple[str, int], ...]
    counts: tuple[int, int, int]

    def held(self) -> Held:
        """Return the layout as plans have it."""
        if self.places is None:
            return Held(None, self.table, *self.counts)
        names = zip(("register", "lane", "warp"), self.counts, strict=True)
        axes = tuple((name, count.bit_length() - 1) for name, count in names)
        wide = sum(extent.bit_length() - 1 for _, extent in self.tensor)
        layout = LinearLayout(axes, (("element", wide),), self.places.columns, self.places.constant)
        return Held(layout, None, *self.counts)


def read(layout: object, argument: str, lanes: int, shape: tuple[int, ...] | None = None) -> Given:
    """Return a layout of registers.

    Args:
        layout: A ``LinearLayout`` from register, lane, warp (and block) to a tensor; a ``CuteLayout`` or its text, of
            two modes, thread and value.
        argument: Name for messages.
        lanes: Lanes of a warp.
        shape: Extents of the tensor, where a text does not say them.

    Raises: MalformedError: LA933.
    """
    if isinstance(layout, str):
        layout = parse(layout, shape)
    if isinstance(layout, LinearLayout):
        return _linear(layout, argument, lanes)
    if isinstance(layout, CuteLayout):
        return _valued(layout, argument, lanes)
    rule = "must be a linear layout of registers, lanes and warps, or a CuTe layout of threads and values"
    raise CHECK.malformed(argument, rule, layout)


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
        raise CHECK.malformed(argument, f"must have the {lanes} lanes of a warp of the target", 1 << len(held))
    places = Places(parts.get("register", ()), held, parts.get("warp", ()), layout.constant)
    counts = (1 << len(places.registers), lanes, 1 << len(places.warps))
    if counts[0] * counts[1] * counts[2] > MOST:
        raise CHECK.malformed(argument, f"must have at most {MOST} places", counts)
    tensor = tuple(layout.out_dims.items())
    return Given(places, None, parts.get("block", ()), tensor, counts)


def _valued(layout: CuteLayout, argument: str, lanes: int) -> Given:
    shape, stride = layout.shape, layout.stride
    if not isinstance(shape, tuple) or not isinstance(stride, tuple) or len(shape) != 2:
        raise CHECK.malformed(argument, "must have two modes, thread and value", str(layout))
    modes = [CuteLayout(extents, steps) for extents, steps in zip(shape, stride, strict=True)]
    threads, values = (int(mode.size) for mode in modes)
    if threads % lanes or threads * values > MOST:
        raise CHECK.malformed(argument, f"must have a multiple of {lanes} threads, at most {MOST} places", threads)
    table = np.add.outer(modes[0].table(), modes[1].table()).astype(np.int64)
    counts = (values, lanes, threads // lanes)
    flat = table.reshape(-1)
    extent = int(flat.max()) + 1
    size = len(flat)
    if size & (size - 1) == 0 and values & (values - 1) == 0 and int(flat.min()) >= 0:
        columns = tuple(int(flat[1 << bit]) ^ int(flat[0]) for bit in range(size.bit_length() - 1))
        if np.array_equal(matrix.table(columns, int(flat[0])), flat):
            low, mid = values.bit_length() - 1, lanes.bit_length() - 1
            places = Places(columns[:low], columns[low : low + mid], columns[low + mid :], int(flat[0]))
            return Given(places, None, (), ((VALUES, 1 << (extent - 1).bit_length()),), counts)
    nested = tuple(tuple(tuple(row) for row in warp) for warp in table.reshape(counts[::-1]).tolist())
    return Given(None, nested, (), ((VALUES, extent),), counts)


def same_tensor(source: Given, wanted: Given) -> Given:
    """Return the destination with the axes of its tensor in the order of the source's.

    Raises: MalformedError: LA933, naming the axis that one of them does not have, or has in another size.
    """
    if source.counts[2] != wanted.counts[2]:
        raise CHECK.malformed("destination", f"must have {source.counts[2]} warps, as the source", wanted.counts[2])
    mine, theirs = dict(source.tensor), dict(wanted.tensor)
    if VALUES in (source.tensor[0][0], wanted.tensor[0][0]) if mine and theirs else False:
        return wanted
    for name in (*theirs, *mine):
        if name not in mine or name not in theirs:
            raise CHECK.malformed("destination", f"must be a layout of the source's tensor {mine}", f"of {theirs}, "
                                  f"of which only one has the axis {name}")  # fmt: skip
        if mine[name] != theirs[name]:
            raise CHECK.malformed("destination", f"must have the axis {name} of size {mine[name]}", theirs[name])
    if wanted.places is None or list(mine) == list(theirs):
        return wanted
    starts, first = {}, 0
    for name, extent in theirs.items():
        starts[name] = first
        first += extent.bit_length() - 1
    order, place = [0] * first, 0
    for name, extent in mine.items():
        for bit in range(extent.bit_length() - 1):
            order[starts[name] + bit] = 1 << place
            place += 1

    def turn(element: int) -> int:
        return matrix.apply(order, element)

    turned = wanted.places.mapped(turn)
    blocks = tuple(matrix.apply(order, column) for column in wanted.blocks)
    return replace(wanted, places=turned, blocks=blocks, tensor=source.tensor)
