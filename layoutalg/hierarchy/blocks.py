"""Blocks of a cut: which bijections keep them together, X o A = B with X inside them, and exchange plans.

With K blocks of B points, the bijections that map every block onto a block form the wreath product of S_B and S_K.
Over F2, membership means one zero block of the matrix; for digit maps, no digit crosses the cut.

An exchange plan is P = U1 w U2 where U1, U2 keep every block together and w is a permutation of digits. Every
invertible matrix over F2 has such a factorisation (Bruhat decomposition for the block triangular matrices of the cuts).
In every one, the number of bits that w moves across a cut equals the rank of the corresponding corner block of P, so no
plan exchanges fewer. w is chosen so that each level keeps in place all the bits it can. Digits of other extents are
only moved: each is a row and a column of its own. The factors are multiplied and compared with P before a plan is
returned.

Notation: the *places* of a plan are the common digits of source and target, register digits first, power-of-two digits
split into bits. A matrix is a tuple of columns; bit r of a column is place r. ``wiring[k]`` is the place to which w
moves place k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from operator import mul

import numpy as np

from layoutalg.f2 import matrix
from layoutalg.ground.check import refuse
from layoutalg.ground.digits import Digits, Stride, aligned, placed, split_at, weights
from layoutalg.ground.errors import Diagnostic, LayoutError, RepresentabilityError, shown
from layoutalg.ground.verdict import Proved, Refuted, Verdict
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.bijection import Bijection, DigitMap, assemble, compose_digits
from layoutalg.hierarchy.layout import Guard, HierarchicalLayout
from layoutalg.hierarchy.levels import CUTS, block_size, cut_level, integer, malformed, require, same_levels


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


@dataclass(frozen=True, slots=True)
class ExchangePlan:
    """The factors of a conversion: x -> U1 w U2 x, then some digits are reversed.

    Args:
        first: Columns of U2, applied first; keeps the blocks of every cut together.
        wiring: w, as the new place of every place.
        last: Columns of U1, applied last; keeps the blocks of every cut together.
        constant: Set of the places reversed at the end; for bits, the constant of the affine map.
        levels: Number of places per level, innermost first.
        extents: Extent of every place, 2 for a bit. Matrices have entries off the wiring only between bits.
    """

    first: tuple[int, ...]
    wiring: tuple[int, ...]
    last: tuple[int, ...]
    constant: int
    levels: tuple[int, ...]
    extents: tuple[int, ...]

    @property
    def product(self) -> tuple[int, ...]:
        """The columns of U1 w U2."""
        return matrix.multiply(self.last, matrix.multiply(tuple(1 << place for place in self.wiring), self.first))

    @property
    def stages(self) -> tuple[DigitMap, DigitMap, DigitMap]:
        """The three maps in order of application: U2, w, and U1 with the reversals."""
        wires = tuple(1 << place for place in self.wiring)
        return self._stage(self.first, 0), self._stage(wires, 0), self._stage(self.last, self.constant)

    def _stage(self, columns: Sequence[int], reversed_: int) -> DigitMap:
        sizes = list(accumulate(self.extents, mul, initial=1))
        pieces: list[tuple[int, Stride]] = []
        for extent, column in zip(self.extents, columns, strict=True):
            targets = tuple(sizes[place] for place in range(len(self.extents)) if column >> place & 1)
            pieces.append((extent, targets if extent == 2 else targets[0]))
        origin = sum(sizes[k] * (extent - 1) for k, extent in enumerate(self.extents) if reversed_ >> k & 1)
        return assemble(pieces, origin)

    def level_of(self, place: int) -> int:
        """Return the level of a place, 0 for the register."""
        number = integer(place, "place", 0, sum(self.levels))
        return next(level for level, end in enumerate(accumulate(self.levels)) if number < end)

    def leaving(self, cut: str) -> tuple[int, ...]:
        """Return the places that w moves from below a cut to above it."""
        limit = cut_level(cut)
        return tuple(
            place for place, end in enumerate(self.wiring) if self.level_of(place) <= limit < self.level_of(end)
        )

    def crossing(self, cut: str) -> int:
        """Return how many places w moves from below a cut to above it; equally many move back."""
        return len(self.leaving(cut))

    def fanout(self, cut: str) -> int:
        """Return how many blocks of a cut one block feeds: the product of the extents that cross it."""
        return prod(self.extents[place] for place in self.leaving(cut))

    @property
    def exchanged(self) -> tuple[tuple[int, int], ...]:
        """The places that w moves, as (place, new place); each changes its level."""
        return tuple((place, end) for place, end in enumerate(self.wiring) if place != end)


def crossing_ranks(bits: DigitMap, levels: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the ranks of all corner blocks: entry [i][j] for the rows above cut i and the columns below cut j.

    Mathematically: the complete invariant of a matrix under multiplication on both sides by matrices that keep blocks
    together.

    Args:
        bits: A map with a power-of-two number of points.
        levels: Bits per level, innermost first; a cut follows each level but the last.

    Example:
        >>> crossing_ranks(DigitMap.from_bits((4, 2, 1)), (1, 1, 1))
        ((1, 2), (1, 1))
    """
    columns = require(bits, DigitMap, "bits").columns
    if columns is None:
        raise malformed("bits", "must have a power-of-two number of points", bits.size)
    count = len(columns)
    if not isinstance(levels, (tuple, list)) or sum(integer(n, "levels", 0, count + 1) for n in levels) != count:
        raise malformed("levels", f"must be numbers of bits that add up to {count}", levels)
    ends = [sum(levels[: k + 1]) for k in range(len(levels) - 1)]
    return tuple(tuple(matrix.rank(column >> row for column in columns[:end]) for end in ends) for row in ends)


