"""Hierarchical layouts: blocks, wreath products, guards, equations, exchange plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

from layoutalg.f2 import matrix
from layoutalg.hierarchy import (
    Box,
    DigitMap,
    Guard,
    HierarchicalLayout,
    TableMap,
    crossing_ranks,
    exchange_plan,
    hierarchy,
    preserves_blocks,
    solve_conversion,
)
from layoutalg.hierarchy import bijection as maps
from layoutalg.proofs.laws.digit_maps import pairs, some_maps, tables
from layoutalg.proofs.laws.engines import enumerated
from layoutalg.proofs.laws.law import Law

Maps = Callable[..., Any]


def _blocks(values: tuple[int, ...], decide: Maps = preserves_blocks) -> str | None:
    """Blocks are kept together where the definition says so."""
    for box, size in ((hierarchy(register=2, lane=3), 2), (hierarchy(register=3, lane=2), 3)):
        layout = HierarchicalLayout(box, box, TableMap(values))
        kept = all(len({value // size for value in values[k : k + size]}) == 1 for k in range(0, 6, size))
        if bool(decide(layout, "register|lane")) != kept:
            return f"blocks of {size}"
    return None


def _in_place(layout: HierarchicalLayout, cut: str) -> bool:
    """Ask that every value stays in its block."""
    size = 2 if layout.source.dims["register"] == 2 else 3
    return bool(preserves_blocks(layout, cut)) and all(layout.at(k) // size == k // size for k in range(6))


def _guards(case: tuple[DigitMap, DigitMap, tuple[int, int]], moved: bool = True) -> str | None:
    """(B @ A) is defined where A is and B is at A's value; the inverse is defined on the image."""
    one, two, bounds = case
    box = Box.of(x=4, y=3)
    A = HierarchicalLayout(box, box, one, (Guard(maps.identity(12), box, bounds),))
    B = HierarchicalLayout(box, box, two, (Guard(two, box, (bounds[1], bounds[0])),))
    whole = B @ A if moved else HierarchicalLayout(box, box, (B @ A).map, (*A.guards, *B.guards))
    first, second = A.table().tolist(), B.table().tolist()
    if whole.table().tolist() != [second[value] if value >= 0 else -1 for value in first]:
        return "the points of the composition"
    back = A.inverse().table().tolist()
    image = [first.index(value) if value in first else -1 for value in range(12)]
    return None if back == image and A.active() == sum(value >= 0 for value in first) else "the points of the inverse"


def _guarded() -> Iterator[tuple[DigitMap, DigitMap, tuple[int, int]]]:
    some = some_maps()[::5]
    return ((one, two, bounds) for one in some for two in some for bounds in ((2, 3), (3, 1)))


def _solved(pair: tuple[DigitMap, DigitMap], solve: Maps = solve_conversion) -> str | None:
    box = Box.of(x=12)
    A, B = (HierarchicalLayout(box, box, each) for each in pair)
    return None if solve(A, B) @ A == B else "X o A is not B"


def _other_side(A: HierarchicalLayout, B: HierarchicalLayout) -> Any:
    """Solve A o X = B instead."""
    return A.inverse() @ B


def _plan(case: tuple[tuple[int, ...], tuple[int, int, int]], rank: Maps = matrix.rank) -> str | None:
    columns, levels = case
    box = hierarchy(register=1 << levels[0], lane=1 << levels[1], warp=1 << levels[2])
    mapping = DigitMap.from_bits(columns)
    plan = exchange_plan(HierarchicalLayout(box, box, mapping))
    if plan.product != columns:
        return "the product of the factors"
    for cut, low in (("register|lane", levels[0]), ("lane|warp", levels[0] + levels[1])):
        if plan.crossing(cut) != rank([column >> low for column in columns[:low]]):
            return f"bits crossing {cut}"
    ranks = [crossing_ranks(DigitMap.from_bits(each), levels) for each in (columns, _wired(plan.wiring))]
    return None if ranks[0] == ranks[1] else "the ranks"


def _wired(wiring: Sequence[int]) -> tuple[int, ...]:
    return tuple([1 << place for place in wiring])


def _plans() -> Iterator[tuple[tuple[int, ...], tuple[int, int, int]]]:
    regular = [each for each in product(range(1, 8), repeat=3) if matrix.rank(each) == 3]
    return ((columns, levels) for columns in regular for levels in ((1, 1, 1), (2, 1, 0), (1, 2, 0)))


_MAPS = "layoutalg.hierarchy.bijection."
_TWELVE = "100 digit maps of 12 points, mixed bits too"

LAWS = (
    Law(
        "hierarchy.blocks",
        "preserves_blocks decides whether every block is mapped onto a block.",
        ("layoutalg.hierarchy.preserves_blocks",),
        enumerated(
            tables,
            _blocks,
            partial(_blocks, decide=_in_place),
            "all permutations of 6 points, blocks of 2 and 3",
            720,
        ),
        why_bounded="A statement about all bijections of a box; at a fixed size there are finitely many.",
    ),
    Law(
        "hierarchy.guards",
        "B o A is defined where A is and B is at A's value, the inverse on the image of the guarded points.",
        ("layoutalg.hierarchy.HierarchicalLayout", "layoutalg.hierarchy.Guard"),
        enumerated(
            _guarded, _guards, partial(_guards, moved=False), f"pairs of every fifth of {_TWELVE}, two bounds", 800
        ),
        why_bounded="A guard compares every coordinate of a point; the points are listed.",
    ),
    Law(
        "hierarchy.equation",
        "solve_conversion(A, B) o A = B.",
        ("layoutalg.hierarchy.solve_conversion",),
        enumerated(pairs, _solved, partial(_solved, solve=_other_side), f"25 with each of {_TWELVE}", 2500),
        why_bounded="It is `digits.composition` with `digits.inverse`; this law adds the boxes and the normal form.",
    ),
    Law(
        "hierarchy.plan",
        "exchange_plan(P) multiplies to P, and as many bits cross each cut as the rank of P's corner block, which no "
        "plan can undercut; crossing_ranks is the same for P and its wiring.",
        ("layoutalg.hierarchy.exchange_plan", "layoutalg.hierarchy.crossing_ranks"),
        enumerated(
            _plans,
            _plan,
            partial(_plan, rank=lambda corner: sum(map(bool, corner))),
            "all 168 invertible 3 by 3 matrices, three cuts into levels",
            504,
        ),
        why_bounded="Elimination branches at every pivot, see `f2.rank`.",
    ),
)
