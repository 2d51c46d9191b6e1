"""The times in docs/hierarchical_equations.md: ``python benchmarks/bench_equations.py`` (under a minute)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from layoutalg.f2 import matrix
from layoutalg.hierarchy import (
    Box,
    DigitMap,
    HierarchicalLayout,
    TableMap,
    crossing_ranks,
    exchange_plan,
    hierarchy,
    preserves_blocks,
    solve_conversion,
)


def milliseconds(call: Callable[[], object]) -> str:
    """The least processor time of up to three calls."""
    found: list[float] = []
    while len(found) < 3 and sum(found) < 5:
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return f"{min(found) * 1e3:,.1f}"


def digits(count: int, seed: int) -> DigitMap:
    """Digits of 2, 3, 4 values in any order, some reversed."""
    chance = random.Random(seed)
    extents, order = [2 + k % 3 for k in range(count)], list(range(count))
    chance.shuffle(order)
    weight, here = [0] * count, 1
    for k in order:
        weight[k], here = here, here * extents[k]
    return DigitMap(tuple([(extent, chance.choice((1, -1)) * weight[k]) for k, extent in enumerate(extents)]))


def bits(count: int, seed: int) -> DigitMap:
    """An invertible dense matrix over F2."""
    chance = random.Random(seed)
    while True:
        columns = tuple([chance.randrange(1, 1 << count) for _ in range(count)])
        if matrix.rank(columns) == count:
            return DigitMap.from_bits(columns)


def table(count: int, seed: int) -> TableMap:
    """Any permutation of 2**count points."""
    values = list(range(1 << count))
    random.Random(seed).shuffle(values)
    return TableMap(tuple(values))


def solving(one: DigitMap | TableMap, two: DigitMap | TableMap) -> str:
    """Time X o A = B."""
    box = Box.of(x=one.size)
    before, after = HierarchicalLayout(box, box, one), HierarchicalLayout(box, box, two)
    return milliseconds(lambda: solve_conversion(before, after))


def main() -> None:
    """Print the table."""
    print("| digits | X o A = B, plain | X o A = B, mixed bits | blocks kept | ranks | exchange plan |")
    print("|---|---|---|---|---|---|")
    for count in (8, 32, 128):
        quarter = count // 4
        box = hierarchy(**dict.fromkeys(("register", "lane", "warp", "cta"), 1 << quarter))
        mixed = bits(count, 3)
        layout = HierarchicalLayout(box, box, mixed)
        cells = [
            solving(digits(count, 1), digits(count, 2)),
            solving(mixed, bits(count, 4)),
            milliseconds(lambda layout=layout: preserves_blocks(layout, "lane|warp")),
            milliseconds(lambda mixed=mixed, quarter=quarter: crossing_ranks(mixed, (quarter,) * 4)),
            milliseconds(lambda layout=layout: exchange_plan(layout)),
        ]
        print(f"| {count} | {' | '.join(cells)} |")
    print("\n| points | X o A = B, tables |\n|---|---|")
    for count in (8, 12, 16, 20):
        print(f"| 2^{count} | {solving(table(count, 1), table(count, 2))} |")


if __name__ == "__main__":
    main()
