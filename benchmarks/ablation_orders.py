"""Layout and schedule of a product or an attention, chosen in three orders by the planners of the library.

- ``layout``: first the layouts, as somebody would who knows nothing of the pipeline: of those that ``suggest`` ranks
  first, the ones that cost the copy engine least. Then the schedule of least predicted time with them.
- ``schedule``: first the schedule of least predicted time with the first candidate (rows of 128 bytes, results of 64
  columns; 128 keys), its rings as deep as shared memory holds. Then the best layouts that still fit.
- ``joint``: the least predicted time of all pairs.

The predicted time of a product is ``turns (steps II + leave)``: II by ``la.pipeline.schedule``, and for a result the
turns of its writes and the waits for its store. Copies cost what they do if all multiprocessors copy: bytes and lines
of the L2 cache as products timed before had them, and twice the latency of an idle chip. Of times within 3 % the one of
fewest iterations is taken: a schedule counts waits at barriers as latency, not as work.

    python benchmarks/ablation_orders.py --write      (the choices, into ablation_choices.json: takes minutes)
"""

from __future__ import annotations

import argparse
import functools
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import layoutalg as la
from layoutalg.codegen.kernels.attention import LOADER_REGISTERS, SHARE
from layoutalg.codegen.kernels.gemm_forms import GROUP_ROWS, ROOM, SPANS, UNITS, Form
from layoutalg.codegen.pipeline.program import consumer_registers
from layoutalg.ground.errors import InfeasibleError
from layoutalg.pipeline import Work, attention_work, gemm_work
from layoutalg.targets.global_memory import LINE_BYTES
from layoutalg.targets.pipeline_costs import pipeline_costs

CHOICES: Final = Path(__file__).with_name("ablation_choices.json")
ORDERS: Final = ("layout", "schedule", "joint")
COSTS: Final = pipeline_costs("sm_90a")
TILES: Final = ((128, 256, 2), (192, 192, 3), (128, 192, 2), (128, 128, 2), (64, 256, 1), (64, 128, 1))
"""Rows and columns of a tile, warpgroups that multiply."""
DEPTHS: Final = (64, 128, 192, 256)
"""Bytes of K of a step."""
KEYS: Final = (64, 80, 96, 112, 128, 160, 176, 256)
"""Keys of a tile."""
_CYCLE: Final = 0.64 / COSTS.mma(128, 256, 64, "bf16")[0]
"""Microseconds of a cycle, as the tensor cores bound the largest tile. This step of 0.64 us and those below are of the
products timed before the stored choices were made; ``gemm_forms.TIMES`` has been fitted again since."""
LOADED_KIB: Final = 0.38 / _CYCLE / 32
"""Cycles of a KiB if all multiprocessors copy: steps of 32 KiB that are bound by it."""
LOADED_LINE: Final = 0.875 / _CYCLE / (2 * 384)
"""Cycles of a line: 384 rows of 128 bytes that touch two each."""
EQUAL: Final = 1.03
"""Predicted times that differ by less are taken as equal."""
UNIT: Final = 64
"""Cycles to which the times of attention are rounded up."""


@dataclass(frozen=True)
class Product:
    """A product: (M, N, K), type, which dimensions of A and B are contiguous."""

    shape: tuple[int, int, int]
    dtype: str = "bf16"
    majors: str = "KK"

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return 1 if self.dtype == "e4m3" else 2

    def __str__(self) -> str:
        kind = "" if self.majors == "KK" else f" {self.majors}-major"
        return f"gemm {'x'.join(map(str, self.shape))} {self.dtype}{kind}"


@dataclass(frozen=True)
class Attention:
    """An attention: (batches times heads, queries, keys, columns), and whether it is causal."""

    shape: tuple[int, int, int, int]
    causal: bool = False

    def __str__(self) -> str:
        return f"attention {'x'.join(map(str, self.shape))}{' causal' * self.causal}"


