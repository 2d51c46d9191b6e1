"""Jobs that ask a device about copies of runs of bytes (``cp.async.bulk``) and multicast loads of tiles.

Notation: block b of a cluster has its image at row b; blocks that the mask leaves out must stay as they were.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from device import Launch, MapAt
from device_accesses import POISON, WIDTHS, table_of, tile_of

import layoutalg as la
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE

SMEM_BYTES = 66 * 1024
BYTES = WIDTHS | {"u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "bf16": 2}

_LOAD = """
extern "C" __global__ void {cluster}__launch_bounds__(128) {name}({map}const unsigned char* memory,
    const int* copies, int count, int expect, int mask, unsigned char* image, int bytes, int* status)
{{
    __shared__ __align__(8) la_u64 bars[1];
    unsigned char* tile = la_aligned_shared(1024);
    const la_u32 bar = la_shared_address(bars), base = la_shared_address(tile);
    la_u32 rank;
    asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
    for (int i = threadIdx.x; i < bytes; i += 128) tile[i] = 0xEE;
    const bool heard = mask >> rank & 1;
    if (threadIdx.x == 0) {{
        la_mbarrier_init(bar, 1);
        if (heard) la_arrive_expect_tx(bar, expect);
    }}
    la_fence_async();
    __syncthreads();
    asm volatile("barrier.cluster.arrive.aligned;\\nbarrier.cluster.wait.aligned;" ::: "memory");
    const unsigned short receivers = (unsigned short)mask;
    if (threadIdx.x == 0)
        for (int q = 0; q < count; ++q) {{
            const int* head = copies + 8 * q;
            if (head[7] != rank) continue;
            {issue}
        }}
    bool done = !heard || la_wait_parity(bar, 0);
    __syncthreads();
    for (int i = threadIdx.x; i < bytes; i += 128) image[(la_u64)bytes * blockIdx.x + i] = tile[i];
    if (threadIdx.x == 0) status[blockIdx.x] = done ? 1 : 2;
    asm volatile("barrier.cluster.arrive.aligned;\\nbarrier.cluster.wait.aligned;" ::: "memory");
}}
"""

_STORE = """
extern "C" __global__ void __launch_bounds__(128) {name}(unsigned char* memory, const int* copies, int count,
    const unsigned char* image, int bytes, int* status)
{{
    unsigned char* tile = la_aligned_shared(1024);
    const la_u32 base = la_shared_address(tile);
    for (int i = threadIdx.x; i < bytes; i += 128) tile[i] = image[i];
    la_fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {{
        for (int q = 0; q < count; ++q) {{
            const int* head = copies + 8 * q;
            asm volatile("{instruction} [%0], [%1], %2;"
                         :: "l"(memory + head[0]), "r"(base + head[1]), "r"(head[2]) : "memory");
        }}
        la_store_commit();
        la_store_wait();
        status[0] = 1;
    }}
}}
"""

_RUN = (
    'asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{cast} [%0], [%1], %2, [%3]{mask};"'
    ' :: "r"(base + head[1]), "l"(memory + head[0]), "r"(head[2]), "r"(bar){value} : "memory");'
)


def load_kernel(kind: str, ctas: int = 1) -> KernelSource:
    """Return the kernel that loads runs (``kind`` is ``bulk``) or boxes of a map of some rank (``1`` to ``5``).

    Its ``copies`` are eight integers each: of a run: global byte, shared byte, size; of a box: shared byte and start
    coordinates; then the block of the cluster that issues it, last.
    """
    many = ctas > 1
    name = f"la_form_load_{kind}_{ctas}"
    if kind == "bulk":
        issue = _RUN.format(
            cast=".multicast::cluster" if many else "", mask=", %4" if many else "",
            value=', "h"(receivers)' if many else "",
        )  # fmt: skip
    else:
        rank = int(kind)
        slots = ", ".join(f"%{3 + j}" for j in range(rank))
        values = ", ".join(f'"r"(head[{1 + j}])' for j in range(rank))
        cast = ".multicast::cluster" if many else ""
        tail = f", %{3 + rank}" if many else ""
        issue = (
            f'asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{cast}'
            f' [%0], [%1, {{{slots}}}], [%2]{tail};" :: "r"(base + head[0]), "l"(&map), "r"(bar), {values}'
            + (', "h"(receivers)' if many else "") + ' : "memory");'
        )  # fmt: skip
    boxes = kind != "bulk"
    text = _LOAD.format(
        cluster=f"__cluster_dims__({ctas}, 1, 1) " if many else "", name=name, issue=issue,
        map="const __grid_constant__ la_tensor_map map, " if boxes else "",
    )  # fmt: skip
    parameters = (
        *((("const __grid_constant__ la_tensor_map", "map"),) if boxes else ()), ("const unsigned char*", "memory"),
        ("const int*", "copies"), ("int", "count"), ("int", "expect"), ("int", "mask"), ("unsigned char*", "image"),
        ("int", "bytes"), ("int*", "status"),
    )  # fmt: skip
    return KernelSource(name, PRELUDE + text, "sm_90a", 128, SMEM_BYTES, parameters)


def runs_kernel(instruction: str) -> KernelSource:
    """Return the kernel (memory, copies, count, image, bytes, status) that stores or adds runs of shared memory."""
    tail = instruction.partition("bulk_group")[2].replace(".", "_")
    name = f"la_form_runs{tail}"
    parameters = (
        ("unsigned char*", "memory"), ("const int*", "copies"), ("int", "count"), ("const unsigned char*", "image"),
        ("int", "bytes"), ("int*", "status"),
    )  # fmt: skip
    text = PRELUDE + _STORE.format(name=name, instruction=instruction)
    return KernelSource(name, text, "sm_90a", 128, SMEM_BYTES, parameters)


def copies_table(rows: Sequence[Sequence[int]], issuers: Sequence[int]) -> np.ndarray:
    """Return the copies as the kernels take them."""
    table = np.zeros((len(rows), 8), dtype=np.int32)
    for at, (row, issuer) in enumerate(zip(rows, issuers, strict=True)):
        table[at, : len(row)] = row
        table[at, 7] = issuer
    return table


@dataclass(frozen=True)
class Tile:
    """An admitted plan of a tile of a random tensor of whole tiles.

    Args:
        plan: The plan.
        table: Where each element goes in shared memory, in elements.
        held: Where it lies in the tensor, in elements.
        origin: Of the tile.
        elements: Of the tensor, with its pitch.
        size: Bytes of an element.
        facts: What is reported with it.
    """

    plan: Any
    table: np.ndarray
    held: np.ndarray
    origin: list[int]
    elements: int
    size: int
    facts: dict[str, Any]

    @property
    def reach(self) -> int:
        """Bytes of shared memory, rounded up to 16."""
        return -(-int((self.table.max() + 1) * self.size) // 16) * 16

    def images(self, memory: np.ndarray, ctas: int, mask: int) -> np.ndarray:
        """What a load leaves in the blocks of a cluster: the tile in those of the mask."""
        images = np.full((ctas, self.reach), POISON, dtype=np.uint8)
        for block in range(ctas):
            if mask >> block & 1:
                for byte in range(self.size):
                    images[block, self.table * self.size + byte] = memory[self.held * self.size + byte]
        return images


def tile_plan(rng: random.Random, consumer: str, dtype: str, swizzled: float = 0.0, **options: Any) -> Tile | None:
    """Return a tile whose plan a consumer admits, rows of the tensor at multiples of 16 bytes; None where it refuses.

    Args:
        rng: Random numbers.
        consumer: Who is asked.
        dtype: The element type.
        swizzled: How often the tile has rows of 128 bytes behind a swizzle.
        options: Of ``admissible``.
    """
    size = BYTES[dtype]
    unit = max(1, 16 // size)
    if rng.random() < swizzled:
        columns = 128 // size
        swizzle = f"Sw<{rng.choice([1, 2, 3])},{unit.bit_length() - 1},3>"
        layout, extents = la.parse(f"{swizzle} o 0 o (32,{columns}):({columns},1)"), (32, columns)
    else:
        layout, extents = tile_of(rng, size)
    shape = (extents[0] * rng.choice([1, 2]), extents[1] * rng.choice([1, 2, 3]))
    pitch = -(-shape[1] // unit) * unit + unit * rng.choice([0, 1, 4])
    answer = la.admissible(layout, consumer, dtype=dtype, tile=extents, tensor=(shape, (pitch, 1), dtype), **options)
    if not isinstance(answer, la.Admitted):
        return None
    plan, points = answer.descriptor, np.indices(extents)
    if len(plan.copies if hasattr(plan, "copies") else plan.issues) > 400:
        return None
    origin = [extent * rng.randrange(whole // extent) for extent, whole in zip(extents, shape, strict=True)]
    held = (points[0] + origin[0]) * pitch + points[1] + origin[1]
    facts = {"kind": "admitted", "dtype": dtype, "layout": str(layout)[:120]}
    return Tile(plan, table_of(layout, extents), held, origin, shape[0] * pitch, size, facts)


def runs_of(tile: Tile) -> list[tuple[int, int, int]]:
    """The runs of a plan: global byte, shared byte, size."""
    start = int(tile.held[0, 0]) * tile.size
    return [(start + source, to, many) for source, to, many in tile.plan.copies]


def boxes_of(tile: Tile) -> list[tuple[int, ...]]:
    """The boxes of a plan: shared byte and start coordinates."""
    starts = tile.plan.coordinates(tile.origin)
    return [(issue.smem_offset_bytes, *coords) for issue, coords in zip(tile.plan.issues, starts, strict=True)]


def draw_launches(plans: int, draw: Callable[[], Launch | None]) -> list[Launch]:
    """Return so many launches, as far as they are found."""
    tried = (draw() for _ in range(100 * plans))
    return list(itertools.islice((job for job in tried if job is not None), plans))


def bulk_jobs(plans: int, seed: int) -> list[Launch]:
    """Return admitted plans of ``bulk``, ``bulk.multicast`` and ``bulk.store``, and runs that the rules refuse."""
    jobs: list[Launch] = []
    rng = random.Random(seed)
    for consumer in ("bulk", "bulk.store", "bulk.multicast"):
        jobs += draw_launches(plans, lambda consumer=consumer: _bulk(rng, consumer))  # type: ignore[misc]
    for direction in ("load", "store"):
        for what, copy in (
            ("size 8", (0, 0, 8)), ("size 24", (0, 0, 24)), ("size 17", (0, 0, 17)), ("size 0", (0, 0, 0)),
            ("shared address 8 bytes off", (0, 8, 32)), ("shared address 4 bytes off", (0, 4, 32)),
            ("global address 8 bytes off", (8, 0, 32)), ("global address 4 bytes off", (4, 0, 32)),
        ):  # fmt: skip
            jobs.append(_refused_run(direction, what, copy))
    return jobs


def _bulk(rng: random.Random, consumer: str) -> Launch | None:
    ctas = rng.choice([2, 4]) if consumer == "bulk.multicast" else 1
    tile = tile_plan(rng, consumer, rng.choice(list(WIDTHS)), **({"ctas": ctas} if ctas > 1 else {}))
    if tile is None:
        return None
    random_bytes = np.random.default_rng(rng.randrange(2**32))
    copies, status = runs_of(tile), np.zeros(ctas, dtype=np.int32)
    facts = tile.facts | {"instruction": tile.plan.instruction, "copies": len(copies), "ctas": ctas}
    memory = random_bytes.integers(0, 256, (int(tile.held.max()) + 1) * tile.size + 64, dtype=np.uint8)
    if consumer == "bulk.store":
        image = random_bytes.integers(0, 256, tile.reach, dtype=np.uint8)
        expected = memory.copy()
        for byte in range(tile.size):
            expected[tile.held * tile.size + byte] = image[tile.table * tile.size + byte]
        arguments = [memory, copies_table(copies, [0] * len(copies)), len(copies), image, tile.reach, status]
        kernel = runs_kernel(tile.plan.instruction)
        return Launch(consumer, kernel, arguments, (0, 5), 1, {0: expected, 5: status + 1}, facts)
    mask = 1 if ctas == 1 else rng.randrange(1, 1 << ctas)
    table = copies_table(copies, random_bytes.integers(0, ctas, len(copies)).tolist())
    arguments = [memory, table, len(copies), tile.plan.expect_tx_bytes, mask,
                 np.zeros((ctas, tile.reach), dtype=np.uint8), tile.reach, status]  # fmt: skip
    expected_of = {5: tile.images(memory, ctas, mask), 7: status + 1}
    return Launch(consumer, load_kernel("bulk", ctas), arguments, (5, 7), ctas, expected_of, facts | {"mask": mask})


def _refused_run(direction: str, what: str, copy: tuple[int, int, int]) -> Launch:
    facts = {"instruction": f"cp.async.bulk, {direction}", "kind": "refused", "what": what}
    status = np.zeros(1, dtype=np.int32)
    source = (np.arange(4096) % 199 + 1).astype(np.uint8)
    if direction == "load":
        arguments = [source, copies_table([copy], [0]), 1, copy[2], 1, np.zeros(256, dtype=np.uint8), 256, status]
        return Launch(f"bulk load {what}", load_kernel("bulk"), arguments, (7, 5), 1, None, facts, True)
    instruction = "cp.async.bulk.global.shared::cta.bulk_group"
    arguments = [np.full(4096, POISON, dtype=np.uint8), copies_table([copy], [0]), 1, source, 4096, status]
    return Launch(f"bulk store {what}", runs_kernel(instruction), arguments, (5, 0), 1, None, facts, True)


def multicast_jobs(plans: int, seed: int) -> list[Launch]:
    """Return admitted plans of ``tma.multicast`` for clusters of 2 and 4, random masks and issuing blocks."""
    rng = random.Random(seed)
    return draw_launches(plans, lambda: _multicast(rng))


def _multicast(rng: random.Random) -> Launch | None:
    tile = tile_plan(rng, "tma.multicast", rng.choice(["u8", "f16", "f32", "f64"]), 0.5)
    if tile is None or tile.reach > SMEM_BYTES - 2048:
        return None
    ctas = rng.choice([2, 4])
    mask, rows = rng.randrange(1, 1 << ctas), boxes_of(tile)
    memory = np.random.default_rng(rng.randrange(2**32)).integers(
        0, 256, -(-tile.elements * tile.size // 16) * 16, dtype=np.uint8
    )
    copies, status = copies_table(rows, [rng.randrange(ctas) for _ in rows]), np.zeros(ctas, dtype=np.int32)
    arguments = [MapAt(tile.plan.raw, 1), memory, copies, len(rows), tile.plan.expect_tx_bytes, mask,
                 np.zeros((ctas, tile.reach), dtype=np.uint8), tile.reach, status]  # fmt: skip
    facts = tile.facts | {"instruction": "cp.async.bulk.tensor, multicast", "ctas": ctas, "mask": mask}
    kernel = load_kernel(str(len(tile.plan.tensor_map.box)), ctas)
    expected = {6: tile.images(memory, ctas, mask), 8: status + 1}
    return Launch("tma.multicast", kernel, arguments, (6, 8), ctas, expected, facts | {"copies": len(rows)})
