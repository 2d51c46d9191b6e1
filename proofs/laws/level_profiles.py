"""Level profiles: what is said to cross a cut of levels is what crosses it, point by point.

Notation: a bijection of 0..N - 1 cut into blocks of ``below`` points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations, product
from typing import Any

from layoutalg.ground.verdict import Proved
from layoutalg.hierarchy import Box, DigitMap, HierarchicalLayout, hierarchy, level_profile
from layoutalg.hierarchy.blocks import crossing_witness, preserves_blocks
from layoutalg.hierarchy.profile import Counts, counts_by_digits, counts_of_table
from layoutalg.proofs.laws.engines import enumerated
from layoutalg.proofs.laws.law import Law

Case = tuple[DigitMap, int]
Modes = tuple[tuple[int, int], ...]


def _modes() -> Iterator[Modes]:
    """Mixed-radix digits of 12 points in every order, each forwards or backwards."""
    for extents in permutations((2, 2, 3)):
        for order, signs in product(permutations(range(3)), product((1, -1), repeat=3)):
            strides, weight = [0, 0, 0], 1
            for place in order:
                strides[place], weight = weight * signs[place], weight * extents[place]
            yield tuple(zip(extents, strides, strict=True))


def _maps() -> Iterator[DigitMap]:
    for columns in product(range(1, 8), repeat=3):
        spanned = {0}
        for column in columns:
            spanned |= {member ^ column for member in spanned}
        if len(spanned) == 8:
            yield DigitMap.from_bits(columns)
    yield from map(DigitMap, sorted(set(_modes()))[::3])


def _cases() -> Iterator[Case]:
    for bijection in _maps():
        for below in range(1, bijection.size + 1):
            if bijection.size % below == 0:
                yield bijection, below


def _counted(table: list[int], below: int) -> tuple[tuple[int, int], int]:
    """Return the least and the greatest number of blocks that a block feeds, and the points that leave theirs."""
    feeds = Counter(here for here, _ in {(at // below, value // below) for at, value in enumerate(table)})
    return (min(feeds.values()), max(feeds.values())), sum(at // below != v // below for at, v in enumerate(table))


def _counts(bijection: DigitMap, below: int) -> Counts:
    return counts_by_digits(bijection, below) or counts_of_table(bijection.table(), below)


def _wrong_counts(bijection: DigitMap, below: int) -> Counts:
    """Count the points that move at all."""
    feeds, reads, _ = _counts(bijection, below)
    return feeds, reads, _counts(bijection, 1)[2] if below < bijection.size else 0


def _crossed(case: Case, count: Callable[[DigitMap, int], Counts] = _counts) -> str | None:
    bijection, below = case
    table = [bijection.at(i) for i in range(bijection.size)]
    feeds, leave = _counted(table, below)
    found_feeds, _, found_leave = count(bijection, below)
    if (found_feeds, found_leave) != (feeds, leave):
        return "another number of blocks or points"
    found = crossing_witness(bijection, below)
    if found is None:
        return None if feeds == (1, 1) else "blocks are said to stay together"
    one, other = found
    shown = one // below == other // below and table[one] // below != table[other] // below
    return None if shown else "the witness does not show it"


_LEVELS = hierarchy(register=2, lane=2, warp=2)
_TENSOR = Box.of(x=8)


def _linear() -> Iterator[tuple[DigitMap, DigitMap]]:
    maps = [bijection for bijection in _maps() if bijection.size == 8][::16]
    yield from product(maps, repeat=2)


def _to_rows(source: Any, _: Any) -> Any:
    """Take the plain order for the destination."""
    return level_profile(source, HierarchicalLayout(_LEVELS, _TENSOR, DigitMap(((8, 1),))))


def _profiled(case: tuple[DigitMap, DigitMap], profile: Callable[[Any, Any], Any] = level_profile) -> str | None:
    source, destination = [HierarchicalLayout(_LEVELS, _TENSOR, each) for each in case]
    to = {case[1].at(i): i for i in range(8)}
    table = [to[case[0].at(i)] for i in range(8)]
    back = [table.index(i) for i in range(8)]
    if [(source @ ~source).at(i) for i in range(8)] != list(range(8)):
        return "a layout after its inverse is not the identity"
    for entry in profile(source, destination).cuts:
        (feeds, leave), (reads, _) = _counted(table, entry.block), _counted(back, entry.block)
        if (entry.fanout, entry.fanin, entry.moved) != (feeds, reads, leave):
            return f"another profile at {entry.cut}"
        if isinstance(preserves_blocks(~destination @ source, entry.cut), Proved) != (feeds == (1, 1)):
            return f"blocks are said to stay together at {entry.cut}, or the reverse"
        if entry.rank is not None and 2**entry.rank != reads[0]:
            return f"another rank at {entry.cut}"
    return None


_WHY = "digits and blocks divide each other as their numbers say; the theorem's F2 part is a rank of these numbers"

LAWS = (
    Law(
        "profiles.crossing",
        "A profile counts the blocks that a block feeds and the points that leave theirs; crossing_witness shows "
        "two points of one block that part exactly where there are some.",
        tuple(
            f"layoutalg.hierarchy.{name}"
            for name in ("profile.counts_by_digits", "blocks.crossing_witness", "blocks.cut_digits")
        ),
        enumerated(
            _cases,
            _crossed,
            partial(_crossed, count=_wrong_counts),
            "all 168 linear bijections of 8 points and every third digit map of 12, at every cut",
            960,
        ),
        _WHY,
    ),
    Law(
        "profiles.levels",
        "level_profile and preserves_blocks say of every cut what the points of destination^-1 source say.",
        (
            "layoutalg.hierarchy.blocks.preserves_blocks",
            *(f"layoutalg.hierarchy.profile.{name}" for name in ("level_profile", "profile_of")),
            *(f"layoutalg.hierarchy.layout.HierarchicalLayout.{name}" for name in ("inverse", "__invert__")),
        ),
        enumerated(
            _linear,
            _profiled,
            partial(_profiled, profile=_to_rows),
            "pairs of every sixteenth linear layout of 2 registers, 2 lanes and 2 warps",
            121,
        ),
        _WHY,
    ),
)