PRODUCTS: Final = (
    Product((4096, 4096, 4096)),
    Product((4096, 4096, 4096), majors="MN"),
    Product((4096, 4096, 4096), "e4m3"),
    Product((8192, 8192, 512)),
    Product((2048, 2048, 2080)),
    Product((8192, 8192, 288)),
    Product((8192, 8192, 288), majors="MN"),
    Product((4096, 12288, 192)),
)
ATTENTIONS: Final = (
    Attention((32, 4096, 4096, 128)), Attention((32, 4096, 4096, 128), True),
    Attention((32, 4096, 4096, 64)), Attention((24, 1000, 3001, 128)),
)  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """What an order chose.

    Args:
        options: Those of ``Form``, or of ``attention_kernel``.
        ii: Cycles from one iteration to the next, as scheduled.
        iterations: Of one multiprocessor, of all its tiles.
        cycles: The predicted time of all.
        why: What binds II.
    """

    options: dict[str, Any]
    ii: int
    iterations: int
    cycles: int
    why: str


# ---------------------------------------------------------------------------------------------------------- schedules


@dataclass(frozen=True)
class Interval:
    """What a schedule says: II, the least slots, multiplies in flight at the next start, the time of one iteration."""

    ii: int
    slots: int
    behind: int
    span: int
    ahead: bool
    why: str


def loaded(work: Work, occupancy: dict[str, float]) -> Work:
    """The work where all multiprocessors copy."""
    ops = []
    for op in work.ops:
        if op.name in occupancy:
            cycles = max(op.occupancy, math.ceil(occupancy[op.name]))
            op = replace(op, occupancy=cycles, latency=max(cycles, 2 * op.latency))
        ops.append(op)
    return replace(work, ops=tuple(ops))


def interval(work: Work, unit: int = 1) -> Interval | None:
    """The schedule of a work; None if there is none."""
    try:
        found = la.pipeline.schedule(work, unit=unit)
    except InfeasibleError:
        return None
    waits = [op.n or 0 for role in found.pipeline.roles for op in role.loop if op.op == "mma_wait"]
    span = max(found.starts[op.name] + op.latency for op in work.ops) - min(found.starts.values())
    ahead = found.starts.get("pv0", 0) - found.starts.get("qk0", 0) > found.ii
    slots = max(found.depths[ring.name] for ring in work.rings if ring.bytes)
    return Interval(found.ii, slots, min(1, max(waits)), span, ahead, found.why.partition(";")[0])


# ----------------------------------------------------------------------------------------------------------- products


@dataclass(frozen=True)
class Operands:
    """A layout of the tiles of A and B: bytes of K of a step, swizzle, cycles of the copy engine for 128 rows of K."""

    depth: int
    swizzle: str
    copies: float


def engine_cycles(kib: float, issues: int = 1) -> float:
    """Cycles of the copy engine for so many KiB in so many copies."""
    return max(issues * COSTS.load_occupancy, kib * COSTS.load_occupancy_per_kib)


