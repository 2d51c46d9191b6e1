"""Bijections that keep the blocks of a cut together, and their normal form (f; h).

With K blocks of B points, the bijections that map every block onto a block form the wreath product of S_B and S_K:
pairs (f; h) of a permutation h of the blocks and a permutation f_j inside each block j, with P(x, j) = (f_j(x), h(j)).
Over F2, membership means one zero block of the matrix; for digit maps, no digit crosses the cut.

Notation: the uniformity class tells a code generator how the f_j differ. ``uniform``: all equal, one instruction
stream. ``xor``: f_j(x) is f(x) with bits flipped according to the bits of j. ``add``: f_j(x) = (f(x) + g j) mod B.
``table``: anything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from layoutalg.ground.check import refuse
from layoutalg.ground.digits import Digits, IntArray, Stride, digit_extent, merge, placed, split_at, weights
from layoutalg.ground.errors import shown
from layoutalg.ground.verdict import Proved, Refuted, Verdict
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.bijection import Bijection, DigitMap, assemble
from layoutalg.hierarchy.layout import Guard, HierarchicalLayout
from layoutalg.hierarchy.levels import block_size, cut_level, integer, require, same_levels

Uniformity: TypeAlias = Literal["uniform", "xor", "add", "table"]


Flips: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class BlockForm:
    """An element (f; h) of a wreath product: P(x, j) = (f_j(x), h(j)), flat index x + B j.

    Args:
        outer: h, on block numbers.
        inner: The f_j: one per block for ``table``, otherwise just one from which the others follow.
        kind: The uniformity class.
        flips: For ``xor`` the digits of j, fastest first: pairs of an extent and the weights of the bits of f(x) that
            the digit flips if it is 1 (only digits of extent 2 flip any). Otherwise empty.
        step: For ``add`` the number g, otherwise 0.
    """

    outer: Bijection
    inner: tuple[Bijection, ...]
    kind: Uniformity
    flips: Flips = ()
    step: int = 0

    @property
    def block(self) -> int:
        """Number of points of one block."""
        return self.inner[0].size

    def flipped(self, block: int) -> tuple[int, ...]:
        """Return the weights of the bits that are flipped inside one block."""
        rest = integer(block, "block", 0, self.outer.size)
        found: set[int] = set()
        for extent, bits in self.flips:
            rest, digit = divmod(rest, extent)
            found.symmetric_difference_update(bits if digit else ())
        return tuple(sorted(found))

    def inner_at(self, block: int) -> Bijection:
        """Return f_j of one block."""
        flipped, first = self.flipped(block), self.inner[0]
        if self.kind == "table":
            return self.inner[block]
        if flipped:
            cuts = [cut for weight in flipped for cut in (weight, 2 * weight)]
            digits = split_at(((self.block, 1),), (), cuts) or ()
            return maps.compose(DigitMap(tuple((e, -weights(d)[0] if d in flipped else d) for e, d in digits)), first)
        if self.step:
            return maps.tabulated((first.table() + self.step * block) % first.size)
        return first

    def at(self, index: int) -> int:
        """Return P at one flat index."""
        block, inside = divmod(integer(index, "index", 0, self.block * self.outer.size), self.block)
        value = self.inner[block if self.kind == "table" else 0].at(inside)
        for weight in self.flipped(block):
            value += -weight if value // weight % 2 else weight
        return (value + self.step * block) % self.block + self.block * self.outer.at(block)


def crossing_witness(bijection: Bijection, below: int) -> tuple[int, int] | None:
    """Return two indices of one block with images in different blocks, or None if blocks are kept together.

    Blocks have ``below`` points, a divisor of N.

    Complexity: linear in the digits if they divide at the cut; otherwise quadratic if two corners of a block are
    separated, else O(N); O(N) for tables.
    """
    pieces = cut_digits(bijection, below)
    if pieces is not None:
        crossing = (weight for weight, _, stride in placed(pieces) if weight < below <= max(weights(stride)))
        first = next(crossing, None)
        return None if first is None else (0, first)
    corners = _corners(bijection, below) if isinstance(bijection, DigitMap) else None
    if corners is not None:
        return corners
    blocks = bijection.table().reshape(-1, below) // below
    differs = np.argwhere(blocks != blocks[:, :1])
    if not len(differs):
        return None
    row, column = (int(value) for value in differs[0])
    return (row * below, row * below + column)


def _corners(mapping: DigitMap, below: int) -> tuple[int, int] | None:
    """Return two corners of one block with images in different blocks; None is inconclusive.

    Looks at the blocks where a digit begins; the corners are the first steps and the ends of the digits inside.
    """
    digits = list(placed(mapping.pieces()))
    inside = [(weight, min(extent - 1, (below - 1) // weight)) for weight, extent, _ in digits if weight < below]
    corners = sorted({0, below - 1, *(weight * count for weight, most in inside for count in (1, most))})
    for block in sorted({weight // below for weight, _, _ in digits}):
        start = block * below
        home = mapping.at(start) // below
        away = next((start + corner for corner in corners if mapping.at(start + corner) // below != home), None)
        if away is not None:
            return start, away
    return None


def cut_digits(bijection: Bijection, below: int) -> Digits | None:
    """Return the digits split at the cut on both sides; None for a table or digits that do not divide."""
    return split_at(bijection.modes, [below], [below]) if isinstance(bijection, DigitMap) else None


def preserves_blocks(layout: HierarchicalLayout, cut: str) -> Verdict:
    """Decide whether a bijection of a box of levels maps every block of a cut onto a block.

    Mathematically: membership in the wreath product S_B wr S_K (see the module). Guards are ignored: the claim is about
    the bijection of the whole box.

    Args:
        layout: From a box of levels to itself, for example ``dst.inverse() @ src``.
        cut: Such as ``"lane|warp"``.

    Returns:
        Proved, or Refuted with two points of one block that land in different blocks.

    Example:
        >>> from layoutalg.hierarchy import hierarchy, reindex
        >>> swap = reindex(hierarchy(lane=2, register=2), [0, 2, 1, 3])
        >>> preserves_blocks(swap, "register|lane").witness["second"]
        {'register': 1, 'lane': 0, 'warp': 0, 'cta': 0, 'cluster': 0}
        >>> bool(preserves_blocks(swap, "lane|warp"))
        True
    """
    same_levels(require(layout, HierarchicalLayout, "layout").source, layout.target, layout)
    pair = crossing_witness(layout.map, block_size(layout.source, cut))
    engine = "digits" if isinstance(layout.map, DigitMap) else "table"
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


def form_of(bijection: Bijection, below: int) -> BlockForm:
    """Return (f; h) of a bijection that keeps the blocks of ``below`` points together."""
    pair = crossing_witness(bijection, below)
    if pair is not None:
        because = f"two points of one block of {below} land in different blocks"
        witness = {"first": pair[0], "second": pair[1], "images": (bijection.at(pair[0]), bijection.at(pair[1]))}
        raise refuse("LA755", "the bijection does not keep the blocks together", because, witness)
    pieces = cut_digits(bijection, below)
    return _table_form(bijection, below) if pieces is None else _digit_form(pieces, bijection.at(0), below)


def _digit_form(pieces: Digits, origin: int, below: int) -> BlockForm:
    """Return the form from digits split on both sides, none of which maps from below the cut to above."""
    inside, outside, flips = list[tuple[int, Stride]](), list[tuple[int, Stride]](), list[tuple[int, tuple[int, ...]]]()
    for weight, extent, stride in placed(pieces):
        if weight < below:
            inside.append((extent, stride))
        elif isinstance(stride, int):
            outside.append((extent, abs(stride) // below))
            flips.append((extent, ()))
        else:
            outside.append((2, tuple(bit // below for bit in stride if bit >= below)))
            flips.append((2, tuple(bit for bit in stride if bit < below)))
    outer, inner = assemble(outside, origin // below), assemble(inside, origin % below)
    return BlockForm(outer, (inner,), "xor" if any(bits for _, bits in flips) else "uniform", _joined(tuple(flips)))


def _joined(flips: Flips) -> Flips:
    """Return the digits of the block number with adjacent non-flipping digits merged, and dropped at the end."""
    answer = merge(flips)
    return answer[:-1] if answer and not answer[-1][1] else answer  # type: ignore[return-value]


def _table_form(bijection: Bijection, below: int) -> BlockForm:
    values = bijection.table().reshape(-1, below)
    outer = maps.tabulated(values[:, 0] // below)
    rows = values % below
    first = maps.tabulated(rows[0])
    if (rows == rows[0]).all():
        return BlockForm(outer, (first,), "uniform")
    masks = rows[:, 0] ^ rows[0, 0]
    flips = _flips(masks) if below & (below - 1) == 0 and np.array_equal(rows, rows[0] ^ masks[:, None]) else None
    if flips is not None:
        return BlockForm(outer, (first,), "xor", flips)
    step = int(rows[1, 0] - rows[0, 0]) % below
    if np.array_equal(rows, (rows[0][None, :] + step * np.arange(len(rows))[:, None]) % below):
        return BlockForm(outer, (first,), "add", (), step)
    return BlockForm(outer, tuple(maps.tabulated(row) for row in rows), "table")


def _flips(masks: IntArray) -> Flips | None:
    """Return how the digits of j flip bits if masks[j] is their sum over F2, else None.

    As in ``digits.read_table``, the extent of a digit follows from where its step flips the same bits.
    """
    count, weight, found = len(masks), 1, list[tuple[int, tuple[int, ...]]]()
    while weight < count:
        mask = int(masks[weight])
        extent = digit_extent(masks[weight:] ^ masks[:-weight] != mask, weight)
        if extent == 1 or (mask and extent % 2):
            return None
        bits = tuple(1 << bit for bit in range(mask.bit_length()) if mask >> bit & 1)
        found.append((2 if mask else extent, bits))
        weight *= 2 if mask else extent
    return _joined(tuple(found))


def block_form(layout: HierarchicalLayout, cut: str) -> BlockForm:
    """Return (f; h) of a bijection of a box of levels at a cut, with its uniformity class.

    Guards are ignored, as in ``preserves_blocks``.

    Example:
        >>> from layoutalg.hierarchy import hierarchy, reindex
        >>> rotate = reindex(hierarchy(lane=3, register=3), [0, 1, 2, 4, 5, 3, 8, 6, 7])
        >>> form = block_form(rotate, "register|lane")
        >>> form.kind, form.step
        ('add', 1)
    """
    same_levels(require(layout, HierarchicalLayout, "layout").source, layout.target, layout)
    return form_of(layout.map, block_size(layout.source, cut))


def moved_point(layout: HierarchicalLayout, below: int) -> int | None:
    """Return a point (flat, inside the guards) that moves to another block number, or None.

    Both sides of the layout have blocks of ``below`` points.
    """
    pieces = None if layout.guards else cut_digits(layout.map, below)
    if pieces is not None:
        # if 0 and a single step of every digit stay in their block, so does every sum of digits
        candidates = [0, *(weight for weight, _, _ in placed(pieces))]
        return next((index for index in candidates if layout.map.at(index) // below != index // below), None)
    corners = _corners(layout.map, below) if isinstance(layout.map, DigitMap) and not layout.guards else None
    if corners is not None:
        return next(index for index in corners if layout.map.at(index) // below != index // below)
    values = layout.table()
    moved = np.flatnonzero((values >= 0) & (values // below != np.arange(layout.size) // below))
    return int(moved[0]) if len(moved) else None


def solve_conversion(
    before: HierarchicalLayout, after: HierarchicalLayout, *, within: str | None = None
) -> HierarchicalLayout:
    """Return the unique bijection X with ``X @ before == after``.

    Args:
        after: Must have the same source box and equivalent guards, which carry over to X.
        within: A cut such as ``"lane|warp"``: require that X moves data only inside the blocks of that cut, i.e. keeps
            the coordinates of the levels above; both targets must then be the same box of levels.

    Example:
        >>> from layoutalg.hierarchy import Box, DigitMap
        >>> rows = HierarchicalLayout(Box.of(i=2, j=3), Box.of(x=6), DigitMap(((2, 3), (3, 1))))
        >>> cols = HierarchicalLayout(Box.of(i=2, j=3), Box.of(x=6), DigitMap(((6, 1),)))
        >>> X = solve_conversion(rows, cols)
        >>> X @ rows == cols, X.map.modes
        (True, ((3, 2), (2, 1)))
    """
    if within is not None:
        cut_level(within, "within")
    require(before, HierarchicalLayout, "before")
    require(after, HierarchicalLayout, "after")
    if before.source != after.source:
        because = f"one maps from ({before.source}), the other from ({after.source})"
        witness: dict[str, object] = {"before": before.source.dims, "after": after.source.dims}
        raise refuse("LA751", "a conversion needs two layouts of the same box", because, witness, before, after)
    if before.guards != after.guards:
        differs = np.flatnonzero((before.table() >= 0) != (after.table() >= 0))
        if len(differs):
            because = "one side is defined at a point where the other is not"
            witness = dict(before.source.point(int(differs[0])))
            what = "the conversion equation has no solution"
            raise refuse("LA757", what, because, witness, f"X o ({before})", f"= {after}")
    back = maps.inverse(before.map)
    guards = tuple(Guard(maps.compose(g.map, back), g.box, g.bounds) for g in before.guards)
    answer = HierarchicalLayout(before.target, after.target, maps.compose(after.map, back), guards)
    if within is not None:
        same_levels(before.target, after.target, f"solve_conversion(within={shown(within)})")
        point = moved_point(answer, block_size(before.target, within))
        if point is not None:
            because = "the only solution moves a value to another block"
            witness = {"from": answer.source.point(point), "to": answer.target.point(answer.map.at(point))}
            what = f"no conversion stays inside the blocks of {within}"
            raise refuse("LA757", what, because, witness, f"X o ({before})", f"= {after}")
    return answer
