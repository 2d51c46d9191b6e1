"""Find the linear map to bank numbers with the fewest turns, in closed form or by search.

Notation: tile elements are written in a basis whose first vectors are at known offset bits; the bank number of a word
is a linear map K with known columns on these and unknown ones on the rest. A space U takes ``2 ** dim(U and ker K)``
over ``2 ** dim(U and in-word)`` turns. Bit j of a column is bank bit j.

(1) Columns are fixed one by one; the kernel of K on the part of U in the span of the basis vectors so far can only
grow, so a partial map gives a lower bound. (2) Without restrictions, K matters only up to a basis change of the bank
bits that no space distinguishes, so a column may be restricted to the span of the bits in use and one new bit without
losing completeness. (3) For two spaces with the same bank bits, the largest space that meets both only in 0 has
codimension max(dim) (``f2.matrix.common_complement``); it is the optimal kernel, and any vector added to it is in the
larger space anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from layoutalg.f2 import matrix
from layoutalg.ground import clock


@dataclass(frozen=True, slots=True)
class Space:
    """A space whose elements are touched together.

    Args:
        basis: Basis, in coordinates of the search.
        mask: The bank bits it sees.
        weight: How often it is touched.
        inside: Dimension of its part within one word.
        kernel: Dimension of the part that the known bank bits already put into one bank.
    """

    basis: tuple[int, ...]
    mask: int
    weight: int
    inside: int
    kernel: int = 0

    @property
    def least(self) -> int:
        """Lower bound on the turns of any map."""
        return self.weight << max(self.kernel, len(self.basis) - self.inside - self.mask.bit_count())

    def turns(self, columns: Sequence[int]) -> int:
        """Return the turns under a map."""
        images = [matrix.apply(columns, vector) & self.mask for vector in self.basis]
        return self.weight << len(self.basis) - matrix.rank(images) - self.inside


def _stepped(space: Space, total: int) -> list[int | None]:
    """Return an echelon basis of the space: per coordinate, the vector with that highest coordinate, or None."""
    found: list[int | None] = [None] * total
    for vector in space.basis:
        while vector:
            top = vector.bit_length() - 1
            held = found[top]
            if held is None:
                found[top] = vector
                break
            vector ^= held
    return found


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search."""

    columns: tuple[int, ...]  # bank bits of every basis vector; () if no map takes as few turns as requested
    turns: int  # their turns
    bound: int  # lower bound on the turns of any map of the form
    proof: str  # why the bound holds
    nodes: int  # columns tried


