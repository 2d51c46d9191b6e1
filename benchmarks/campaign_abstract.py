"""The abstract filter against planning everything: false prunes, passes that the planner refuses, searches saved.

Run from the root of the repository:

    PYTHONPATH=.:tests python benchmarks/campaign_abstract.py [--problems 2000] [--chains 300] [--searches 40]

Problems are those of ``tests/judges/planner_problems.py``; each is planned without the filter. Chains are random
operations on a tensor whose parameters are ranges (slices, steps, pads, spreads, transpositions, a join of two ways):
every tile that the ranges allow, up to 96 drawn ones, is planned. A prune is false where any of them has a plan.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from campaign import options_of
from judges.planner_problems import random_problem

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.ground.values import Values, constant
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.proofs.tensormap.listed_problem import problem_from
from layoutalg.synth.abstract import AbstractTile, never_copied, surviving
from layoutalg.synth.tensormap import planner

DTYPES = {1: "u8", 2: "bf16", 4: "f32", 8: "f64"}
MOST = 96


@contextmanager
def unfiltered() -> Iterator[list[int]]:
    """Plan without the filter; yields the number of checks of candidate plans as a one-entry list."""
    never, check, calls = planner._never, planner.check, [0]

    def counted(plan: Any) -> Any:
        calls[0] += 1
        return check(plan)

    planner._never, planner.check = (lambda _: False), counted  # type: ignore[assignment]
    try:
        yield calls
    finally:
        planner._never, planner.check = never, check  # type: ignore[assignment]


def carried(problem: TensorMapProblem) -> bool | None:
    """Return whether the planner, without the filter, finds a plan; None where it gives up."""
    try:
        with clock.within(20):
            return isinstance(planner._plan(problem, False), TensorMapPlan)
    except BudgetError:
        return None


@dataclass
class Tally:
    """What was seen."""

    cases: int = 0
    left_out: int = 0
    refused: int = 0
    pruned: int = 0
    false: int = 0
    checks: int = 0
    checks_saved: int = 0
    seconds: float = 0.0
    seconds_saved: float = 0.0

    def told(self, name: str, micro: list[float]) -> str:
        """Return a line of the page."""
        passed = self.refused - self.pruned
        share = 100 * passed / max(1, self.refused)
        return (
            f"{name}: {self.cases} cases, {self.left_out} outside the abstraction, {self.refused} refused, "
            f"{self.pruned} pruned, {self.false} false prunes, {passed} false passes ({share:.0f} %); checks saved "
            f"{self.checks_saved} of {self.checks}; planning time saved {self.seconds_saved:.1f} of "
            f"{self.seconds:.1f} s; filter {statistics.median(micro):.0f} us (median), {max(micro):.0f} us (most)"
        )


def problems(rng: random.Random, count: int) -> str:
    """Judge the filter on single problems."""
    tally, micro = Tally(), []
    while tally.cases < count:
        try:
            problem = problem_from(random_problem(rng))
        except LayoutError:
            continue
        tally.cases += 1
        begin = time.perf_counter()
        tile = AbstractTile.of(problem)
        broken = never_copied(tile) if tile is not None else ()
        micro.append(1e6 * (time.perf_counter() - begin))
        if tile is None:
            tally.left_out += 1
            continue
        begin = time.perf_counter()
        with unfiltered() as calls:
            found = carried(problem)
        spent = time.perf_counter() - begin
        tally.checks, tally.seconds = tally.checks + calls[0], tally.seconds + spent
        tally.refused += found is False
        if broken:
            tally.pruned += 1
            tally.false += found is not False
            tally.checks_saved, tally.seconds_saved = tally.checks_saved + calls[0], tally.seconds_saved + spent
    return tally.told("single problems", micro)


Step = Callable[[AbstractTile, Callable[[Values], Values]], AbstractTile]


def chain(rng: random.Random) -> tuple[list[tuple[Step, ...]], AbstractTile]:
    """Return the ways through a chain of operations, and the tensor that it begins with."""
    size = rng.choice((1, 2, 2, 4))
    chunk = 16 // size
    rows, width = rng.choice((8, 16)), chunk * rng.choice((1, 2, 4))
    pitch = width * rng.choice((2, 3, 4))
    start = AbstractTile.dense(size, (rows, width))
    start = AbstractTile(
        size, start.offset, (constant(4 * rows), constant(pitch)), (constant(pitch), constant(1)), start.shared
    )

    def step() -> Step:
        modulus = rng.choice((1, 2, 4, chunk, 2 * chunk))
        low = rng.choice((0, 0, 1, modulus, chunk))
        values = Values(low, low + modulus * rng.choice((0, 1, 3)), modulus, low % modulus)
        kind = rng.randrange(6)
        if kind == 0:
            return lambda tile, pick: tile.padded(0, pick(values))
        if kind == 1:
            return lambda tile, pick: tile.sliced(1, pick(values), width)
        if kind == 2:
            return lambda tile, pick: tile.sliced(0, pick(values), 2 * rows)
        if kind == 3:
            return lambda tile, pick: tile.spread(0, 0, pick(values))
        if kind == 4:
            return lambda tile, pick: tile.shifted(pick(values))
        return lambda tile, pick: tile.sliced(0, pick(values), rows).padded(0, pick(values))

    common = tuple(step() for _ in range(rng.choice((0, 1))))
    ways = [(*common, *(step() for _ in range(rng.choice((1, 2))))) for _ in range(rng.choice((1, 2)))]
    return ways, start


def concrete(tile: AbstractTile) -> TensorMapProblem:
    """Return the problem of a tile whose every number is known."""

    def known(values: Values) -> int:
        found = values.single
        assert found is not None
        return found

    extents = [tuple((known(n), known(s)) for n, s in digits) for digits in tile.shared]
    shape = tuple(map(known, tile.extents))
    return problem_from(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
            "global": {"shape": list(shape), "stride": [known(s) for s in tile.strides], "dtype": DTYPES[tile.size],
                       "base_align_bytes": 256},
            "tile": [known(tile.tile_extent(dim)) for dim in range(tile.rank)],
            "smem": {"modes": [[list(digit) for digit in digits] for digits in extents], "swizzle": "NONE"},
            "base_elem_offset": known(tile.offset),
        }
    )  # fmt: skip


def through(way: tuple[Step, ...], start: AbstractTile, pick: Callable[[Values], Values]) -> AbstractTile:
    """Return what a chain makes of a tensor, its parameters as ``pick`` takes them."""
    for step in way:
        start = step(start, pick)
    return start


def drawn(rng: random.Random, values: Values) -> Values:
    """Return one of the values."""
    assert values.low is not None
    assert values.high is not None
    return constant(rng.randrange(values.low, values.high + 1, values.modulus or 1))


def chains(rng: random.Random, count: int) -> str:
    """Judge the filter on ranges of tiles at the end of chains of operations with a join."""
    tally, micro = Tally(), []
    while tally.cases < count:
        ways, start = chain(rng)
        begin = time.perf_counter()
        ends = [through(way, start, lambda values: values) for way in ways]
        joined = ends[0] if len(ends) == 1 else ends[0].join(ends[1])
        broken = never_copied(joined)
        micro.append(1e6 * (time.perf_counter() - begin))
        tiles = {through(way, start, lambda values: drawn(rng, values)) for way in ways for _ in range(MOST // 2)}
        assert all(joined.holds(tile) for tile in tiles)
        begin = time.perf_counter()
        with unfiltered() as calls:
            found = []
            for tile in tiles:
                try:
                    found.append(carried(concrete(tile)))
                except LayoutError:  # no such problem
                    found.append(False)
        spent = time.perf_counter() - begin
        tally.cases += 1
        tally.checks, tally.seconds = tally.checks + calls[0], tally.seconds + spent
        tally.refused += all(each is False for each in found)
        if broken:
            tally.pruned += 1
            tally.false += any(each is not False for each in found)
            tally.checks_saved, tally.seconds_saved = tally.checks_saved + calls[0], tally.seconds_saved + spent
    return tally.told("chains of operations", micro)


def searches(rng: random.Random, count: int) -> str:
    """Judge the filter as the first step of a search for a pitch and a first element."""
    tried = kept = carried_at = false = 0
    begin, filtering = time.perf_counter(), 0.0
    for _ in range(count):
        size = rng.choice((1, 2, 4))
        chunk = 16 // size
        rows, width = rng.choice((8, 16)), chunk * rng.choice((1, 2, 3))
        base = AbstractTile.dense(size, (rows, width))
        pitch = constant(width + rng.randrange(2 * chunk))
        extents = (constant(4 * rows), constant(width))
        at = AbstractTile(size, constant(rng.randrange(chunk)), extents, (pitch, constant(1)), base.shared)

        def make(pad: Values, at: AbstractTile = at, also: bool = rng.random() < 0.5) -> AbstractTile:
            return at.padded(0, pad).shifted(pad) if also else at.padded(0, pad)

        start = time.perf_counter()
        found = set(surviving(make, Values(0, 63)))
        filtering += time.perf_counter() - start
        with unfiltered():
            good = {pad for pad in range(64) if carried(concrete(make(constant(pad)))) is not False}
        tried, kept, carried_at, false = (
            tried + 64,
            kept + len(found),
            carried_at + len(good),
            false + len(good - found),
        )
    spent = time.perf_counter() - begin - filtering
    return (
        f"searches for a padding: {count} searches of 64 values, {tried - kept} of {tried} plans not asked for, {kept} "
        f"asked, {carried_at} found, {false} false prunes; filter {1e6 * filtering / tried:.0f} us a value, the "
        f"planner {1e6 * spent / tried:.0f} us"
    )


def main() -> None:
    """Print one line per sort of case."""
    given = options_of(__doc__, problems=2000, chains=300, searches=40)
    print(problems(random.Random(given.seed), given.problems), flush=True)
    print(chains(random.Random(given.seed + 1), given.chains), flush=True)
    print(searches(random.Random(given.seed + 2), given.searches), flush=True)


if __name__ == "__main__":
    main()