def _bruhat(columns: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return (L, w, R) with the matrix equal to L w R, w moving bit k to w[k], and L, R zero "below the diagonal".

    Below the diagonal, an output bit would depend on an input bit of a lower position. The highest entry of each
    column, left to right, is the pivot. A row operation adds the pivot row to lower rows, a column operation adds the
    pivot column to later columns; L and R accumulate the inverses.
    """
    count = len(columns)
    work = list(columns)
    left = [1 << k for k in range(count)]
    right = [1 << k for k in range(count)]
    wiring = []
    for k in range(count):
        pivot = work[k].bit_length() - 1
        others = work[k] ^ 1 << pivot
        wiring.append(pivot)
        # work = E work with E = 1 + others e_pivot^T, its own inverse; so L = L E adds the columns of ``others``
        for row in range(count):
            if others >> row & 1:
                left[pivot] ^= left[row]
        for column in range(k, count):
            if work[column] >> pivot & 1:
                work[column] ^= others
        for column in range(k + 1, count):
            if work[column] >> pivot & 1:
                work[column] ^= work[k]
                # work = work F with F = 1 + e_k e_column^T, its own inverse; so R = F R adds row ``column`` to row k
                for entry in range(count):
                    right[entry] ^= (right[entry] >> column & 1) << k
    return left, wiring, right


def _settle(
    wiring: Sequence[int], levels: Sequence[int], extents: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """Return (p, w, q) with the wiring equal to p w q, p and q within levels, and w moving only what leaves its level.

    Within a level, places are permuted only among those of equal extent.
    """
    level = [index for index, count in enumerate(levels) for _ in range(count)]
    before, after, middle = [0] * len(level), [0] * len(level), [0] * len(level)
    slots: list[tuple[list[int], list[int]]] = []
    for kind in sorted(set(zip(level, extents, strict=True))):
        own = [place for place in range(len(level)) if (level[place], extents[place]) == kind]
        staying = [place for place in own if level[wiring[place]] == kind[0]]
        leaving = [place for place in own if level[wiring[place]] != kind[0]]
        for slot, place in zip(own, (*staying, *leaving), strict=True):
            before[place] = slot
        for slot, place in zip(own, staying, strict=False):
            after[slot] = wiring[place]
            middle[slot] = slot
        arriving = [
            place for place, end in enumerate(wiring) if (level[end], extents[end]) == kind and level[place] != kind[0]
        ]
        slots.append((own[len(staying) :], arriving))
    for places, arriving in slots:
        for slot, place in zip(places, arriving, strict=True):
            middle[before[place]] = slot
            after[slot] = wiring[place]
    return after, middle, before


def exchange_plan(conversion: HierarchicalLayout) -> ExchangePlan:
    """Return the plan of a conversion of one box of levels, with the fewest digits exchanged at every cut.

    Args:
        conversion: From a box of levels to itself, on common digits of both sides, without guards (a guard restricts
            which values a stage moves, not the stages; drop it first).

    Complexity: O(n^3) in the number n of places.

    Example:
        >>> from layoutalg.hierarchy import hierarchy, reindex
        >>> P = reindex(hierarchy(warp=2, lane=2, register=2), DigitMap.from_bits((4, 6, 1)))
        >>> plan = exchange_plan(P)
        >>> plan.product, plan.exchanged, plan.crossing("lane|warp")
        ((4, 6, 1), ((0, 2), (2, 0)), 1)
    """
    box = require(conversion, HierarchicalLayout, "conversion").source
    same_levels(box, conversion.target, conversion)
    if conversion.guards:
        because = "the layout has guards; drop them and plan again"
        raise refuse("LA753", "an exchange plan needs a layout without guards", because, None, conversion)
    ends = [*(block_size(box, cut) for cut in CUTS), conversion.size]
    extents, columns, constant = _matrix(conversion, ends)
    sizes = list(accumulate(extents, mul, initial=1))
    stops = [0, *(sizes.index(end) for end in ends)]
    levels = tuple(stop - start for start, stop in pairwise(stops))
    left, wiring, right = _bruhat(columns)
    after, middle, before = _settle(wiring, levels, extents)
    last = matrix.multiply(left, tuple(1 << place for place in after))
    first = matrix.multiply(tuple(1 << place for place in before), right)
    plan = ExchangePlan(first, tuple(middle), last, constant, levels, extents)
    _check(plan, conversion)
    return plan


def _matrix(conversion: HierarchicalLayout, ends: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return the extents of the places, the columns of the map on them, and the set of reversed places."""
    mapping = conversion.map
    pieces = aligned(mapping.modes, ends) if isinstance(mapping, DigitMap) else None
    if pieces is None or not isinstance(mapping, DigitMap):
        because = "the source and target digits have no common refinement that respects the levels"
        because = because if isinstance(mapping, DigitMap) else "the map is a table"
        what = "an exchange plan needs common digits of source and target"
        raise RepresentabilityError(Diagnostic("LA758", what, (str(conversion),), because))
    bits = [
        [(weight << k, 2) for k in range(extent.bit_length() - 1)] if extent & (extent - 1) == 0 else [(weight, extent)]
        for weight, extent, _ in placed(pieces)
    ]
    places = [place for group in bits for place in group]
    number = {weight: k for k, (weight, _) in enumerate(places)}
    columns = []
    for (weight, _, stride), group in zip(placed(pieces), bits, strict=True):
        for inner, _ in group:
            columns.append(sum(1 << number[target * (inner // weight)] for target in weights(stride)))
    origin = mapping.offset
    constant = sum(1 << k for k, (weight, extent) in enumerate(places) if origin // weight % extent)
    return tuple(extent for _, extent in places), tuple(columns), constant


def _check(plan: ExchangePlan, conversion: HierarchicalLayout) -> None:
    """Check that the stages compose to the map and that the outer factors keep blocks together."""
    first, wires, last = plan.stages
    inner = compose_digits(wires, first)
    whole = inner is not None and compose_digits(last, inner) == conversion.map
    edge, kept = 0, True
    for count in plan.levels:
        edge += count
        kept &= not any(column >> edge for factor in (plan.first, plan.last) for column in factor[:edge])
    if not (whole and kept):
        because = "the factors do not multiply to the map" if kept else "a factor does not keep blocks together"
        what = "the exchange plan failed its own check"
        raise LayoutError(Diagnostic("LA760", what, (str(conversion), repr(plan)), because))
