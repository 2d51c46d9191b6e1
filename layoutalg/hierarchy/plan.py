"""Exchange plans over F2: P = U1 w U2 with U1, U2 keeping every block together and w a permutation of bits.

Main definitions: ``exchange_plan``, ``ExchangePlan``, ``corner_ranks``.

Main statements: every invertible matrix factors so (Bruhat decomposition, here for the block triangular matrices of the
cuts). The number of bits that w takes across a cut equals the rank of the corresponding corner block of P, for every
such factorisation; so no plan exchanges fewer. w is chosen so that each level keeps in place all bits it may keep.

Notation: bits are those of the flat index, register bits first; ``wiring[k]`` is the place where w puts bit k.

Implementation notes: the factors are multiplied and compared with P before the plan is returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutalg.errors import AdmissibilityError, Diagnostic, LayoutError, RepresentabilityError
from layoutalg.f2 import matrix
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.bijection import BitMap, DigitMap
from layoutalg.hierarchy.layout import HierarchicalLayout
from layoutalg.hierarchy.levels import CUTS, Cut, same_levels


@dataclass(frozen=True, slots=True)
class ExchangePlan:
    """The factors of an affine F2 conversion: x -> U1 w U2 x xor c.

    Args:
        first: Columns of U2, applied first; keeps the blocks of every cut together.
        wiring: w as the place of every bit.
        last: Columns of U1, applied last; keeps the blocks of every cut together.
        constant: c.
        levels: Bits per level, innermost first.

    Example:
        >>> from layoutalg.hierarchy import hierarchy, permutation
        >>> plan = exchange_plan(permutation(hierarchy(lane=2, register=2), BitMap((2, 1))))
        >>> plan.wiring, plan.crossing("register|lane")
        ((1, 0), 1)
    """

    first: tuple[int, ...]
    wiring: tuple[int, ...]
    last: tuple[int, ...]
    constant: int
    levels: tuple[int, ...]

    @property
    def product(self) -> tuple[int, ...]:
        """The columns of U1 w U2."""
        return matrix.multiply(self.last, matrix.multiply(tuple(1 << place for place in self.wiring), self.first))

    def level_of(self, bit: int) -> int:
        """Return the level of a bit, 0 for the register."""
        for level, count in enumerate(self.levels):
            if bit < count:
                return level
            bit -= count
        raise IndexError(bit)

    def crossing(self, cut: Cut) -> int:
        """Return how many bits w takes from below a cut to above it; as many come back."""
        limit = CUTS.index(cut)
        return sum(self.level_of(bit) <= limit < self.level_of(place) for bit, place in enumerate(self.wiring))

    @property
    def exchanged(self) -> tuple[tuple[int, int], ...]:
        """The bits that w moves, as (bit, place); every one changes its level."""
        return tuple((bit, place) for bit, place in enumerate(self.wiring) if bit != place)


def corner_ranks(bits: BitMap, levels: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the ranks of all corner blocks: entry [i][j] is that of the rows above cut i and the columns below cut j.

    Mathematically: the complete invariant of a matrix under multiplication on both sides by matrices that keep blocks
    together.

    Args:
        bits: The map.
        levels: Bits per level, innermost first; a cut follows each level but the last.

    Example:
        >>> corner_ranks(BitMap((4, 2, 1)), (1, 1, 1))
        ((1, 2), (1, 1))
    """
    ends = [sum(levels[: k + 1]) for k in range(len(levels) - 1)]
    return tuple(tuple(matrix.rank(column >> row for column in bits.columns[:end]) for end in ends) for row in ends)


