"""Which way of moving indexed data is fastest, by one formula on costs with evidence.

Mathematically: t = max(bytes / bandwidth(granule), operations / rate) + launches * t_launch + inspector. Bytes count
reads and writes of memory, the granule is what is contiguous. The ranking says what every candidate was taken to cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TypeAlias

import numpy as np

from layoutalg.ground.check import Checker
from layoutalg.proofs.gather import GatherPlan
from layoutalg.proofs.indirect.choice import Candidate, Choice
from layoutalg.proofs.indirect.pages import Paged, fragmentation
from layoutalg.proofs.indirect.routing import Routing
from layoutalg.proofs.indirect.values import Runs, index_array
from layoutalg.targets.bank_counting import LANES
from layoutalg.targets.global_memory import SECTOR_BYTES, VECTOR_BYTES, touched
from layoutalg.targets.memory_costs import MemoryCosts, memory_costs
from layoutalg.targets.roofs import roofs

CHECK = Checker("LA941", "the cost of this movement is not known")
MOST = 1 << 46
GATHER_WORDS = 8
"""Most words of a row that a lane keeps in registers."""
GATHER_BYTES = 32768
"""Most bytes of a row that a block keeps in shared memory."""
STAGE_BYTES = 16384
"""Most bytes that the copy engine moves at once, and of what they are a multiple."""
PAGE_SIZES = (1, 8, 16, 32, 64, 128, 256)

Costs: TypeAlias = "str | MemoryCosts"
"""A target, or what was measured elsewhere."""


def _costs(target: Costs) -> MemoryCosts:
    return target if isinstance(target, MemoryCosts) else memory_costs(target)


def _timed(
    costs: MemoryCosts,
    way: str,
    moved: int,
    granule: int,
    *,
    by: str = "vector",
    operations: float = 0.0,
    rate: float = 1.0,
    launches: int = 1,
    inspector: float = 0.0,
) -> Candidate:
    """The formula; bytes / (GB/s) is 1e-3 microseconds."""
    time = max(moved / costs.bandwidth(by, max(1, granule)) / 1e3, operations / rate)
    return Candidate(way, time + launches * costs.launch_us + inspector, moved, granule, launches)


def _ranked(costs: MemoryCosts, found: Iterable[Candidate], *others: str) -> Choice:
    evidence = "assumed" if set(others) - {"measured"} else costs.evidence
    return Choice(tuple(sorted(found, key=lambda each: each.microseconds)), evidence)


def inspector_us(costs: MemoryCosts, labels: int) -> float:
    """Return the time of the inspector: one launch, two beyond 1,024 labels."""
    return costs.launch_us * (1 if labels <= 1024 else 2) + 16 * labels / costs.bandwidth("vector", SECTOR_BYTES) / 1e3


def row_ways(length: int, element_bytes: int, lanes: int = LANES) -> dict[str, bool]:
    """Return the ways of ``codegen.gather_kernel``, the preferred first, and whether rows allow them.

    Args:
        length: Elements of a row.
        element_bytes: Bytes of an element.
        lanes: Lanes of a warp.

    Example:
        >>> [row_ways(length, 1) for length in (256, 257)]
        [{'warp': True, 'shared': True, 'direct': True}, {'warp': False, 'shared': True, 'direct': True}]
    """
    words = -(-length // lanes) * max(1, element_bytes // 4)
    return {"warp": words <= GATHER_WORDS, "shared": length * element_bytes <= GATHER_BYTES, "direct": True}


def gather_choice(
    rows: int,
    length: int,
    count: int,
    element_bytes: int,
    sectors: float = 32.0,
    target: Costs = "sm_90a",
    plan: GatherPlan | None = None,
) -> Choice:
    """Rank the ways of ``codegen.gather_kernel`` along the last axis: by shuffles, through shared memory, directly.

    With a plan of ``la.gather``, also the gather of register tiles: tiles of whole rows are loaded, their elements
    exchanged by the plan, results stored.

    Args:
        rows: Rows.
        length: Elements of a row.
        count: Indices of a row.
        element_bytes: Bytes of an element.
        sectors: Sectors of 32 bytes that the indices of a warp name on average: 32 if random, 4 for neighbours of 4
            bytes; ``warp_sectors`` counts them.
        target: The target, or costs.
        plan: A plan for tiles of some of the rows, gathered along the rows; named in the ranking by its mechanism.

    Raises: MalformedError: LA941. RepresentabilityError: LA942.

    Example:
        >>> gather_choice(1 << 19, 64, 64, 4).way, gather_choice(1, 1 << 28, 1 << 12, 4).way
        ('warp', 'direct')
    """
    costs = _costs(target)
    sizes = {"rows": rows, "length": length, "count": count, "element_bytes": element_bytes}
    r, n, m, size = (CHECK.integer(value, name, 1, MOST) for name, value in sizes.items())
    if not isinstance(sectors, (int, float)) or not 1 <= sectors <= LANES:
        raise CHECK.malformed("sectors", f"must be a number from 1 to {LANES}", sectors)
    warps, streamed, whole = r * m / LANES, r * m * (size + 4), r * n * size
    words, found = -(-n // LANES) * max(1, size // 4), list[Candidate]()
    ways = row_ways(n, size)
    if ways["warp"]:
        found.append(_timed(costs, "warp", streamed + whole, 512, operations=warps * words, rate=costs.shuffles_per_us))
    if ways["shared"]:
        begun = r / costs.blocks_per_us  # conflicts of banks hide behind the copies
        found.append(_timed(costs, "shared", streamed + whole, 512, inspector=begun))
    met = int(warps * sectors)
    fresh = met * SECTOR_BYTES
    if n * size <= costs.cache_bytes // 2:  # what L2 keeps is read once
        fresh = min(fresh, whole)
    granule = 512 if fresh <= whole else SECTOR_BYTES
    loads = max(met / costs.sectors_per_us, warps / costs.gathers_per_us)
    found.append(_timed(costs, "direct", streamed + fresh, granule, operations=loads))
    if plan is None:
        return _ranked(costs, found)
    tiles, chip = _tiles(plan, r, n, m, size, target), roofs(plan.target)
    rate = chip.units * chip.clock_mhz  # cycles of all multiprocessors in a microsecond
    cycles, by = tiles * plan.cost.cycles, f"tile {plan.mechanism}"
    found.append(_timed(costs, by, streamed + whole, 512, operations=cycles, rate=rate))
    return _ranked(costs, found, chip.evidence)


def _tiles(plan: GatherPlan, rows: int, length: int, count: int, element_bytes: int, target: Costs) -> int:
    """Tiles of a plan, refused if they are not whole rows of this gather."""
    CHECK.kind(plan, GatherPlan, "plan")
    if isinstance(target, str) and plan.target != target:
        raise CHECK.malformed("plan", f"must be for {target}, as the other ways", plan.target)
    asked = (length, count, 8 * element_bytes)
    if (plan.extent, plan.count, plan.element_bits) != asked:
        rule = "must gather {1} of {0} elements of {2} bits, as the rows do".format(*asked)
        raise CHECK.malformed("plan", rule, (plan.extent, plan.count, plan.element_bits))
    return -(-rows // (prod(size for _, size in plan.tensor) // plan.extent))


def warp_sectors(index: object, element_bytes: int) -> float:
    """Return the sectors of 32 bytes that 32 consecutive indices of a row name, on average.

    Args:
        index: Indices of elements of a row that begins at a sector.
        element_bytes: A divisor of 32, so that no element lies in two sectors.

    Raises: MalformedError: LA941.

    Example:
        >>> warp_sectors(range(64), 4), warp_sectors([0] * 32, 4)
        (4.0, 1.0)
    """
    found = index_array(index, "index", 0, MOST, CHECK)
    size = CHECK.integer(element_bytes, "element_bytes", 1, SECTOR_BYTES + 1)
    if SECTOR_BYTES % size:
        raise CHECK.malformed("element_bytes", f"must divide the {SECTOR_BYTES} bytes of a sector", size)
    if not len(found):
        return 1.0
    padded = np.append(found, np.repeat(found[-1:], -len(found) % LANES)).reshape(-1, LANES)
    return float(touched(padded * size, size, SECTOR_BYTES).mean())


def row_choice(index: object, row_bytes: int, target: Costs = "sm_90a") -> Choice:
    """Rank the ways of gathering rows: by vectors, by one copy of the engine for each row, or by vectors for each run.

    Example:
        >>> row_choice([5, 9, 2, 7], 14336).way
        'vector'
    """
    costs = _costs(target)
    rows = index_array(index, "index", 0, MOST, CHECK)
    size = CHECK.integer(row_bytes, "row_bytes", 1, 1 << 24)
    runs = len(Runs.of(rows, step=1).pieces)
    moved = (2 * size + 4) * len(rows)
    found = [_timed(costs, "vector", moved, size)]
    if size % VECTOR_BYTES == 0:
        found.append(_timed(costs, "bulk", moved, size, by="bulk"))
        if runs < len(rows):  # what lists the runs is taken to cost as much as a sort
            pieces, run = 2 * size * len(rows) + 16 * runs, size * len(rows) // runs
            found.append(_timed(costs, "runs", pieces, run, inspector=inspector_us(costs, len(rows))))
    return _ranked(costs, found)


def _divisor(number: int, most: int) -> int:
    """Return the largest divisor up to a bound."""
    return next(each for each in range(min(number, max(1, most)), 0, -1) if number % each == 0)


def page_pieces(paged: Paged) -> tuple[int, int, tuple[int, int]]:
    """Return how a page is cut: contiguous bytes, bytes of a run of the copy engine, and (rows, heads) of a box.

    A segment, the rows of a page (of one head of it for ``HND``), is contiguous in the cache and beside it; runs and
    boxes are equal parts of segments, up to ``STAGE_BYTES``.

    Example:
        >>> [page_pieces(Paged([0], 16, 8, 128, 2, layout)) for layout in ("NHD", "HND")]
        [(32768, 16384, (8, 8)), (4096, 4096, (16, 1))]
    """
    nhd = paged.kv_layout == "NHD"
    segment = paged.page_bytes // (1 if nhd else paged.kv_heads)
    run = VECTOR_BYTES * _divisor(max(1, segment // VECTOR_BYTES), STAGE_BYTES // VECTOR_BYTES)
    heads = _divisor(paged.kv_heads, STAGE_BYTES // paged.row_bytes) if nhd else 1
    return segment, run, (_divisor(paged.box_rows(paged.page_size), STAGE_BYTES // (heads * paged.row_bytes)), heads)


def paged_choice(paged: Paged, target: Costs = "sm_90a") -> Choice:
    """Rank the ways of ``codegen.paged_kernel``: by vectors, by runs of bytes, by boxes of the copy engine.

    Example:
        >>> paged_choice(Paged(list(range(64)), 16, 8, 128, 2)).way
        'vector'
    """
    costs = _costs(target)
    moved = 2 * paged.tokens * paged.kv_heads * paged.row_bytes
    segment, run, (rows, heads) = page_pieces(paged)
    found = [_timed(costs, "vector", moved, segment)]
    if paged.tokens and paged.row_bytes % VECTOR_BYTES == 0:
        found.append(_timed(costs, "bulk", moved, run, by="bulk"))
        found.append(_timed(costs, "tma", moved, rows * heads * paged.row_bytes, by="box"))
    return _ranked(costs, found)


def routed_choice(routed: Routing, row_bytes: int, reads: int = 1, target: Costs = "sm_90a") -> Choice:
    """Rank how a grouped product gets its rows: fused into its loads, permuted first, or permuted and padded.

    Args:
        routed: The routing.
        row_bytes: Bytes of a row.
        reads: How often the product reads each row: its tiles of columns.
        target: The target, or costs.

    Example:
        >>> routed_choice(Routing([[0, 1], [1, 2]], 4, 16), 14336).way
        'fused'
    """
    costs = _costs(target)
    size = CHECK.integer(row_bytes, "row_bytes", 1, 1 << 24)
    times = CHECK.integer(reads, "reads", 1, 1 << 20)
    sort, used = inspector_us(costs, routed.topk_ids.size), min(len(routed.order), routed.tokens) * size
    kept = used <= costs.cache_bytes // 2  # rows that L2 keeps are read from memory once
    rows, padded = len(routed.order) * size, int(routed.padded_offsets[-1]) * size
    fused = _timed(
        costs, "fused", used if kept else rows * times, size, operations=rows * times / 1e3, rate=costs.cached_gbps,
        launches=0, inspector=sort,
    )  # fmt: skip
    return _ranked(costs, [
        fused,
        _timed(costs, "permuted", used + (1 + times) * rows, size, inspector=sort),
        _timed(costs, "padded", used + (1 + times) * padded, size, inspector=sort),
    ])  # fmt: skip


def page_choice(
    lengths: Sequence[int], token_bytes: int, sizes: Sequence[int] = PAGE_SIZES, target: Costs = "sm_90a"
) -> tuple[int, list[tuple[int, int, float, float]]]:
    """Return the page size with which reading and holding sequences cost least, and all sizes with their costs.

    Mathematically: pages of P tokens hold sum(ceil(n / P)) P tokens, of which at most P - 1 for each sequence are
    empty. Least is held / used / bandwidth(P token_bytes).

    Args:
        lengths: Tokens of each sequence, or of a sample of them.
        token_bytes: Contiguous bytes of a token: all heads for ``NHD``, one for ``HND``.
        sizes: Page sizes to compare.
        target: The target, or costs.

    Returns:
        The size; and for each size (P, empty tokens, their share of the pages, GB/s).

    Example:
        >>> best, table = page_choice([100, 1700, 64, 900], 2048)
        >>> [row[1] for row in table]
        [0, 12, 36, 84, 116, 308, 564]
    """
    costs = _costs(target)
    size_of = CHECK.integer(token_bytes, "token_bytes", 1, 1 << 30)
    given = CHECK.vector(sizes, "sizes", low=1)
    if not given:
        raise CHECK.malformed("sizes", "must have at least one page size", sizes)
    found = [(size, *fragmentation(lengths, size), costs.bandwidth("vector", size * size_of)) for size in given]
    least = min(found, key=lambda row: 1.0 / ((1.0 - row[2]) * row[3]) if row[2] < 1 else float("inf"))
    return least[0], found
