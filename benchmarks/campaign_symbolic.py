"""Real tiles planned once for all sizes, each plan held against the checker of plans at random sizes.

Run: ``python benchmarks/campaign_symbolic.py [--sizes 1000] [--tiles NAME] [--out FILE]``.

Every extent that the tile does not cover exactly gets a name; strides that are products of the extents
inside them stay that, others get names of their own. The judge of a size: does the target take the same map at these
numbers, and does the checker of plans prove it there? It has to agree with the guard, in both directions.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign import options_of, part_of, report
from judges.symbolic_plans import accepted

from layoutalg.cli.demo import TILES
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.symbolic import SymbolicPlan, SymbolicProblem
from layoutalg.proofs.tensormap import TensorMapProblem
from layoutalg.synth import synthesize_symbolic

LETTERS = "MNKPQRSTUVW"


def named(document: dict[str, Any]) -> dict[str, Any]:
    """Return a problem document with names for the sizes that a kernel does not know."""
    problem = TensorMapProblem.from_json(document)
    shape, strides = problem.global_shape, problem.global_strides
    names: list[Any] = []
    for dim, extent in enumerate(shape):
        reach = problem.tile[dim] * problem.element_strides[dim]
        names.append(extent if reach == extent else LETTERS[dim])
    stated: list[Any] = []
    for dim, stride in enumerate(strides):
        inner = [other for other in range(len(shape)) if strides[other] < stride]
        product = 1
        for other in inner:
            product *= shape[other]
        if stride in (0, 1) or (problem.element_strides[dim] > 1 and stride == 1):
            stated.append(stride)
        elif stride == product:
            text = "*".join(str(names[other]) for other in inner)
            stated.append(text)
        else:
            stated.append(f"ld{dim}")
    answer = json.loads(json.dumps(problem.to_json()))
    answer["global"] |= {"shape": names, "stride": stated}
    answer["bounds"] = [
        [low, name if high == extent else high if isinstance(name, int) else f"V{dim}"]
        for dim, ((low, high), extent, name) in enumerate(zip(problem.bounds, shape, names, strict=True))
    ]
    del answer["origin_multiple"]
    return dict(answer)


def draw(names: tuple[str, ...], source: random.Random) -> dict[str, int]:
    """Sizes of every kind: those of kernels, small ones, odd ones, and those at the limits."""
    near = source.random() < 0.7
    most = max(4, 200 // 4 ** max(0, len(names) - 3))
    sizes = {}
    for name in names:
        kind = source.random()
        if near or kind < 0.5:
            grain = source.choice((8, 16, 32, 64, 128)) if near or kind < 0.3 else source.choice((1, 2, 4))
            sizes[name] = grain * source.randrange(1, most)
        elif kind < 0.85:
            sizes[name] = source.randrange(1, 5000)
        else:
            sizes[name] = 2 ** source.choice((20, 30, 31, 32, 38, 39)) + source.choice((-8, -1, 0, 1, 8))
    return sizes


@dataclass
class Row:
    """What became of one tile."""

    name: str
    seconds: float
    plan: SymbolicPlan | None
    why: str = ""
    held: int = 0
    refused: int = 0
    wrong: int = 0


def rows(tiles: list[dict[str, Any]], count: int) -> Iterator[Row]:
    """Plan every tile and judge its guard at so many sizes."""
    for tile in tiles:
        name = str(tile["name"])
        began = time.perf_counter()
        try:
            problem = SymbolicProblem.from_json(named(tile["problem"]))
            if not problem.names:
                yield Row(name, 0.0, None, "no size has a name")
                continue
            began = time.perf_counter()
            plan = synthesize_symbolic(problem, seconds=60, repair=False)
        except LayoutError as error:
            because = (
                error.diagnostic.because.split(":")[0] if error.diagnostic.code == "LA400" else error.diagnostic.because
            )
            yield Row(name, time.perf_counter() - began, None, f"{error.diagnostic.code} {because}")
            continue
        row = Row(name, time.perf_counter() - began, plan)
        source = random.Random(name)
        for _ in range(count):
            sizes = draw(plan.names, source)
            expected, held = accepted(plan, sizes), plan.guard.holds(sizes)
            row.held += held
            row.refused += not held
            wrong = expected != held
            if held and not wrong:
                case = plan.case_of(sizes)
                wrong = (case is not plan and not accepted(case, sizes)) or plan.encode(sizes) != case.unproved(
                    sizes
                ).raw
            row.wrong += wrong
        yield row


def main() -> None:
    """Run the campaign and print its figures."""
    given = options_of(__doc__, sizes=1000, tiles="", out=Path)
    tiles = [tile for tile in json.loads(TILES.read_text())["tiles"] if given.tiles in tile["name"]]
    found = []
    for row in rows(tiles, given.sizes):
        found.append(row)
        text = (
            row.why if row.plan is None else f"{row.held} held, {row.refused} not, {row.wrong} wrong: {row.plan.guard}"
        )
        print(f"{row.name:<45}{1e3 * row.seconds:8.1f} ms  {text}", flush=True)
    planned = [row for row in found if row.plan is not None]
    times = [row.seconds for row in planned] or [0.0]
    figures = {
        "tiles": len(found),
        "planned": len(planned),
        "sizes": sum(row.held + row.refused for row in planned),
        "held": sum(row.held for row in planned),
        "wrong": sum(row.wrong for row in planned),
        "cases": sum(len(row.plan.cases) for row in planned if row.plan),
        "p50_ms": round(1e3 * statistics.median(times), 1),
        "p99_ms": round(1e3 * part_of(times, 0.99), 1),
        "classes": dict(Counter(row.plan.oob for row in planned if row.plan)),
        "without_a_plan": {row.name: row.why for row in found if row.plan is None},
    }
    report(figures, given.out, indent=1)


if __name__ == "__main__":
    main()