def _bruhat(columns: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return (L, w, R): the matrix is L w R, w puts bit k on w[k], and L and R have no entry below the diagonal.

    "Below the diagonal" means a row above the column in the order of bits: an output bit of a higher level that reads
    an input bit of a lower one. The highest entry of each column, left to right, is the pivot. A row operation adds the
    pivot row to lower rows, a column operation adds the pivot column to later columns; both are undone in L and R.
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


def _settle(wiring: Sequence[int], levels: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return (p, w, q) with the wiring equal to p w q, p and q inside the levels, and w moving only bits that leave."""
    level = [index for index, count in enumerate(levels) for _ in range(count)]
    before, after, middle = [0] * len(level), [0] * len(level), [0] * len(level)
    start = 0
    slots: list[tuple[list[int], list[int]]] = []
    for index, count in enumerate(levels):
        own = range(start, start + count)
        staying = [bit for bit in own if level[wiring[bit]] == index]
        leaving = [bit for bit in own if level[wiring[bit]] != index]
        for slot, bit in enumerate((*staying, *leaving)):
            before[bit] = start + slot
        for slot, bit in enumerate(staying):
            after[start + slot] = wiring[bit]
            middle[start + slot] = start + slot
        arriving = [bit for bit, place in enumerate(wiring) if level[place] == index and level[bit] != index]
        slots.append((list(range(start + len(staying), start + count)), arriving))
        start += count
    for places, arriving in slots:
        for place, bit in zip(places, arriving, strict=True):
            middle[before[bit]] = place
            after[place] = wiring[bit]
    return after, middle, before


def exchange_plan(conversion: HierarchicalLayout) -> ExchangePlan:
    """Return the plan of an F2 conversion of one box of levels, with the fewest bits exchanged at every cut.

    Args:
        conversion: From a box of levels to itself, over F2, without guards (a guard restricts which values a stage
            carries, not the stages; drop it first).

    Raises:
        AdmissibilityError: LA756, not one box of levels on both sides; LA753, guards; RepresentabilityError: LA758, no
            map over F2 or an extent that is no power of two.

    Complexity: O(n^3) in the number n of bits.

    Example:
        >>> from layoutalg.hierarchy import hierarchy, permutation
        >>> P = permutation(hierarchy(warp=2, lane=2, register=2), BitMap((4, 6, 1)))
        >>> plan = exchange_plan(P)
        >>> plan.product == P.map.columns, plan.exchanged, plan.crossing("lane|warp")
        (True, ((0, 2), (2, 0)), 1)
    """
    same_levels(conversion.source, conversion.target, (str(conversion),))
    if conversion.guards:
        raise AdmissibilityError(
            Diagnostic(
                code="LA753",
                what="an exchange plan needs a whole bijection",
                where=(str(conversion),),
                because="the layout is guarded; plan for the same layout without guards",
            )
        )
    bits = maps.as_bits(conversion.map) if isinstance(conversion.map, DigitMap) else conversion.map
    odd = next(((name, extent) for name, extent in conversion.source.axes if extent & (extent - 1)), None)
    if not isinstance(bits, BitMap) or odd is not None:
        raise RepresentabilityError(
            Diagnostic(
                code="LA758",
                what="an exchange plan needs a map over F2",
                where=(str(conversion),),
                because="the map is not affine over F2" if odd is None else f"{odd[0]} has extent {odd[1]}",
                witness=None if odd is None else {"level": odd[0], "extent": odd[1]},
            )
        )
    levels = tuple(extent.bit_length() - 1 for _, extent in conversion.source.axes)
    left, wiring, right = _bruhat(bits.columns)
    after, middle, before = _settle(wiring, levels)
    last = matrix.multiply(left, tuple(1 << place for place in after))
    first = matrix.multiply(tuple(1 << place for place in before), right)
    plan = ExchangePlan(first, tuple(middle), last, bits.constant, levels)
    _check(plan, bits)
    return plan


def _check(plan: ExchangePlan, bits: BitMap) -> None:
    """Refuse a plan that does not multiply to the map or whose outer factors do not keep blocks together."""
    whole = plan.product == bits.columns
    edge, kept = 0, True
    for count in plan.levels:
        edge += count
        kept &= not any(column >> edge for factor in (plan.first, plan.last) for column in factor[:edge])
    if not (whole and kept):
        raise LayoutError(
            Diagnostic(
                code="LA760",
                what="the exchange plan failed its own check",
                where=(repr(bits), repr(plan)),
                because="the factors do not multiply to the map" if kept else "a factor does not keep blocks together",
            )
        )