@functools.cache
def operand_layouts(problem: Product) -> tuple[Operands, ...]:
    """The first of ``suggest`` for each depth; the first of all is the one of 128 bytes."""
    found = []
    _, _, k = problem.shape
    for depth in sorted(DEPTHS, key=lambda depth: depth != 128):
        best = []
        for side, major, extent in zip("AB", problem.majors, problem.shape[:2], strict=True):
            tensor = la.Tensor((extent, k), None if major == "K" else (1, extent), dtype=problem.dtype)
            best.append(la.suggest(tensor, (128, depth // problem.size), [f"wgmma.{side}"]).best)
        swizzles = {choice.plan.problem.swizzle for choice in best}
        if len(swizzles) > 1 or not swizzles <= set(SPANS):
            continue
        issues = max(len(choice.plan.issues) for choice in best)
        steps = -(-k * problem.size // depth)
        found.append(Operands(depth, swizzles.pop(), steps * engine_cycles(depth / 8, issues)))
    return tuple(found)


def lines(problem: Product, layout: Operands) -> float:
    """Lines of the L2 cache that a row of an operand touches in a step, on average over steps and rows."""
    if problem.majors != "KK":
        return layout.depth / LINE_BYTES
    length, span = problem.shape[2] * problem.size, min(layout.depth, SPANS[layout.swizzle])
    spans = range(0, length, span)
    touched = [
        (start + min(first + span, length) - 1) // LINE_BYTES - (start + first) // LINE_BYTES + 1
        for start in [row * length % LINE_BYTES for row in range(LINE_BYTES)]
        for first in spans
    ]
    return sum(touched) / LINE_BYTES / -(-length // layout.depth)


@functools.cache
def product_interval(tile: tuple[int, int, int], depth: int, dtype: str, touched: float) -> Interval | None:
    """The schedule of a step."""
    rows, columns, consumers = tile
    k = depth // (1 if dtype == "e4m3" else 2)
    work = gemm_work(rows, columns, k, dtype, consumers)
    cycles = max(LOADED_KIB * work.rings[0].bytes / 1024, LOADED_LINE * (rows + columns) * touched)
    return interval(loaded(work, {"load": cycles}))


def leave_cycles(tile: tuple[int, int, int], leaving: int) -> int:
    """Cycles until the result of a tile is in shared memory: writes, and waits until the part before was read."""
    rows, columns, consumers = tile
    parts = rows // GROUP_ROWS // consumers * (columns // leaving)
    part = consumers * GROUP_ROWS * leaving * 2
    waits = COSTS.store(part / 1024, consumers)[1]
    return parts * (part // 128 + COSTS.crossing) + (parts - 1) * waits


def leavings(columns: int) -> list[int]:
    """Columns of a result that may leave at once."""
    return [leaving for leaving in (64, 128, 192, 256) if columns % leaving == 0]


def product_choice(
    problem: Product, tile: tuple[int, int, int], layout: Operands, leaving: int, stages: int = 0
) -> Choice | None:
    """The form of a tile and layouts, with its predicted time; None if it does not fit."""
    rows, columns, consumers = tile
    m, n, k = problem.shape
    form = Form(rows, columns, consumers, leaving, depth=layout.depth, swizzle=layout.swizzle)
    bytes_ = (rows + columns) * layout.depth
    most = min(8, (ROOM - consumers * GROUP_ROWS * leaving * 2) // bytes_)
    found = product_interval(tile, layout.depth, problem.dtype, lines(problem, layout))
    if found is None or most < max(2, found.slots, stages):
        return None
    turns = -(-(-(-m // rows) * -(-n // columns)) // UNITS)
    steps = -(-k * problem.size // layout.depth)
    stored = math.ceil(rows * columns * 2 / 1024 * COSTS.store_latency_per_kib)
    cycles = turns * max(steps * found.ii + leave_cycles(tile, leaving), stored)
    form = replace(form, stages=stages or most, behind=found.behind)
    options = {name: value for name, value in asdict(form).items() if name != "split"}  # no order splits K
    return Choice(options, found.ii, turns * steps, cycles, found.why)


def copies_key(layout: Operands) -> tuple[float, int]:
    """What a layout costs the copy engine; fewer bytes where that is equal."""
    return round(layout.copies, 3), layout.depth


def leaving_key(columns: int, leaving: int) -> tuple[float, int]:
    """The same of a result."""
    return round(columns // leaving * engine_cycles(GROUP_ROWS * leaving * 2 / 1024), 3), leaving


def best(choices: Iterator[Choice | None]) -> Choice:
    """The choice of fewest iterations among those of least predicted time."""
    able = [choice for choice in choices if choice is not None]
    least = min(choice.cycles for choice in able)
    return min(
        (choice for choice in able if choice.cycles <= EQUAL * least),
        key=lambda choice: (choice.iterations, choice.cycles),
    )


def product_choices(problem: Product) -> dict[str, Choice]:
    """What each order chooses."""
    layouts = operand_layouts(problem)
    alone = min(layouts, key=copies_key)
    found = {
        "layout": best(
            product_choice(problem, tile, alone, min(leavings(tile[1]), key=lambda each: leaving_key(tile[1], each)))
            for tile in TILES
        )
    }
    first = best(product_choice(problem, tile, layouts[0], 64) for tile in TILES)
    tile = first.options["rows"], first.options["columns"], first.options["consumers"]
    fitting = [
        (copies_key(layout), leaving_key(tile[1], leaving), choice)
        for layout in layouts
        for leaving in leavings(tile[1])
        if (choice := product_choice(problem, tile, layout, leaving, first.options["stages"])) is not None
    ]
    found["schedule"] = min(fitting, key=lambda each: each[:2])[2]
    found["joint"] = best(
        product_choice(problem, tile, layout, leaving)
        for tile in TILES for layout in layouts for leaving in leavings(tile[1])
    )  # fmt: skip
    return found


# ---------------------------------------------------------------------------------------------------------- attention


@functools.cache
def attention_interval(consumers: int, keys: int, head: int) -> Interval | None:
    """The schedule of a block of keys."""
    if keys // 2 + keys // 4 + head // 2 > consumer_registers(consumers, LOADER_REGISTERS) * (SHARE - 1) // SHARE:
        return None
    work = attention_work(GROUP_ROWS * consumers, keys, head, "bf16", consumers, pingpong=False)
    cycles = LOADED_KIB * keys * head * 2 / 1024
    return interval(loaded(work, {"load_keys": cycles, "load_values": cycles}), UNIT)


def attention_choice(problem: Attention, consumers: int, keys: int, stages: int = 0) -> Choice | None:
    """The options of a tile, with the predicted time; None if it does not fit."""
    batches, queries, all_keys, head = problem.shape
    rows = GROUP_ROWS * consumers
    most = min(8, (ROOM - rows * head * 2) // (2 * keys * head * 2))
    found = attention_interval(consumers, keys, head)
    if found is None or most < max(found.slots, stages):
        return None
    ends = [min(all_keys, row + rows) if problem.causal else all_keys for row in range(0, queries, rows)]
    times = [(-(-end // keys) - 1) * found.ii + found.span for end in ends]
    share = max(batches / UNITS, 1 / len(times)) if problem.causal else -(-len(times) * batches // UNITS) / len(times)
    blocks = sum(-(-end // keys) for end in ends)
    options = {"tile": [rows, keys], "stages": stages or most, "consumers": consumers, "ahead": found.ahead}
    return Choice(options, found.ii, math.ceil(share * blocks), math.ceil(share * sum(times)), found.why)


def keys_key(problem: Attention, keys: int) -> tuple[float, int]:
    """What tiles of so many keys cost the copy engine, and in how many copies."""
    _, _, every, head = problem.shape
    blocks = -(-every // keys)
    return round(blocks * engine_cycles(keys * head * 2 / 1024), 3), blocks


def attention_choices(problem: Attention) -> dict[str, Choice]:
    """What each order chooses."""
    roles = (2, 3, 1)
    able = {(c, keys): found for c in roles for keys in KEYS if (found := attention_choice(problem, c, keys))}
    alone = min({keys for _, keys in able}, key=lambda keys: keys_key(problem, keys))
    found = {"layout": best(able.get((consumers, alone)) for consumers in roles)}
    first = best(able.get((consumers, 128)) for consumers in roles)
    consumers, stages = first.options["consumers"], first.options["stages"]
    fitting = {keys: choice for keys in KEYS if (choice := attention_choice(problem, consumers, keys, stages))}
    found["schedule"] = fitting[min(fitting, key=lambda keys: keys_key(problem, keys))]
    found["joint"] = best(iter(able.values()))
    return found


def choices(problem: Product | Attention) -> dict[str, Choice]:
    """What each order chooses."""
    return product_choices(problem) if isinstance(problem, Product) else attention_choices(problem)


def stored() -> dict[str, dict[str, Choice]]:
    """The choices as written."""
    read = json.loads(CHOICES.read_text(encoding="utf-8"))
    return {name: {order: Choice(**each) for order, each in found.items()} for name, found in read.items()}


def written(every: dict[str, dict[str, Any]]) -> str:
    """The choices as JSON, a line each."""
    problems = [
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f" {json.dumps(order)}: {json.dumps(choice)}" for order, choice in found.items())
        + "\n}"
        for name, found in every.items()
    ]
    return "{\n" + ",\n".join(problems) + "\n}\n"


def main() -> None:
    """Print the choices, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {CHOICES.name}")
    write = parser.parse_args().write
    every = {}
    for problem in (*PRODUCTS, *ATTENTIONS):
        every[str(problem)] = {order: asdict(choice) for order, choice in choices(problem).items()}
        for order, choice in every[str(problem)].items():
            print(problem, order, choice, flush=True)
    if write:
        CHOICES.write_text(written(every), encoding="utf-8")


if __name__ == "__main__":
    main()
