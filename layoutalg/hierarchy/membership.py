"""Which bijections keep the blocks of a cut together, and the normal form (f; h) of those that do.

Main definitions: ``preserves_blocks``, ``normal_form``, ``WreathForm``, ``moved_point``.

Main statements: with B points in a block and K blocks, the bijections that map every block onto a block are the wreath
product of S_B and S_K: pairs (f; h) of a permutation h of the blocks and one permutation f_j inside each block j, with
P(x, j) = (f_j(x), h(j)). Over F2 membership is one zero block of the matrix; for digits no digit may cross.

Notation: the uniformity class is what a code generator needs. ``uniform``: all f_j equal, one instruction stream.
``xor``: f_j(x) = f(x) xor G j with G linear. ``add``: f_j(x) = (f(x) + g j) mod B. ``table``: anything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from layoutalg.errors import AdmissibilityError, Diagnostic
from layoutalg.f2 import matrix
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.bijection import Bijection, BitMap, DigitMap
from layoutalg.hierarchy.layout import HierarchicalLayout
from layoutalg.hierarchy.levels import block_size, malformed, same_levels
from layoutalg.verdict import Proved, Refuted, Verdict

Uniformity: TypeAlias = Literal["uniform", "xor", "add", "table"]


@dataclass(frozen=True, slots=True)
class WreathForm:
    """An element (f; h) of a wreath product: P(x, j) = (f_j(x), h(j)), flat index x + B j.

    Args:
        outer: h, on the numbers of the blocks.
        inner: The f_j: a single one where they follow from it, else one per block.
        kind: The uniformity class.
        shift: For ``xor`` the columns of G, one per bit of j; for ``add`` the pair (g,); else empty.

    Example:
        >>> form = wreath_form(BitMap((1, 2, 5)), 4)
        >>> form.kind, form.shift, form.inner_at(1).table().tolist()
        ('xor', (1,), [1, 0, 3, 2])
    """

    outer: Bijection
    inner: tuple[Bijection, ...]
    kind: Uniformity
    shift: tuple[int, ...] = ()

    @property
    def block(self) -> int:
        """Number of points of one block."""
        return self.inner[0].size

    def inner_at(self, block: int) -> Bijection:
        """Return f_j of one block.

        Raises:
            MalformedError: LA750, there is no such block.
        """
        if not 0 <= block < self.outer.size:
            raise malformed("block", f"must be in [0, {self.outer.size})", block)
        first = self.inner[0]
        if self.kind == "table":
            return self.inner[block]
        if self.kind == "xor":
            return maps.tabulated(first.table() ^ matrix.apply(self.shift, block))
        if self.kind == "add":
            return maps.tabulated((first.table() + self.shift[0] * block) % first.size)
        return first

    def at(self, index: int) -> int:
        """Return P at one flat index, which must be inside."""
        block, inside = divmod(index, self.block)
        if self.kind == "table":
            value = self.inner[block].at(inside)
        else:
            value = self.inner[0].at(inside)
            if self.kind == "xor":
                value ^= matrix.apply(self.shift, block)
            elif self.kind == "add":
                value = (value + self.shift[0] * block) % self.block
        return value + self.block * self.outer.at(block)


def crossing_witness(bijection: Bijection, below: int) -> tuple[int, int] | None:
    """Return two indices of one block whose images lie in different blocks; None where blocks are kept together.

    Args:
        bijection: Any bijection of [0, N).
        below: Number of points of a block; divides N.

    Complexity: linear in the digits or bits; O(N) for tables and for digits that do not divide.

    Example:
        >>> crossing_witness(DigitMap(((2, 2), (2, 1))), 2), crossing_witness(DigitMap(((4, -1),)), 2)
        ((0, 1), None)
    """
    if isinstance(bijection, BitMap) and below & (below - 1) == 0:
        low = below.bit_length() - 1
        crossing = next((bit for bit in range(low) if bijection.columns[bit] >> low), None)
        return None if crossing is None else (0, 1 << crossing)
    if isinstance(bijection, DigitMap):
        pieces = maps.split_at(bijection.modes, [below], [below])
        if pieces is not None:
            weight = 1
            for extent, stride in pieces:
                if weight < below <= abs(stride):
                    return (0, weight)
                weight *= extent
            return None
    blocks = bijection.table().reshape(-1, below) // below
    differs = np.argwhere(blocks != blocks[:, :1])
    if not len(differs):
        return None
    row, column = (int(value) for value in differs[0])
    return (row * below, row * below + column)


def preserves_blocks(layout: HierarchicalLayout, cut: str) -> Verdict:
    """Return whether a bijection of a box of levels maps every block of a cut onto a block.

    Mathematically: membership in the wreath product S_B wr S_K (see the module). Guards do not matter: the question is
    about the bijection of the whole box.

    Args:
        layout: From a box of levels to itself, for example ``dst.inverse() @ src``.
        cut: Such as ``"lane|warp"``.

    Returns:
        Proved, or Refuted with two points of one block that part.

    Raises:
        AdmissibilityError: LA756, not one box of levels on both sides; MalformedError: LA750, no such cut;
        BudgetError: LA754, digits that do not divide the cut on more than 2**20 points.

    Example:
        >>> from layoutalg.hierarchy import hierarchy, permutation
        >>> swap = permutation(hierarchy(lane=2, register=2), [0, 2, 1, 3])
        >>> preserves_blocks(swap, "register|lane").witness["second"]
        {'register': 1, 'lane': 0, 'warp': 0, 'cta': 0, 'cluster': 0}
        >>> bool(preserves_blocks(swap, "lane|warp"))
        True
    """
    same_levels(layout.source, layout.target, (str(layout),))
    pair = crossing_witness(layout.map, block_size(layout.source, cut))
    engine = {DigitMap: "digits", BitMap: "f2"}.get(type(layout.map), "table")
    if pair is None:
        return Proved(engine, {"cut": cut})
    first, second = pair
    return Refuted(
        engine,
        {
            "first": layout.source.point(first),
            "second": layout.source.point(second),
            "first_image": layout.target.point(layout.map.at(first)),
            "second_image": layout.target.point(layout.map.at(second)),
        },
    )


def wreath_form(bijection: Bijection, below: int) -> WreathForm:
    """Return (f; h) of a bijection that keeps the blocks of ``below`` points together.

    Raises:
        AdmissibilityError: LA755, it does not; the witness holds two indices of one block that part.
        BudgetError: LA754, see ``crossing_witness``.

    Example:
        >>> wreath_form(DigitMap(((3, -1), (2, 3))), 3)
        WreathForm(outer=DigitMap(modes=((2, 1),)), inner=(DigitMap(modes=((3, -1),)),), kind='uniform', shift=())
    """
    pair = crossing_witness(bijection, below)
    if pair is not None:
        raise AdmissibilityError(
            Diagnostic(
                code="LA755",
                what="the bijection does not keep the blocks together",
                because=f"two points of one block of {below} land in different blocks",
                witness={"first": pair[0], "second": pair[1], "images": (bijection.at(pair[0]), bijection.at(pair[1]))},
            )
        )
    if isinstance(bijection, BitMap) and below & (below - 1) == 0:
        return _bit_form(bijection, below.bit_length() - 1)
    if isinstance(bijection, DigitMap):
        pieces = maps.split_at(bijection.modes, [below], [below])
        if pieces is not None:
            inside = tuple(mode for mode in pieces if abs(mode[1]) < below)
            outside = tuple((extent, stride // below) for extent, stride in pieces if abs(stride) >= below)
            return WreathForm(DigitMap(outside), (DigitMap(inside),), "uniform")
    return _table_form(bijection, below)


def _bit_form(bits: BitMap, low: int) -> WreathForm:
    mask = (1 << low) - 1
    inner = BitMap(bits.columns[:low], bits.constant & mask)
    outer = BitMap(tuple(column >> low for column in bits.columns[low:]), bits.constant >> low)
    shift = tuple(column & mask for column in bits.columns[low:])
    kind: Uniformity = "xor" if any(shift) else "uniform"
    return WreathForm(maps.canonical(outer), (maps.canonical(inner),), kind, shift if any(shift) else ())


def _table_form(bijection: Bijection, below: int) -> WreathForm:
    values = bijection.table().reshape(-1, below)
    outer = maps.tabulated(values[:, 0] // below)
    rows = values % below
    first = maps.tabulated(rows[0])
    if (rows == rows[0]).all():
        return WreathForm(outer, (first,), "uniform")
    count = len(rows)
    if below & (below - 1) == 0 and count & (count - 1) == 0:
        shift = tuple(int(rows[1 << bit, 0] ^ rows[0, 0]) for bit in range(count.bit_length() - 1))
        if np.array_equal(rows, rows[0][None, :] ^ matrix.table(shift)[:, None]):
            return WreathForm(outer, (first,), "xor", shift)
    step = int(rows[1, 0] - rows[0, 0]) % below
    if np.array_equal(rows, (rows[0][None, :] + step * np.arange(count)[:, None]) % below):
        return WreathForm(outer, (first,), "add", (step,))
    return WreathForm(outer, tuple(maps.tabulated(row) for row in rows), "table")


def normal_form(layout: HierarchicalLayout, cut: str) -> WreathForm:
    """Return (f; h) of a bijection of a box of levels at a cut, with its uniformity class.

    Raises:
        AdmissibilityError: LA755, blocks are not kept together (the witness shows it); LA756, not one box of levels on
            both sides; MalformedError: LA750, no such cut.

    Example:
        >>> from layoutalg.hierarchy import hierarchy, permutation
        >>> rotate = permutation(hierarchy(lane=3, register=3), [0, 1, 2, 4, 5, 3, 8, 6, 7])
        >>> form = normal_form(rotate, "register|lane")
        >>> form.kind, form.shift
        ('add', (1,))
    """
    same_levels(layout.source, layout.target, (str(layout),))
    return wreath_form(layout.map, block_size(layout.source, cut))


def moved_point(layout: HierarchicalLayout, below: int) -> int | None:
    """Return a point (flat, inside the guards) that lands in a block with another number; None where there is none.

    Args:
        layout: A layout between boxes of one size, blocks of ``below`` points on both sides.
        below: Number of points of a block.

    Example:
        >>> from layoutalg.hierarchy import hierarchy, permutation
        >>> moved_point(permutation(hierarchy(lane=2, register=2), [0, 1, 3, 2]), 2)
        >>> moved_point(permutation(hierarchy(lane=2, register=2), [2, 3, 0, 1]), 2)
        0
    """
    if not layout.guards and crossing_witness(layout.map, below) is None:
        outer = wreath_form(layout.map, below).outer
        if outer == maps.identity(outer.size):
            return None
    maps_to = layout.map
    if not layout.guards and isinstance(maps_to, BitMap) and below & (below - 1) == 0:
        low = below.bit_length() - 1
        candidates = [0, *(1 << bit for bit in range(len(maps_to.columns)))]
        return next(index for index in candidates if (maps_to.at(index) ^ index) >> low)
    if not layout.guards and isinstance(maps_to, DigitMap):
        # a digit map is affine in its digits: it moves nothing exactly when 0 and every single digit stay in place
        weight = 1
        candidates = [0]
        for extent, _ in maps_to.modes:
            candidates += [weight, weight * (extent - 1)]
            weight *= extent
        found = next((index for index in candidates if maps_to.at(index) // below != index // below), None)
        if found is not None:
            return found
    values = layout.table()
    moved = np.flatnonzero((values >= 0) & (values // below != np.arange(layout.size) // below))
    return int(moved[0]) if len(moved) else None