def least(
    spaces: Sequence[Space],
    known: Sequence[int],
    total: int,
    choices: Callable[[int, int], Sequence[int]],
    nodes: int,
    ideal: bool = False,
) -> Found | None:
    """Return the map with the fewest turns by branch and bound; None if none was found within ``nodes``.

    Args:
        spaces: The spaces.
        known: The columns of the first basis vectors.
        total: Number of basis vectors.
        choices: The columns to try, best first, for a coordinate and the bank bits in use.
        nodes: Maximum number of columns to try.
        ideal: Whether every space must take its least turns; if no map does it, the columns are ().

    Example:
        >>> found = least([Space((1, 2), 3, 1, 0), Space((4, 8), 3, 1, 0)], (), 4, lambda at, used: range(4), 1000)
        >>> found.turns, found.bound
        (2, 2)
    """
    steps = [_stepped(space, total) for space in spaces]
    floor = sum(space.least for space in spaces)
    best: list[tuple[int, tuple[int, ...]]] = []
    tried = 0

    def bound_of(nullity: Sequence[int]) -> int:
        found = 0
        for space, null in zip(spaces, nullity, strict=True):
            found += max(space.weight << max(0, null - space.inside), space.least)
        return found

    def go(columns: list[int], work: list[dict[int, int]], nullity: list[int], used: int) -> bool:
        """Extend the map; return whether the search is over."""
        nonlocal tried
        at = len(columns)
        if at == total:
            best[:] = [(bound_of(nullity), tuple(columns))]
            return best[0][0] == floor
        for column in (known[at],) if at < len(known) else choices(at, used):
            tried += 1
            if tried > nodes or (tried % 256 == 0 and clock.left() <= 0):
                return True
            columns.append(column)
            grown, nulls = work, nullity
            for place, step in enumerate(steps):
                vector = step[at]
                if vector is None:
                    continue
                image = matrix.apply(columns, vector) & spaces[place].mask
                reduced = work[place]
                while image and image.bit_length() in reduced:
                    image ^= reduced[image.bit_length()]
                grown = list(grown) if grown is work else grown
                if image:
                    grown[place] = {**reduced, image.bit_length(): image}
                else:
                    nulls = list(nulls) if nulls is nullity else nulls
                    nulls[place] += 1
            turns = bound_of(nulls)
            if (turns <= floor if ideal else not best or turns < best[0][0]) and go(
                columns, grown, nulls, used | column
            ):
                return True
            columns.pop()
        return False

    over = go([], [{} for _ in spaces], [0] * len(spaces), 0)
    if not best:
        return None if over or not ideal else Found((), floor, floor, "", tried)
    turns, columns = best[0]
    if turns == floor:
        proof = "every group of lanes spreads its words evenly over the banks"
        return Found(columns, turns, floor, proof, tried)
    if over:
        return Found(columns, turns, floor, f"the best found; the search stopped after {tried} columns", tried)
    return Found(
        columns, turns, turns, f"a complete search ({tried} columns tried) found nothing with fewer turns", tried
    )


def free_choices(bits: int, fixed: int, same: bool) -> Callable[[int, int], Sequence[int]]:
    """Return the column choices of an unrestricted map, skipping maps that no space distinguishes.

    Args:
        bits: Number of bank bits.
        fixed: Number of low bank bits used by known columns only.
        same: Whether all spaces see all bank bits.
    """
    everything = sorted(range(0, 1 << bits, 1 << fixed), key=lambda value: (value.bit_count() != 1, value))

    def choices(_: int, used: int) -> Sequence[int]:
        if not same:
            return everything
        used >>= fixed
        fresh = 1 << used.bit_length() + fixed
        inside = [value for value in everything if value < fresh]
        return inside if fresh >> bits else [fresh, *inside]

    return choices


def complement_columns(spaces: Sequence[Space], word: int, known: int, total: int, bits: int) -> tuple[int, ...] | None:
    """Return bank bits from a common complement, for one or two spaces that see the same banks; otherwise None.

    The unknown bits only have to separate the part of each space on which the known bank bits vanish.

    Returns:
        For each coordinate from ``known`` on, its bank bits among ``bits``.
    """
    if len(spaces) > 2 or len({space.mask for space in spaces}) > 1:
        return None
    over = []
    for space in spaces:
        told = [(vector & (1 << known) - 1) >> word for vector in space.basis]
        over.append([matrix.apply(space.basis, null) >> known for null in matrix.kernel(told)])
    left, right = over[0], over[-1]
    free = total - known
    kernel = list(matrix.common_complement(left, right, free))
    wanted = max(0, free - bits)
    smaller = min(left, right, key=matrix.rank)
    while len(kernel) < wanted:
        kernel.append(_outside([*kernel, *smaller], kernel, free))
    kernel = kernel[:wanted]
    banks = matrix.extension(kernel, [1 << at for at in range(free)])
    inverse = matrix.inverse([*banks, *kernel])
    mask = (1 << len(banks)) - 1
    return tuple(column & mask for column in inverse)


def _outside(spanned: Sequence[int], kernel: Sequence[int], bits: int) -> int:
    """Return a unit vector outside ``spanned``, or outside ``kernel`` if ``spanned`` is everything."""
    units = [1 << at for at in range(bits)]
    return (*matrix.extension(spanned, units), *matrix.extension(kernel, units))[0]
